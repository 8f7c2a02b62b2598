package lint

import (
	"strings"
)

var _ = Checks.Add("quoted-array-split", func(c *Ctx) {
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if !a.IsArr || len(a.Array) != 1 || a.Dead || a.File != "" {
			continue
		}
		w := a.Array[0]
		if !strings.HasPrefix(w.Raw, `"`) || !strings.HasSuffix(w.Raw, `"`) || strings.Contains(w.Raw, "[@]") {
			continue
		}
		for _, h := range c.S.HolesOf(w.Val) {
			if h.Kind == "cmd" && strings.Contains(h.Text, "scontrol show hostname") && !strings.Contains(h.Text, "head") && !strings.Contains(h.Text, "tr ") && !strings.Contains(h.Text, "paste") {
				from := c.offset(w.Pos)
				r := c.Hit(w.Pos, "name", a.Name, "value", w.Raw)
				if strings.HasPrefix(string(c.S.Src[from:]), w.Raw) {
					r.Edit(from, from+len(w.Raw), w.Raw[1:len(w.Raw)-1])
				}
			}
		}
	}
})
