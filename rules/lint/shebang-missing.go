package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("shebang-missing", func(c *Ctx) {
	s := c.S
	if s.HasShebang || s.CallsSbatch || len(s.Src) == 0 {
		return
	}
	live := len(s.Directives)
	for _, x := range s.Stray {
		if x.Kind == fact.StrayLate {
			live++
		}
	}
	if live == 0 {
		return
	}
	if s.BOM && strings.HasPrefix(string(s.Src[3:min(len(s.Src), 8)]), "#!") {
		c.Hit(at(1, 1), "variant", "bom").Edit(0, 3, "")
		return
	}
	for n := 2; n <= 20 && n <= s.NumLines; n++ { // a shebang that slid down
		if l := s.Line(n); strings.HasPrefix(l, "#!/") {
			from, to := c.lineSpan(n)
			c.Hit(at(1, 1), "variant", "below", "below", itoa(n)).Edit(0, 0, l+"\n").Edit(from, to, "")
			return
		} else if t := strings.TrimSpace(l); t != "" && !strings.HasPrefix(t, "#") {
			break
		}
	}
	c.Hit(at(1, 1)).Edit(0, 0, "#!/bin/bash\n")
})
