package lint

import (
	"strings"
)

var _ = Checks.Add("pip-install-in-job", func(c *Ctx) {
	if !c.submitted() || !c.says("install", "conda update") || !trains(c) || c.says("slurm_tmpdir", "virtualenv --no-download") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" || len(c.out) > 0 {
			continue
		}
		cmd, args := installer(x)
		if cmd == "" {
			continue
		}
		tmp := false
		for _, a := range args {
			if strings.Contains(a, "TMPDIR") || strings.HasPrefix(a, "/tmp") || a == "--dry-run" {
				tmp = true
			}
		}
		if tmp || localEnv(c, x) || c.buildsEnv() {
			continue
		}
		c.Hit(x.Pos, "command", clip(cmd+" "+strings.Join(args, " "), 60))
	}
})
