package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cpu-torch-install", func(c *Ctx) {
	if !c.S.Request.GPUAsked || !c.says("install", "create") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		cmd, args := installer(x)
		if cmd == "" && condaCreates(x) {
			cmd, args = x.Name, words(x.Words[2:])
		}
		if x.Dead || cmd == "" || x.Cond > 0 && c.says("whl/cu", "whl/rocm", "pytorch-cuda", "+cu1") {
			continue // a choice between a build for CPUs and one for GPUs
		}
		for _, a := range args {
			if strings.HasSuffix(strings.TrimRight(a, "/"), "/whl/cpu") || strings.HasPrefix(a, "torch==") && strings.HasSuffix(a, "+cpu") || a == "cpuonly" || strings.HasSuffix(a, "whl/cpu/torch_stable.html") {
				c.Hit(x.Pos, "what", a)
				break
			}
		}
	}
})

// condaCreates reports conda create and conda env create.
func condaCreates(x *fact.ScriptCmd) bool {
	return (x.Name == "conda" || x.Name == "mamba" || x.Name == "micromamba") && len(x.Words) > 2 && x.Words[1].Text == "create"
}
