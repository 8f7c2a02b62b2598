package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("no-gpu-requested", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if !c.submitted() || r.GPUAsked || r.Exclusive || s.Opt("exclusive") != nil || s.HetGroups > 0 || len(s.Placeholders) > 0 {
		return
	}
	for _, d := range s.Directives {
		if strings.HasPrefix(d.Name, "gpus") {
			return // --gpus=0 is said on purpose
		}
	}
	if s.Opt("gres") != nil || s.Opt("constraint") != nil || s.Opt("tres-per-node") != nil || s.Opt("licenses") != nil || s.Opt("reservation") != nil {
		return
	}
	if s.Opt("nodes") == nil && s.Opt("ntasks") == nil && s.Opt("ntasks-per-node") == nil {
		return // the rest comes on the command line
	}
	// A header that reserves CPUs or memory describes a part of a node; one that
	// does not may be of a site that gives whole nodes.
	if r.CPUsPerTask == 0 && r.MemMiB <= 0 && r.MemPerCPUMiB == 0 || r.EffectiveNodes > 1 {
		return
	}
	for _, d := range s.Directives {
		if !d.Known || strings.Contains(strings.ToLower(d.Value), "gres/gpu") {
			return // a site with options of its own
		}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		for _, o := range st.Opts {
			if strings.HasPrefix(o.Name, "gpus") || o.Name == "gres" || strings.HasPrefix(o.Name, "container") {
				return
			}
		}
		if st.Tool == "ibrun" || st.Tool == "aprun" || st.Tool == "jsrun" || st.Tool == "lrun" {
			return
		}
	}
	if c.gpusFromOutside() || c.cpuOnly() || !c.gpuSign() || c.amd() || notTraining.MatchString(strings.ToLower(c.S.Name+" "+r.Partition+" "+r.JobName)) {
		return
	}
	var hit *fact.Launch
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if hit == nil && training(l) {
			hit = l
		}
	})
	if hit != nil {
		c.Hit(hit.Pos, "program", clip(show(hit), 60))
	}
})

// gpusFromOutside reports that the script reads a number of GPUs that it does
// not set, or ends without a value that it does not set: who submits it gives
// that, and the option that asks for GPUs.
func (c *Ctx) gpusFromOutside() bool {
	for i := range c.S.Reads {
		r := &c.S.Reads[i]
		if r.Set || r.Dead || r.Default {
			continue
		}
		n := strings.ToUpper(r.Name)
		if r.Tested && n == r.Name && len(n) > 1 && !strings.HasPrefix(n, "SLURM") && !c.assigned(r.Name) && gives(c, r.Line) {
			return true
		}
		if strings.Contains(n, "GPU") && !strings.HasPrefix(n, "SLURM") && !strings.HasPrefix(n, "GPU_DEVICE") && !strings.HasPrefix(n, "CUDA") && !c.assigned(r.Name) {
			return true
		}
	}
	return false
}

// notTraining are words of jobs that work on CPUs.
var notTraining = lazyre.New(`download|prepost|preproc|prepare|tokeni|convert|cpu|archive|compile|build`)
