package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("signal-b-no-trap", func(c *Ctx) {
	r := &c.S.Request
	d := c.S.Opt("signal")
	if d == nil || !r.SignalBatch || !c.S.Parsed || c.sourcedUnknown() {
		return
	}
	for _, t := range c.S.Traps {
		for _, g := range t.Signals {
			if g == r.SignalName || !isUpper(g) {
				return
			}
		}
	}
	c.cmds(func(x *fact.ScriptCmd) {
		if x.Step < 0 && x.Outer < 0 {
			d = nil // exec replaces the shell: the program gets the signal
		}
	}, "exec")
	if d != nil {
		c.Hit(d.ValuePos, "value", d.Value, "signal", r.SignalName)
	}
})
