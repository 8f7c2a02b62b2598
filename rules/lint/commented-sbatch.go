package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("commented-sbatch", func(c *Ctx) {
	if c.S.Generator {
		return
	}
	for _, x := range c.S.Stray {
		if x.Kind == fact.StrayCommented && (c.S.FirstCmd.Line == 0 || x.Line < c.S.FirstCmd.Line) {
			c.Hit(x.Pos, "options", optText(x.Options))
		}
	}
})
