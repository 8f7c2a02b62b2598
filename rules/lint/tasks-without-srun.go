package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("tasks-without-srun", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if !c.submitted() || len(s.Steps) > 0 || s.CallsSbatch || c.sourcedUnknown() {
		return
	}
	n := r.Tasks
	if n == 0 {
		n = r.TasksPerNode * max(r.EffectiveNodes, 1)
	}
	if n < 2 {
		return
	}
	var first *fact.Launch
	for i := range s.Launches {
		l := &s.Launches[i]
		if l.Kind != fact.LaunchPython {
			return
		}
		if first == nil && !l.Dead {
			first = l
		}
	}
	if first != nil {
		c.Hit(first.Pos, "tasks", itoa(n))
	}
})
