package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-count-mismatch", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	g := c.gpus()
	if g == 0 || !c.submitted() || s.HetGroups > 0 {
		return
	}
	many := 0
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if distributed(l) {
			many++
		}
	})
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		have := g
		if st := c.stepOf(l); st != nil {
			if st.Unknown || st.EffTPN != 1 {
				return
			}
			if st.GPUsPerTask > 0 {
				have = st.GPUsPerTask
			}
			for _, o := range st.Opts {
				if o.Name == "gres" || o.Name == "gpus" || o.Name == "gpus-per-node" {
					return
				}
			}
		}
		if v := c.S.Var("CUDA_VISIBLE_DEVICES", cmd.Seq); v != nil {
			if !v.Value.Known {
				return
			}
			have = len(strings.Split(v.Value.Text, ","))
			if have > g {
				return
			}
		}
		if distributed(l) {
			if !given(l.Nproc) || c.gloo() || c.says("--use_cpu") {
				return
			}
			n := c.nproc(l)
			if _, ok := num(l.Nproc); !ok {
				return // gpu, auto, a count of what is there
			}
			switch {
			case n > have:
				if n == have*max(c.nodes(), 1) && l.Kind == fact.LaunchAccelerate {
					return
				}
				c.Hit(wordPos(l.Nproc, l.Pos), "nproc", itoa(n), "gpus", itoa(have), "launcher", l.Kind, "line", itoa(gpuLine(c)))
			case n > 0 && n < have && !l.Back && many == 1 && l.Cond == 0 && have == g && r.GPUsPerTask == 0:
				c.Hit(wordPos(l.Nproc, l.Pos), "variant", "fewer", "nproc", itoa(n), "gpus", itoa(have), "launcher", l.Kind, "line", itoa(gpuLine(c))).Sev(diag.Warning)
			}
			return
		}
		if l.Kind != fact.LaunchPython {
			return
		}
		if w, n := gpuArg(l); n > have && n > g*max(c.nodes(), 1) {
			c.Hit(w.Pos, "variant", "argument", "nproc", itoa(n), "gpus", itoa(have), "launcher", w.Text, "line", itoa(gpuLine(c)))
		}
	})
})
