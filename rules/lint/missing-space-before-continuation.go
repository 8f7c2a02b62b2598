package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("missing-space-before-continuation", func(c *Ctx) {
	s := c.S
	for n := 1; n < s.NumLines; n++ {
		l := s.Line(n)
		if !strings.HasSuffix(l, "\\") || strings.HasSuffix(l, "\\\\") || len(l) < 2 || strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		p := l[len(l)-2]
		next := s.Line(n + 1)
		if p == ' ' || p == '\t' || !strings.HasPrefix(next, "-") || len(next) < 3 || c.inHeredoc(n) {
			continue
		}
		_, to, _ := s.LineRange(n)
		if s.Src[to-1] == '\r' {
			to--
		}
		c.Hit(at(n, len(l)), "next", fact.Clip(strings.Fields(next)[0], 40)).Edit(to-1, to-1, " ")
	}
})
