package explain

import (
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// gone is a program that a shell, a wrapper or a step could not start.
type gone struct {
	*fact.Event
	program string // as the message writes it
	why     string // missing, path, denied, interpreter
	step    bool   // slurmstepd says so: the task itself did not start
}

// launchNames are programs that an environment brings along: when one of them is
// not on PATH, the environment is not active.
var launchNames = lazyre.New(`^(?:python\d?(?:\.\d+)?|torchrun|accelerate|deepspeed|composer|colossalai|lightning|fabric)$`)

// goneRules are the log rules that tell of such programs, the most telling first.
var goneRules = []string{"S106", "log-python-command-not-found", "S290", "S459", "log-program-not-found"}

// otherRule are programs whose absence has a meaning of its own, judged elsewhere.
var otherRule = lazyre.New(`^(?:module|ml|conda|mamba|micromamba|activate|nvidia-smi|nvcc|setenv|sbatch|salloc|squeue|scontrol|srun|source|\[\[|export|shopt|declare|local|function|\S*/activate|\S*conda\.sh|\S*/modules?\.sh|\$.*)$`)

// gonePrograms returns what could not be started, one for each line, in order.
func (v *view) gonePrograms() []gone {
	type line struct{ file, line int }
	seen := map[line]bool{}
	var out []gone
	for _, r := range goneRules {
		for _, e := range v.ev(r) {
			g, ok := v.goneOf(e)
			if at := (line{e.File, e.Line}); ok && !seen[at] {
				seen[at] = true
				out = append(out, g)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b gone) int {
		switch {
		case before(a.Place, b.Place):
			return -1
		case before(b.Place, a.Place):
			return 1
		}
		return 0
	})
	return out
}

func (v *view) goneOf(e *fact.Event) (gone, bool) {
	g := gone{Event: e, program: e.Args["program"], step: e.Sig == "S290"}
	for _, k := range []string{"path", "program"} {
		if g.program == "" {
			g.program = e.Args[k]
		}
	}
	if g.program == "" {
		if m := notFound.FindStringSubmatch(e.Text); m != nil {
			g.program = m[1]
		} else if e.Sig == "S106" {
			g.program = "torchrun"
		} else {
			return g, false
		}
	}
	if strings.ContainsAny(g.program, "\r") || strings.Contains(g.program, `\r`) || strings.Contains(e.Text, "^M") || otherRule.MatchString(g.program) {
		return g, false
	}
	switch err := e.Args["error"]; {
	case e.Args["interpreter"] != "" || strings.HasPrefix(err, "bad interpreter"):
		g.why = "interpreter"
	case strings.HasPrefix(err, "Permission denied"):
		g.why = "denied"
	case strings.HasPrefix(err, "Exec format"):
		return g, false // of another machine
	case strings.Contains(g.program, "/") || e.Sig == "S459":
		g.why = "path"
	default:
		g.why = "missing"
	}
	if e.Rule == "log-program-not-found" && (g.why == "denied" || strings.HasPrefix(e.Args["error"], "No such file")) && !v.isProgram(g.program) {
		return g, false // a redirection or a sourced file reads the same
	}
	return g, true
}

// isProgram tells a program that a shell cannot start from a file that it cannot
// open: both read the same.
func (v *view) isProgram(name string) bool {
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			c := &s.f.Commands[i]
			for _, r := range c.Redir {
				if r.Word.Text == name {
					return false
				}
			}
			for k, w := range c.Words {
				if w.Text == name {
					return k == 0 || c.Name != "source" && c.Name != "."
				}
			}
		}
	}
	base := path.Base(name)
	return launchNames.MatchString(base) || strings.Contains(name, "/bin/") || strings.HasSuffix(base, ".sh") || strings.HasSuffix(base, ".py")
}

