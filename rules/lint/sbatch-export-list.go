package lint

import (
	"strings"
)

var _ = Checks.Add("sbatch-export-list", func(c *Ctx) {
	d := c.S.Opt("export")
	if d == nil || d.Value == "" {
		return
	}
	for _, e := range strings.Split(d.Value, ",") {
		switch strings.ToUpper(strings.TrimSpace(e)) {
		case "ALL", "NONE", "NIL":
			return
		}
	}
	from := c.offset(d.ValuePos)
	r := c.Hit(d.ValuePos, "value", d.Value)
	if strings.HasPrefix(string(c.S.Src[from:]), d.Value) {
		r.Edit(from, from, "ALL,")
	}
})
