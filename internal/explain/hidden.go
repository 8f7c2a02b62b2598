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
// that it ran failed: behind a pipe, in the background, before another command,
// in the script itself or in a shell that it starts.
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
	if s.opaque() {
		return true
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
		if !c.Dead && !c.Subst && !c.Trap && v.works(s, i) && s.swallows(i, last) {
			return true
		}
	}
	return false
}

// opaque reports that a shell script does the work that is not to be had: its
// status may be that of anything in it.
func (s *script) opaque() bool {
	for i := range s.f.Launches {
		l := &s.f.Launches[i]
		if l.Kind != fact.LaunchWrapper || !l.Open || l.Dead || l.Program == "" {
			continue
		}
		if c := &s.f.Commands[l.Cmd]; shellNames[c.Name] || shellFile(c.Name) {
			return true
		}
	}
	return false
}

// swallows reports that the status of a command is lost on its way up: in the
// shell that runs it ("bash -c 'python t.py; sleep 1'"), or in one around that.
// last are the commands of the script's last statement.
func (s *script) swallows(cmd int, last [2]int) bool {
	for i := cmd; ; i = s.f.Commands[i].Outer {
		x := &s.f.Commands[i]
		switch {
		case x.Back || x.Neg || x.OrElse:
			return true
		case len(x.PipeTo) > 0 && !s.f.Option("pipefail", x.Seq):
			return true
		case x.Outer < 0:
			return !s.f.Option("e", x.Seq) && (i < last[0] || i >= last[1])
		case shellNames[s.f.Commands[x.Outer].Name] && s.goesOn(x.Outer, i):
			return true
		}
	}
}

// goesOn reports that a shell which a command of the script starts runs another
// command after one, whatever that one's status.
func (s *script) goesOn(shell, cmd int) bool {
	sh, x := &s.f.Commands[shell], &s.f.Commands[cmd]
	for _, w := range sh.Words[min(1, len(sh.Words)):] {
		if !strings.HasPrefix(w.Text, "-") {
			break
		}
		if !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "e") {
			return false // bash -ec
		}
	}
	if slices.ContainsFunc(s.f.Sets, func(o fact.ShellSet) bool { return o.Name == "e" && o.On && o.Seq > sh.Seq && o.Seq < x.Seq }) {
		return false
	}
	for i := cmd + 1; i < len(s.f.Commands); i++ {
		if y := &s.f.Commands[i]; y.Outer == shell && !y.Dead && !y.Subst && !y.Trap && !y.Piped && y.Cond <= x.Cond {
			return true
		}
	}
	return false
}

var shellNames = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true}

func shellFile(name string) bool {
	return strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".bash")
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
