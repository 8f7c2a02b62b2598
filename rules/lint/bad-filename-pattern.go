package lint

import (
	"strings"
)

var _ = Checks.Add("bad-filename-pattern", func(c *Ctx) {
	for _, d := range c.S.Directives {
		if d.Name != "output" && d.Name != "error" && d.Name != "input" || dollar(d.Value) {
			continue
		}
		v := d.Value
		for i := 0; i+1 < len(v); i++ {
			if v[i] != '%' {
				continue
			}
			j := i + 1
			for j < len(v) && v[j] >= '0' && v[j] <= '9' {
				j++
			}
			if j >= len(v) || !strings.ContainsRune("%AabJjNnrstuWx{}<", rune(v[j])) {
				c.Hit(d.ValuePos, "option", d.Name, "value", v, "pattern", v[i:min(j+1, len(v))])
				break
			}
			i = j
		}
	}
})
