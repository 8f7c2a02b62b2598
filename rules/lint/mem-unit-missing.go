package lint

import (
	"strconv"
)

var _ = Checks.Add("mem-unit-missing", func(c *Ctx) {
	for _, d := range c.S.Directives {
		if d.Name != "mem" && d.Name != "mem-per-cpu" && d.Name != "mem-per-gpu" {
			continue
		}
		if n, err := strconv.Atoi(d.Value); err == nil && n > 0 && n < 1000 {
			c.Hit(d.ValuePos, "option", d.Name, "value", d.Value)
		}
	}
})
