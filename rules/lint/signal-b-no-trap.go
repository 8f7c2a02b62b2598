package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("signal-b-no-trap", func(c *Ctx) {
	r := &c.S.Request
	d := c.S.Opt("signal")
	if d == nil || !r.SignalBatch || !c.S.Parsed || c.mayTrap() {
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

// mayTrap reports whether a file that could not be followed may set a trap: one
// that holds settings does not.
func (c *Ctx) mayTrap() bool {
	if !c.sourcedUnknown() {
		return false
	}
	for _, x := range c.S.Sources {
		b := x.Path[strings.LastIndexByte(x.Path, '/')+1:]
		if !x.Followed && !strings.HasPrefix(b, "config") && !strings.HasPrefix(b, "settings") && !strings.HasPrefix(b, "params") && !strings.HasPrefix(b, "paths") && b != "activate" && !strings.Contains(b, "conda") {
			return true
		}
	}
	return false
}
