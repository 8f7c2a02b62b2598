package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("trap-without-signal", func(c *Ctx) {
	r := &c.S.Request
	for _, t := range c.S.Traps {
		if t.Step >= 0 || t.Action == "" || t.Action == "-" || len(c.out) > 0 {
			continue
		}
		for _, g := range t.Signals {
			if g != "USR1" && g != "USR2" {
				continue
			}
			switch {
			case c.S.Opt("signal") == nil:
				c.Hit(t.Pos, "variant", "none", "signal", g)
			case !r.SignalBatch:
				c.Hit(t.Pos, "variant", "steps", "signal", g, "value", r.Signal)
			default:
				fore := false
				c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
					if training(l) || l.Kind == fact.LaunchWrapper {
						fore = fore || !c.outermost(l.Cmd).Back && !l.Back
					}
				})
				if fore {
					c.Hit(t.Pos, "variant", "foreground", "signal", g)
				}
			}
			break
		}
	}
})
