package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torchrun-per-gpu-task", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || !c.inSrun(l) || !distributed(l) || l.Kind == fact.LaunchHorovod || st.EffTPN < 2 {
			return
		}
		n := c.nproc(l)
		if l.Kind == fact.LaunchAccelerate && n == 0 {
			n, _ = num(l.Nproc)
		}
		if n == 0 && (l.Nproc.Text == "gpu" || l.Nproc.Text == "auto") {
			n = c.gpus()
		}
		if n < 2 || st.GPUsPerTask == n || c.S.Request.GPUsPerTask == n {
			return
		}
		c.Hit(l.Pos, "launcher", l.Kind, "tasks", itoa(st.EffTPN), "nproc", itoa(n), "ranks", itoa(st.EffTPN*n))
	})
})
