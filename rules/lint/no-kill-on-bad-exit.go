package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("no-kill-on-bad-exit", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st != nil && st.Tool == "srun" && st.Opt("kill-on-bad-exit") == nil && st.EffTasks > 1 && len(c.out) == 0 && !c.assigned("SLURM_KILL_BAD_EXIT") && training(l) {
			c.Hit(st.Pos)
		}
	})
})
