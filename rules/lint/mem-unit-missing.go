package lint

import (
	"strconv"
)

var _ = Checks.Add("mem-unit-missing", func(c *Ctx) {
	refused := map[int]bool{} // --mem=64 GB: the unit stands alone, and sbatch refuses the line
	for _, e := range c.S.Refused {
		refused[e.Line] = true
	}
	for _, d := range c.S.Directives {
		if refused[d.Line] || d.Name != "mem" && d.Name != "mem-per-cpu" && d.Name != "mem-per-gpu" {
			continue
		}
		if n, err := strconv.Atoi(d.Value); err == nil && n > 0 && n < 1000 {
			c.Hit(d.ValuePos, "option", d.Name, "value", d.Value)
		}
	}
})