// decidePrograms judges programs that could not be started. The forms in which
// shells, wrappers and steps say so lead to one cause: an environment that is not
// active when the program belongs to one, else a program that is not there. It
// reports whether nothing more is to be judged of the environment.
func (v *view) decidePrograms(all []gone) bool {
	if len(all) == 0 {
		return false
	}
	var es []*fact.Event
	for _, g := range all {
		es = append(es, g.Event)
	}
	var launch []gone
	for _, g := range all {
		if g.step || g.why == "missing" && launchNames.MatchString(g.program) {
			launch = append(launch, g)
		}
	}
	if len(launch) == 0 {
		v.addProgram(all)
		return false
	}
	g, es := launch[0], es[:0]
	for _, x := range launch {
		es = append(es, x.Event)
	}
	args := diag.Args{"program": g.program}
	if g.why == "missing" {
		c := cand{id: "env-not-exported", cert: diag.Likely, args: args}
		if g.step {
			c.cert = diag.Proven
		}
		if val, s, ok := v.env("SLURM_EXPORT_ENV"); g.step && ok && val != "" && !strings.HasPrefix(val, "ALL") {
			p := v.add(c, cap4(es)...)
			v.said(p, s)
			v.exportLine(p)
			return true
		}
		if v.exportLine(&c) {
			v.add(c, cap4(es)...)
			return true
		}
	}
	if g.step && (strings.Contains(g.Text, `\r`) || v.crlf()) {
		v.add(cand{id: "slurm-script-line-endings", cert: diag.Proven}, cap4(es)...)
		return true
	}
	if g.why != "missing" || !launchNames.MatchString(g.program) {
		v.addProgram(launch)
		return true
	}
	if v.orderOfShell(nil, es) {
		return true
	}
	c := v.add(cand{id: "env-not-activated", cert: diag.Proven, args: args, over: []string{"torch-not-installed"}}, cap4(es)...)
	if g.step && len(v.batch()) == 0 { // the options of the step are not known
		c.cert = diag.Likely
		c.needs = append(c.needs, "env | grep SLURM_EXPORT_ENV", "grep -n -e --export -e activate job.sbatch")
	}
	v.noActivation(c)
	v.said(c, first(v.facts(kind.Which), 2)...)
	return true
}

// addProgram names a program that is not there. A shell goes on after such a
// line: it is the cause for certain when the status says so or the task was it.
func (v *view) addProgram(gs []gone) {
	g := gs[len(gs)-1] // the last one gave the status
	if gs[0].step {
		g = gs[0]
	}
	if g.why == "denied" && v.exited(127) && !g.step {
		return // that is status 126
	}
	c := cand{id: "env-program-missing", cert: diag.Likely, tier: 1, args: diag.Args{"variant": g.why, "program": g.program}}
	status := map[string]int{"missing": 127, "path": 127, "denied": 126, "interpreter": 126}[g.why]
	switch {
	case g.step, g.Sig == "S459", v.exited(status), v.exited(127):
		c.cert, c.tier = diag.Proven, 0
	case !v.dead:
		return
	default:
		c.needs = []string{"sacct -j JOBID -o JobID,State,ExitCode", "srun --ntasks=1 which -a " + fact.ShellWord(g.program)}
	}
	if g.why == "denied" || g.why == "interpreter" {
		c.args["why"] = g.why
	}
	if g.why == "interpreter" && g.Args["interpreter"] == "" {
		c.args["variant"] = "path"
	}
	c.args["program_word"] = fact.ShellWord(g.program)
	if strings.Contains(g.program, "/") || g.Sig == "S459" {
		c.args["path_word"] = fact.ShellWord(g.program)
	} else {
		c.args["name_word"] = fact.ShellWord(g.program)
	}
	c.rule = g.Rule
	if g.Sig == "S290" || g.Rule == "log-program-not-found" {
		c.rule = "env-program-missing"
	}
	var es []*fact.Event
	for _, x := range gs {
		if x.program == g.program {
			es = append(es, x.Event)
		}
	}
	v.add(c, cap4(es)...)
}

// exited reports that a command, a step or the batch script ended with a status.
func (v *view) exited(code int) bool {
	for _, x := range v.l.Exits {
		if x.Code == code {
			return true
		}
	}
	j := v.l.Job
	if j == nil {
		return false
	}
	for i := range j.Steps {
		if j.Steps[i].Exit.Or(fact.ExitStatus{}).Code == code {
			return true
		}
	}
	return j.Exit.Or(fact.ExitStatus{}).Code == code
}

// statusOnly judges the exit status 127 of a job that left no other sign.
func (v *view) statusOnly() {
	j := v.l.Job
	if j == nil || len(v.cands) > 0 || !v.exited(127) || j.State.Or("") == "COMPLETED" {
		return
	}
	at := j.Exit.At
	for i := range j.Steps {
		if s := &j.Steps[i]; s.Exit.Or(fact.ExitStatus{}).Code == 127 {
			at = s.At
		}
	}
	c := v.slurmSays(cand{id: "env-program-missing", cert: diag.Possible, tier: 2, args: diag.Args{"variant": "status"},
		needs: []string{"a run without --error=/dev/null and 2>/dev/null, in which the shell names the command"}}, at)
	c.rule = "env-program-missing"
}
