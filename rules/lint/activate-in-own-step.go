package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("activate-in-own-step", func(c *Ctx) {
	if !c.says("activate") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" || x.Step < 0 || x.Cond > 0 || activation(x) == "" || c.S.Steps[x.Step].Tool != "srun" {
			continue
		}
		if l := c.lostTo(x); l != nil {
			c.Hit(x.Pos, "command", clip(x.Name+" "+x.Words[1].Text, 60), "program", show(l), "line", itoa(l.Line))
			return
		}
	}
})

// lostTo returns the first training after a step that has nothing but the
// activation in it, when nothing activates an environment for the training.
func (c *Ctx) lostTo(act *fact.ScriptCmd) *fact.Launch {
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		switch {
		case x.Dead || x == act:
		case x.Step == act.Step && x.Seq > act.Seq:
			return nil // it is for what follows in the step
		case x.Step != act.Step && (activation(x) != "" || x.Name == "module" || x.Name == "ml" || x.Name == "source" || x.Name == "." || x.Name == "eval"):
			return nil
		}
	}
	if c.assigned("PATH") {
		return nil
	}
	var first *fact.Launch
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		if first == nil && cmd.Seq > act.Seq && training(l) && l.Container == nil && !strings.Contains(l.Python, "/") && !l.Guessed {
			first = l
		}
	})
	return first
}
