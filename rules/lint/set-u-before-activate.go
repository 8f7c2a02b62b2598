package lint

import (
	"strings"
)

var _ = Checks.Add("set-u-before-activate", func(c *Ctx) {
	if len(c.S.Sets) == 0 && !strings.Contains(c.S.ShellFlags, "u") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.Step >= 0 || x.File != "" || !c.S.Option("u", x.Seq) {
			continue
		}
		what := ""
		switch {
		case activation(x) == "conda":
			what = strings.TrimSpace(x.Name + " " + x.Words[1].Text)
		case (x.Name == "source" || x.Name == ".") && len(x.Words) > 1 && (strings.HasSuffix(x.Words[1].Text, "/.bashrc")):
			what = x.Name + " " + x.Words[1].Text
		}
		if what != "" {
			c.Hit(x.Pos, "command", clip(what, 60))
			return
		}
	}
})
