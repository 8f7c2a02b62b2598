package lint

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cvd-hard-coded", func(c *Ctx) {
	g := c.gpus()
	if !c.submitted() || g == 0 {
		return
	}
	if r := &c.S.Request; r.GPUsPerTask > 0 && r.GPUsPerNode == 0 && r.GresGPUs == 0 && r.Nodes == 0 && r.Tasks == 0 && r.TasksPerNode == 0 {
		return // how many tasks comes with the command line
	}
	if hidden(c) {
		return
	}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if a.Name != "CUDA_VISIBLE_DEVICES" || a.Dead || a.Unset || a.File != "" || !a.Value.Known || a.Value.Text == "" || a.Value.Text == "-1" || len(c.out) > 0 {
			continue
		}
		if a.Prefix && a.Cmd >= 0 && a.Cmd < len(c.S.Commands) && c.outermost(a.Cmd).Back {
			continue // one GPU for each of several programs
		}
		ids := strings.Split(a.Value.Text, ",")
		// All of them in another order is a choice, not a slip.
		all := map[int]bool{}
		for _, id := range ids {
			n, err := strconv.Atoi(strings.TrimSpace(id))
			if err != nil {
				return // a UUID
			}
			all[n] = n >= 0 && n < g
		}
		same := len(ids) == g && len(all) == g
		for _, in := range all {
			same = same && in
		}
		if !same {
			c.Hit(a.Pos, "value", a.Value.Text, "gpus", itoa(g))
		}
	}
})

// hidden reports a launcher of several processes for GPUs that the job asks for
// and the script hides: CUDA_VISIBLE_DEVICES is empty or -1.
func hidden(c *Ctx) bool {
	if c.saysNoGPU() {
		return false
	}
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		v := visible(c, l, cmd)
		if len(c.out) > 0 || v == nil || !distributed(l) || l.Cond > 0 || v.Cond > 0 || c.nproc(l) == 1 {
			return
		}
		if n, known := visibleCount(v); known && n == 0 {
			c.Hit(v.Pos, "variant", "none", "value", v.Value.Text, "gpus", itoa(c.gpus()), "launcher", show(l))
		}
	})
	return len(c.out) > 0
}
