package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("srun-cpus-not-forwarded", func(c *Ctx) {
	if c.S.Request.CPUsPerTask < 2 || c.assigned("SRUN_CPUS_PER_TASK") {
		return
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st != nil && st.Tool == "srun" && st.Opt("cpus-per-task") == nil && st.Opt("cpus-per-gpu") == nil && st.Opt("exclusive") == nil && !st.Unknown && len(c.out) == 0 {
			c.Hit(st.Pos, "cpus", itoa(c.S.Request.CPUsPerTask))
		}
	})
})
