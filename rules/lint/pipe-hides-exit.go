package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("pipe-hides-exit", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		x := c.outermost(l.Cmd)
		if len(c.out) > 0 || x.Neg && !x.OrElse || x.Subst || x.Back || x.Trap || len(x.PipeTo) == 0 || c.S.Option("pipefail", x.Seq) || x.File != "" {
			return
		}
		if !training(l) && l.Kind != fact.LaunchWrapper {
			return
		}
		// A helper in the batch shell is no training.
		if l.Step < 0 && !distributed(l) && (l.Kind == fact.LaunchWrapper && l.Program != "" || !c.S.Request.GPUAsked) && !trainName.MatchString(l.Program) {
			return
		}
		to := x.PipeTo[len(x.PipeTo)-1]
		if to == "" || to == "while" || c.says("pipestatus") {
			return
		}
		c.Hit(x.Pos, "to", to)
	})
})
