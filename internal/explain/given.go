package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	allocates = lazyre.New(`^(?:exec )?(?:salloc|srun .*--pty|srun\s+(?:-\w\s*\S+\s+|--[\w-]+(?:[= ]\S+)?\s+)*-(?:-time|t|-partition|p)\b)`)
	// options whose values are names, in which "gpu" asks for nothing
	namesOnly = lazyre.New(`\s(?:--(?:partition|account|qos|job-name|nodelist|exclude|reservation)[= ]\S+|-[pAqJwx]\s*\S+)`)
	asksGPU   = lazyre.New(`gres|gpu|\s-G\s*\d|--exclusive|tres-per`)
)

// allocatedWithoutGPU finds a typed salloc, or an srun that makes its own
// allocation, that asks for no GPU.
func (v *view) allocatedWithoutGPU() (fact.ShellCmd, bool) {
	var found fact.ShellCmd
	for _, c := range v.l.Commands {
		if !allocates.MatchString(c.Text) {
			continue
		}
		if asksGPU.MatchString(namesOnly.ReplaceAllString(c.Text, "")) {
			return fact.ShellCmd{}, false
		}
		found = c
	}
	return found, found.Line > 0
}

// inheritedOption finds an option that a variable of an outer session or job
// gives to sbatch.
func (v *view) inheritedOption() (fact.Said, bool) {
	inside := false
	var opt fact.Said
	for _, s := range v.facts(kind.Env) {
		inside = inside || s.Name == "SLURM_JOB_ID" || s.Name == "SLURM_JOBID"
		if strings.HasPrefix(s.Name, "SBATCH_") && opt.Line == 0 {
			opt = s
		}
	}
	return opt, inside && opt.Line > 0
}

// torchOutside returns what the input says about a torch outside of ~/.local:
// printed with the user's own packages left out, or from the path of another.
func (v *view) torchOutside() []fact.Said {
	var out []fact.Said
	for _, s := range v.facts(kind.TorchPath) {
		if !strings.Contains(s.V, "/.local/") && strings.HasPrefix(s.V, "/") {
			out = append(out, s)
		}
	}
	for _, s := range v.facts(kind.TorchDist) {
		if !strings.Contains(s.Name, "/.local/") {
			out = append(out, s)
		}
	}
	for _, s := range v.facts(kind.TorchVer) {
		for _, c := range v.l.Commands {
			if c.File == s.File && c.Line < s.Line && s.Line-c.Line < 8 && withoutUser.MatchString(c.Text) {
				out = append(out, s)
			}
		}
	}
	return out
}

var withoutUser = lazyre.New(`\bpython[\d.]* (?:-\w+ )*-(?:s|I)\b|PYTHONNOUSERSITE=\w|\b(?:apptainer|singularity)\b.* (?:--no-home|--contain(?:all)?|--no-mount[ =]\S*home\S*|-C|-c)\s`)

// ncclDiffers judges an NCCL failure of a job whose nodes print different
// versions of NCCL.
func (v *view) ncclDiffers() {
	by := map[string]fact.Said{}
	for _, s := range v.facts(kind.NCCLVer) {
		if s.Node != "" {
			if _, ok := by[s.Node]; !ok {
				by[s.Node] = s
			}
		}
	}
	var a, b fact.Said
	for _, s := range v.facts(kind.NCCLVer) {
		switch o := by[s.Node]; {
		case s.Node == "" || o.Line != s.Line:
		case a.Line == 0:
			a = s
		case s.V != a.V && b.Line == 0:
			b = s
		}
	}
	var es []*fact.Event
	for _, x := range v.excTyped("DistBackendError") {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300)})
	}
	if a.Line == 0 || b.Line == 0 || len(es) == 0 {
		return
	}
	c := v.add(cand{id: "nccl-version-differs-between-nodes", cert: diag.Likely, tier: 1, over: []string{"net-interface-wrong"}, args: diag.Args{"versions": a.V + ", " + b.V}}, cap4(es)...)
	v.said(c, a, b)
}
