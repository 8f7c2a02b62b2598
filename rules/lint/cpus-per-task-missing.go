package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cpus-per-task-missing", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if !c.submitted() || r.EffectiveTPN != 1 || r.CPUsPerTask > 0 || r.CPUsPerGPU > 0 || r.Exclusive || r.MemMiB == -1 || s.HetGroups > 0 {
		return
	}
	if !r.GPUAsked || s.Opt("nodes") == nil && s.Opt("ntasks") == nil && s.Opt("ntasks-per-node") == nil && r.Seconds == 0 && r.MemMiB == 0 {
		return // the rest may come with the command line
	}
	for _, o := range []string{"mincpus", "cores-per-socket", "threads-per-core", "constraint", "exclusive", "extra-node-info", "sockets-per-node", "environment", "uenv"} {
		if s.Opt(o) != nil {
			return
		}
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if len(c.out) > 0 {
			return
		}
		n := hydraProcs(l)
		if distributed(l) {
			n = c.nproc(l)
		}
		if n >= 2 {
			c.Hit(l.Pos, "nproc", itoa(n))
		}
	})
})
