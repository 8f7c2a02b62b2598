package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("commented-sbatch", func(c *Ctx) {
	if c.S.Generator {
		return
	}
	for _, x := range c.S.Stray {
		if c.S.FirstCmd.Line > 0 && x.Line >= c.S.FirstCmd.Line {
			continue
		}
		switch x.Kind {
		case fact.StrayCommented:
			c.Hit(x.Pos, "options", optText(x.Options))
		case fact.StrayLower:
			if len(x.Options) > 0 && len(c.S.Directives) > 0 && !submits.MatchString(x.Text) {
				c.Hit(x.Pos, "variant", "lower", "options", optText(x.Options))
			}
		}
	}
})

// submits is a note on how to submit the file: it ends in a script.
var submits = lazyre.New(`(?:\.(?:sh|bash|sbatch|slurm|job|sub)|\$0)["']?\s*$`)
