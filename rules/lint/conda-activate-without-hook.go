package lint

import (
	"strings"
)

var _ = Checks.Add("conda-activate-without-hook", func(c *Ctx) {
	s := c.S
	if s.Shell != "bash" && s.Shell != "sh" && s.Shell != "" || strings.ContainsAny(s.ShellFlags, "li") || !s.Parsed {
		return
	}
	for i := range s.Commands {
		x := &s.Commands[i]
		if x.Dead || x.File != "" {
			continue
		}
		switch x.Name {
		case "source", ".", "eval", "bash", "sh", "exec":
			return
		case "module", "ml":
			if len(x.Words) > 1 && unload[x.Words[1].Text] {
				continue
			}
			return
		}
		if (x.Name == "conda" || x.Name == "mamba") && len(x.Words) > 1 && x.Words[1].Text == "activate" && x.Step < 0 {
			c.Hit(x.Pos, "tool", x.Name, "env", envName(x))
			return
		}
		if !ordinary[x.Name] {
			return
		}
	}
})

// unload are commands of module that load nothing.
var unload = set("purge list avail spider unload rm del --force show")
