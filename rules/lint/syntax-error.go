package lint

import (
	"strings"
)

var _ = Checks.Add("syntax-error", func(c *Ctx) {
	s := c.S
	if s.Syntax == nil || s.Shell == "zsh" || s.Shell == "ksh" || s.CRLF > 0 {
		return
	}
	for n := 1; n <= s.NumLines && n < 20000; n++ {
		if strings.HasPrefix(s.Line(n), "```") {
			return // a Markdown include
		}
	}
	c.Hit(s.Syntax.Pos, "text", s.Syntax.Text)
})
