package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("nodes-unpinned", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if !c.submitted() || r.Nodes > 0 || r.EffectiveNodes > 1 || s.Opt("nodelist") != nil || len(s.Steps) > 0 || c.wholeNode() || s.Opt("ntasks-per-gpu") != nil {
		return
	}
	switch {
	case r.Tasks > 1 && (r.TasksPerNode == 0 || r.TasksPerNode < r.Tasks):
	case r.GPUs > 1 && r.Tasks == 0 && r.TasksPerNode == 0:
	default:
		return
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if len(c.out) > 0 || !distributed(l) || given(l.Hostfile) {
			return
		}
		if n := c.nproc(l); n > 1 || given(l.Nproc) && n == 0 {
			c.Hit(l.Pos, "tasks", itoa(max(r.Tasks, 1)), "gpus", itoa(r.GPUs))
		}
	})
})
