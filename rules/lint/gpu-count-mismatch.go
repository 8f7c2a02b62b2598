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
		arg, asked := fact.Word{}, 0
		if l.Kind == fact.LaunchPython {
			arg, asked = gpuArg(l)
			if n := hydraProcs(l); n > 0 {
				asked, arg = n, hydraWord(l)
			}
		}
		if st := c.stepOf(l); st != nil {
			// A task for each device is how Lightning counts.
			if st.Unknown || st.EffTPN != 1 && (asked == 0 || st.EffTPN != asked || st.GPUsPerTask > 0 || r.GPUsPerTask > 0) {
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
		line, limit := gpuLine(c), ""
		if v := visible(c, l, cmd); v != nil {
			n, known := visibleCount(v)
			if !known || n == 0 || n > g {
				return // a CPU run, or the rule cvd-hard-coded speaks of it
			}
			if n < g {
				line, limit = v.Line, v.Value.Text
			}
			have = n
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
				h := c.Hit(wordPos(l.Nproc, l.Pos), "nproc", itoa(n), "gpus", itoa(have), "launcher", l.Kind, "line", itoa(line), "visible", limit)
				if limit != "" {
					h.Args["variant"] = "visible"
				}
			case n > 0 && n < have && !l.Back && many == 1 && l.Cond == 0 && have == g && r.GPUsPerTask == 0 && !c.says("vllm", "sglang", "- 1))", "-1))"): // a server has the others
				c.Hit(wordPos(l.Nproc, l.Pos), "variant", "fewer", "nproc", itoa(n), "gpus", itoa(have), "launcher", l.Kind, "line", itoa(line)).Sev(diag.Warning)
			}
			return
		}
		if l.Kind != fact.LaunchPython {
			return
		}
		st := c.stepOf(l)
		if hydraProcs(l) > have {
			c.Hit(arg.Pos, "nproc", itoa(asked), "gpus", itoa(have), "launcher", "hydra", "line", itoa(line))
			return
		}
		perNode := st != nil && st.EffTPN == asked && strings.Contains(arg.Text, "devices")
		if asked > have && (asked > g*max(c.nodes(), 1) || perNode) {
			c.Hit(arg.Pos, "variant", "argument", "nproc", itoa(asked), "gpus", itoa(have), "launcher", arg.Text, "line", itoa(line))
		}
	})
})

// visible is the assignment of CUDA_VISIBLE_DEVICES in force for a launch, or nil.
func visible(c *Ctx, l *fact.Launch, cmd *fact.ScriptCmd) *fact.Assign {
	v := c.S.Var("CUDA_VISIBLE_DEVICES", cmd.Seq)
	for i := range c.S.Assigns { // CUDA_VISIBLE_DEVICES=0,1 torchrun
		if a := &c.S.Assigns[i]; a.Prefix && a.Name == "CUDA_VISIBLE_DEVICES" && (a.Cmd == l.Cmd || a.Cmd == c.outermostIndex(l.Cmd)) {
			v = a
		}
	}
	return v
}

// visibleCount is how many devices an assignment leaves: none for "" and "-1",
// which ends the list wherever it stands.
func visibleCount(v *fact.Assign) (n int, known bool) {
	if v.Unset || !v.Value.Known {
		return 0, false
	}
	for _, id := range strings.Split(v.Value.Text, ",") {
		id = strings.TrimSpace(id)
		if id == "" || strings.HasPrefix(id, "-") || strings.EqualFold(id, "NoDevFiles") {
			break
		}
		n++
	}
	return n, true
}
