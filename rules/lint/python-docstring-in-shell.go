package lint

import (
	"strings"
)

var _ = Checks.Add("python-docstring-in-shell", func(c *Ctx) {
	if c.S.Shell == "python" {
		return
	}
	for n := 1; n <= c.S.NumLines && n < 100000; n++ {
		l := strings.TrimSpace(c.S.Line(n))
		if (strings.HasPrefix(l, "'''") || strings.HasPrefix(l, `"""`)) && !c.inHeredoc(n) {
			c.Hit(at(n, 1), "quotes", l[:3])
			return
		}
	}
})
