package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/near"
)

var _ = Checks.Add("slurm-var-typo", func(c *Ctx) {
	seen := map[string]bool{}
	for _, r := range c.S.Reads {
		if r.Set || r.Default || r.Dead || seen[r.Name] || len(r.Name) < 8 || c.assigned(r.Name) {
			continue
		}
		if !strings.HasPrefix(r.Name, "SLURM") && near.Within(r.Name[:min(6, len(r.Name))], "SLURM_", 2) > 2 || slurmVars[r.Name] || strings.HasPrefix(r.Name, "SLURM_") && siteVar(r.Name) {
			continue
		}
		best, d := "", 3
		for k := range slurmVars {
			if e := near.Within(r.Name, k, 2); e < d || e == d && k < best {
				best, d = k, e
			}
		}
		if d <= 2 && d > 0 {
			seen[r.Name] = true
			h := c.Hit(r.Pos, "name", r.Name, "known", best)
			line := c.S.Line(r.Line)
			if i := strings.Index(line, r.Name); i >= 0 && strings.Count(line, r.Name) == 1 {
				from, _, _ := c.S.LineRange(r.Line)
				h.Edit(from+i, from+i+len(r.Name), best)
			}
		}
	}
})
