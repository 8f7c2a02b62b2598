package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("removed-sbatch-option", func(c *Ctx) {
	for _, e := range c.S.Refused {
		if e.Kind != fact.RefuseRemoved || c.O.Site[e.Option] {
			continue
		}
		now, gone := removedOption(e.Option)
		if v, ok := ParseVersion(gone); ok && c.O.Slurm.Known() && c.O.Slurm.Before(v) {
			continue
		}
		if now == "" {
			c.Hit(e.Pos, "variant", "gone", "option", e.Option)
			continue
		}
		from := c.offset(e.Pos) + 2
		c.Hit(e.Pos, "option", e.Option, "now", now).Edit(from, from+len(e.Option), now)
	}
})
