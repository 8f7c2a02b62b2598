package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("activate-after-launch", func(c *Ctx) {
	var first *fact.Launch
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if first == nil && training(l) && c.outermost(l.Cmd).File == "" {
			first = l
		}
	})
	if first == nil || first.Container != nil || strings.Contains(first.Python, "/") {
		return
	}
	seq := c.S.Commands[first.Cmd].Seq
	var act *fact.ScriptCmd
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.Trap || x.File != "" {
			continue
		}
		if x.Seq < seq && (activation(x) != "" || x.Name == "module" || x.Name == "ml" || x.Name == "source" || x.Name == "." || x.Name == "eval" || x.Name == "uv") {
			return
		}
		if x.Seq > seq && activation(x) != "" && act == nil && x.Cond == 0 && x.Loop == 0 {
			act = x
		}
	}
	if act == nil || c.assigned("PATH") {
		return
	}
	// A second launch after it uses it.
	later := false
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) { later = later || cmd.Seq > act.Seq })
	if later {
		return
	}
	c.Hit(act.Pos, "line", itoa(first.Line), "program", show(first))
})
