package lint

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("master-port-range", func(c *Ctx) {
	seen := map[int]bool{}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if a.Dead || a.Unset || seen[a.Line] || !strings.Contains(strings.ToUpper(a.Name), "PORT") || strings.Contains(strings.ToUpper(a.Name), "REPORT") || strings.Contains(strings.ToUpper(a.Name), "EXPORT") || strings.Contains(strings.ToUpper(a.Name), "SUPPORT") || strings.Contains(strings.ToUpper(a.Name), "IMPORT") {
			continue
		}
		if lo, hi, ok := bounds(c.S, a.Value.Val); ok && !a.Value.Known && (hi > 65535 || lo < 1024) {
			seen[a.Line] = true
			c.Hit(a.Pos, "name", a.Name, "value", a.Value.Text, "lo", strconv.FormatInt(lo, 10), "hi", strconv.FormatInt(hi, 10))
		}
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		w := l.MasterPort
		if !given(w) || seen[w.Line] || len(c.out) > 0 {
			return
		}
		if lo, hi, ok := bounds(c.S, w.Val); ok && !w.Known && (hi > 65535 || lo < 1024) {
			c.Hit(w.Pos, "name", "--master_port", "value", w.Text, "lo", strconv.FormatInt(lo, 10), "hi", strconv.FormatInt(hi, 10))
		}
	})
})
