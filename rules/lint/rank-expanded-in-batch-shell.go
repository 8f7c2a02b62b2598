package lint

import (
	"github.com/ncclinic/ncclinic/internal/diag"
)

var _ = Checks.Add("rank-expanded-in-batch-shell", func(c *Ctx) {
	for _, x := range c.rankUses() {
		if x.harmless {
			continue
		}
		r := c.Hit(x.pos, "variable", "$"+x.variable, "as", x.as)
		if x.export {
			r.Args["variant"] = "export"
			r.Sev(diag.Warning)
		}
	}
})
