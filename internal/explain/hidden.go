package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// batchScript is the script that Slurm ran, nil when it was not to be had.
func (v *view) batchScript() *script {
	for _, s := range v.scripts {
		if s.f.Batch {
			return s
		}
	}
	return nil
}

// hides reports that the job's script can end with status 0 although a program
// that it ran failed: behind a pipe, in the background, before another command.
// Then the state COMPLETED says nothing of them.
func (v *view) hides() bool {
	s := v.batchScript()
	switch {
	case s == nil:
		return true // nobody knows
	case s.f.Shell == "python":
		return false // the status is the program's own
	case s.blind():
		return true
	}
	if strings.Contains(string(s.f.Src), "PIPESTATUS") || strings.Contains(string(s.f.Src), "$?") {
		return false // it looks after the status itself
	}
	last := [2]int{}
	for _, t := range slices.Backward(s.f.Top) {
		if t.Kind != "func" {
			last = t.Cmds
			break
		}
	}
	for i := range s.f.Commands {
		c := &s.f.Commands[i]
		if c.Dead || c.Subst || c.Trap || !v.works(s, i) {
			continue
		}
		top := i
		for s.f.Commands[top].Outer >= 0 {
			top = s.f.Commands[top].Outer
		}
		x := &s.f.Commands[top]
		switch {
		case x.Back || x.Neg || x.OrElse:
			return true
		case len(x.PipeTo) > 0 && !s.f.Option("pipefail", x.Seq):
			return true
		case !s.f.Option("e", x.Seq) && (top < last[0] || top >= last[1]):
			return true
		}
	}
	return false
}

// works reports a command that does the job's work: it starts a step, a
// launcher or a Python, or the log says that it could not be started.
func (v *view) works(s *script, cmd int) bool {
	c := &s.f.Commands[cmd]
	if launchNames.MatchString(c.Name) || c.Name == "srun" || c.Name == "mpirun" || c.Name == "mpiexec" || s.launches(cmd) {
		return true
	}
	return len(c.Words) > 0 && slices.ContainsFunc(v.l.Events, func(e fact.Event) bool {
		return e.Rule == "log-program-not-found" && !e.Quoted && e.Args["program"] == c.Words[0].Text
	})
}

// notStarted reports that a job whose status says nothing could not start the
// program that it is about, and that nothing else did its work.
func (v *view) notStarted() bool {
	j := v.l.Job
	if j == nil || !v.masked || slices.ContainsFunc(j.Steps, func(s fact.JobStep) bool { return s.ID != "batch" && s.ID != "extern" && s.State == "COMPLETED" }) {
		return false
	}
	var gs []gone
	names := map[string]bool{}
	for i := range v.l.Events {
		e := &v.l.Events[i]
		if e.Quoted || e.After >= 3 || !slices.Contains(goneRules, e.Sig) && !slices.Contains(goneRules, e.Rule) {
			continue
		}
		if g, ok := v.goneOf(e); ok {
			gs = append(gs, g)
			names[g.program] = true
		}
	}
	other := false // the script starts something besides what is missing
	if s := v.batchScript(); s != nil {
		for i := range s.f.Commands {
			c := &s.f.Commands[i]
			other = other || !c.Dead && c.Name != "srun" && v.works(s, i) && !slices.ContainsFunc(c.Words, func(w fact.Word) bool { return names[w.Text] })
		}
	}
	return slices.ContainsFunc(gs, func(g gone) bool { return g.step || !other })
}
