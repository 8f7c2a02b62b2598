package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("bashrc-for-env", func(c *Ctx) {
	var rc, act *fact.ScriptCmd
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.Step >= 0 || x.File != "" {
			continue
		}
		switch {
		case (x.Name == "source" || x.Name == ".") && len(x.Words) > 1 && strings.HasSuffix(x.Words[1].Text, ".bashrc"):
			if rc == nil {
				rc = x
			}
		case activation(x) == "conda" && (x.Name == "conda" || x.Name == "mamba" || x.Name == "micromamba"):
			if act == nil {
				act = x
			}
		case x.Name == "eval", x.Name == "module", x.Name == "ml", (x.Name == "source" || x.Name == ".") && len(x.Words) > 1:
			if act == nil {
				return // another hook
			}
		}
	}
	if rc != nil && act != nil && rc.Seq < act.Seq && !strings.ContainsAny(c.S.ShellFlags, "i") {
		c.Hit(rc.Words[1].Pos, "file", rc.Words[1].Text)
	}
})
