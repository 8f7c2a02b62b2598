package lint

import (
	"strings"
)

var _ = Checks.Add("pattern-in-job-name", func(c *Ctx) {
	d := c.S.Opt("job-name")
	if d == nil {
		return
	}
	for _, p := range []string{"%j", "%A", "%a", "%x", "%J", "%u"} {
		if strings.Contains(d.Value, p) {
			c.Hit(d.ValuePos, "pattern", p, "value", d.Value)
			return
		}
	}
})
