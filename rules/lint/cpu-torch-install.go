package lint

import (
	"strings"
)

var _ = Checks.Add("cpu-torch-install", func(c *Ctx) {
	if !c.S.Request.GPUAsked || !c.says("install") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		cmd, args := installer(x)
		if x.Dead || cmd == "" {
			continue
		}
		for _, a := range args {
			if strings.HasSuffix(strings.TrimRight(a, "/"), "/whl/cpu") || strings.HasPrefix(a, "torch==") && strings.HasSuffix(a, "+cpu") || a == "cpuonly" || strings.HasSuffix(a, "whl/cpu/torch_stable.html") {
				c.Hit(x.Pos, "what", a)
				break
			}
		}
	}
})
