package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("module-purge-after-activate", func(c *Ctx) {
	if !c.shared.names["module"] && !c.shared.names["ml"] {
		return
	}
	var act *fact.ScriptCmd
	byModule := false
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.Step >= 0 || x.File != "" || x.Cond > 0 {
			continue
		}
		if x.Name == "module" || x.Name == "ml" {
			args := words(x.Words[1:])
			verb := ""
			if x.Name == "ml" {
				verb = "load"
				if len(args) > 0 && (args[0] == "purge" || args[0] == "reset" || args[0] == "load" || args[0] == "add") {
					verb, args = args[0], args[1:]
				}
			} else if len(args) > 0 {
				verb, args = args[0], args[1:]
			}
			if act == nil {
				for _, a := range args {
					byModule = byModule || pythonModule(a)
				}
				continue
			}
			switch verb {
			case "purge", "reset":
				if byModule {
					c.Hit(x.Pos, "variant", "purge", "command", x.Name+" "+verb, "line", itoa(act.Line))
					return
				}
			case "load", "add", "swap", "switch":
				for _, a := range args {
					if pythonModule(a) {
						c.Hit(x.Pos, "command", x.Name+" load "+a, "line", itoa(act.Line))
						return
					}
				}
			}
			continue
		}
		if k := activation(x); k != "" && act == nil {
			act = x
		} else if k != "" {
			act = x // activated again
		} else if x.Name == "deactivate" {
			act = nil
		}
	}
})
