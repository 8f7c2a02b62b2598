package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torchrun-per-gpu-task", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if n := hydraProcs(l); n >= 2 && st != nil && c.inSrun(l) && st.EffTPN >= 2 && !st.Unknown {
			c.Hit(hydraWord(l).Pos, "launcher", "hydra", "tasks", itoa(st.EffTPN), "nproc", itoa(n), "ranks", itoa(st.EffTPN*n))
			return
		}
		if st == nil || !c.inSrun(l) || !distributed(l) || l.Kind == fact.LaunchHorovod {
			return
		}
		if st.EffTPN < 2 {
			// --ntasks-per-node=${GPUS} and --nproc_per_node=${GPUS}: whatever it is.
			v := c.variableOption("ntasks-per-node")
			if hs := c.S.HolesOf(l.Nproc.Val); v != "" && elastic(l) && len(hs) == 1 && len([]rune(l.Nproc.Val)) == 1 && hs[0].Name == v && hs[0].Kind == "var" && !st.Unknown && st.Opt("ntasks") == nil && st.Opt("ntasks-per-node") == nil && st.Opt("nodes") == nil {
				c.Hit(l.Pos, "variant", "same", "launcher", l.Kind, "tasks", "$"+v, "nproc", "$"+v, "ranks", "").Certainty = diag.Likely
			}
			return
		}
		if l.Kind == fact.LaunchDeepSpeed && given(l.Hostfile) && c.gpus() > 1 {
			g := c.gpus()
			c.Hit(l.Pos, "launcher", l.Kind, "tasks", itoa(st.EffTPN), "nproc", itoa(g), "ranks", itoa(st.EffTPN*g))
			return
		}
		n := c.nproc(l)
		if l.Kind == fact.LaunchAccelerate && n == 0 {
			n, _ = num(l.Nproc)
		}
		if n == 0 && (l.Nproc.Text == "gpu" || l.Nproc.Text == "auto") {
			n = c.gpus()
		}
		if n == 0 && perGPU(c, l, st) {
			g := c.gpus()
			c.Hit(l.Pos, "variant", "likely", "launcher", l.Kind, "tasks", itoa(st.EffTPN), "nproc", l.Nproc.Text, "ranks", itoa(st.EffTPN*g)).Certainty = diag.Likely
			return
		}
		if n < 2 || st.GPUsPerTask == n || c.S.Request.GPUsPerTask == n {
			return
		}
		c.Hit(l.Pos, "launcher", l.Kind, "tasks", itoa(st.EffTPN), "nproc", itoa(n), "ranks", itoa(st.EffTPN*n))
	})
})

// perGPU reports that the job has a task for each GPU of a node, and that the
// launcher takes its number of processes from a variable named after GPUs or
// processes: who wants one process writes 1.
func perGPU(c *Ctx, l *fact.Launch, st *fact.Step) bool {
	if !elastic(l) || l.Open || !given(l.Nproc) || st.EffTPN != c.gpus() || st.GPUsPerTask > 0 || c.S.Request.GPUsPerTask > 0 {
		return false
	}
	hs := c.S.HolesOf(l.Nproc.Val)
	if len(hs) != 1 || len([]rune(l.Nproc.Val)) != 1 {
		return false
	}
	n := strings.ToLower(hs[0].Name + l.Nproc.Raw)
	return !strings.Contains(n, "task") && (strings.Contains(n, "gpu") || strings.Contains(n, "proc"))
}
