package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("pipe-hides-exit", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		x := c.outermost(l.Cmd)
		if in := &c.S.Commands[l.Cmd]; len(x.PipeTo) == 0 && in != x && c.lastOfShell(in) {
			x = c.pipeInside(x, in)
		}
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

// pipeInside is the command itself for the pipe that it stands in when that is
// the last of a shell of its own: bash -c "python train.py | tee log".
func (c *Ctx) pipeInside(outer, in *fact.ScriptCmd) *fact.ScriptCmd {
	if outer.Neg || outer.Back || outer.Trap || outer.Subst || len(in.PipeTo) == 0 || c.says("pipefail") {
		return outer
	}
	return in
}

// lastOfShell reports that nothing but the rest of its pipe follows a command in
// the shell that runs it.
func (c *Ctx) lastOfShell(in *fact.ScriptCmd) bool {
	for i := range c.S.Commands {
		if y := &c.S.Commands[i]; y.Outer == in.Outer && y.Seq > in.Seq && !y.Piped {
			return false
		}
	}
	return true
}
