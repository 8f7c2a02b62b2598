package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("deprecated-launcher", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if l.Kind == fact.LaunchLegacy && len(c.out) == 0 && !oldTorch(c) {
			c.Hit(l.Pos)
		}
	})
})
