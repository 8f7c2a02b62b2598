package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("exclusive-without-gres", func(c *Ctx) {
	r := &c.S.Request
	if !r.Exclusive || r.GPUAsked || !c.submitted() || c.S.Opt("gres") != nil || c.cpuOnly() || !c.gpuSign() {
		return
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || st.Tool != "srun" || st.Unknown || !training(l) && l.Kind != fact.LaunchWrapper {
			return
		}
		for _, o := range st.Opts {
			if strings.HasPrefix(o.Name, "gpus") || strings.HasPrefix(o.Name, "gres") || strings.HasPrefix(o.Name, "tres") {
				return
			}
		}
		if len(c.out) == 0 {
			c.Hit(st.Pos)
		}
	})
})
