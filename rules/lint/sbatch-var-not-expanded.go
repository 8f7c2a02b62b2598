package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("sbatch-var-not-expanded", func(c *Ctx) {
	if c.S.Generator {
		return
	}
	for _, d := range c.S.Directives {
		path := d.Name == "output" || d.Name == "error" || d.Name == "chdir" || d.Name == "input"
		switch {
		case !d.HasValue || d.Name == "wrap" || !d.Known && !path:
		case dollar(d.Value):
			v := "value"
			if path {
				v = "path"
			}
			if d.Name == "output" || d.Name == "error" {
				if fixed, ok := patternFor(d.Value); ok {
					r := c.Hit(d.ValuePos, "variant", v, "option", d.Name, "value", d.Value)
					from := c.offset(d.ValuePos)
					if strings.HasPrefix(string(c.S.Src[from:]), d.Value) {
						r.Edit(from, from+len(d.Value), fixed)
					}
					continue
				}
			}
			c.Hit(d.ValuePos, "variant", v, "option", d.Name, "value", d.Value)
		case path && strings.HasPrefix(d.Value, "~"):
			c.Hit(d.ValuePos, "variant", "tilde", "option", d.Name, "value", d.Value)
		}
	}
	for _, e := range c.S.Refused {
		if (e.Kind == fact.RefuseWord || e.Kind == fact.RefuseUnknown && !strings.HasPrefix(e.Text, "--")) && dollar(e.Text) {
			c.Hit(e.Pos, "variant", "value", "option", e.Text, "value", e.Text)
		}
	}
})
