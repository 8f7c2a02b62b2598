package lint

import (
	"strings"
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
		if strings.IndexByte(" \t(|;&{=`", p) >= 0 || !strings.HasPrefix(next, "-") || len(next) < 3 || c.inHeredoc(n) || opensQuote(l[:len(l)-1]) {
			continue
		}
		_, to, _ := s.LineRange(n)
		if s.Src[to-1] == '\r' {
			to--
		}
		c.Hit(at(n, len(l)), "next", clip(strings.Fields(next)[0], 40)).Edit(to-1, to-1, " ")
	}
})

// opensQuote reports that the last character of a line is the quote with which
// a string begins: ARGS="\ on one line, --nnodes 2 on the next.
func opensQuote(l string) bool {
	q := l[len(l)-1]
	if q != '"' && q != '\'' {
		return false
	}
	open := byte(0)
	for i := 0; i < len(l); i++ {
		switch c := l[i]; {
		case c == '\\' && open != '\'':
			i++
		case open == 0 && (c == '"' || c == '\''):
			open = c
		case c == open:
			open = 0
		}
	}
	return open == q
}
