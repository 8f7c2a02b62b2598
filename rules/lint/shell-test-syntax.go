package lint

import (
	"strings"
)

var _ = Checks.Add("shell-test-syntax", func(c *Ctx) {
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Name != "[" || x.File != "" || len(x.Words) < 2 {
			continue
		}
		w := x.Words[len(x.Words)-1]
		if w.Text != "]" && strings.HasSuffix(w.Raw, "]") {
			raw := w.Raw
			h := c.Hit(w.Pos, "word", raw)
			from := c.offset(w.Pos)
			if strings.HasPrefix(string(c.S.Src[from:]), raw) {
				h.Edit(from+len(raw)-1, from+len(raw)-1, " ")
			}
			return
		}
	}
})
