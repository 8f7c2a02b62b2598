package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("duplicate-directive", func(c *Ctx) {
	seen := map[string]*fact.Directive{}
	for i := range c.S.Directives {
		d := &c.S.Directives[i]
		if !d.Known {
			continue
		}
		k := d.Name + "/" + itoa(d.Het)
		if p := seen[k]; p != nil && p.Value != d.Value {
			c.Hit(d.Pos, "option", d.Name, "first", p.Value, "line", itoa(p.Line), "value", d.Value).Clash = d.Name
		}
		seen[k] = d
	}
})
