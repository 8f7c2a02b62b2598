package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/mask"
)

var (
	noModule = lazyre.New(`No module named ['"]?([\w.]+)['"]?`)
	notFound = lazyre.New(`\b(torchrun|accelerate|deepspeed|python3?): (?:command )?not found`)
)

// otherPython returns a sign that the job ran another interpreter than the one
// that was activated: the launcher's "of binary:" outside of the environment.
func (v *view) otherPython() *fact.Said {
	want := ""
	for _, s := range v.scripts {
		for i := range s.f.Sources {
			if dir, ok := strings.CutSuffix(s.f.Sources[i].Path, "/bin/activate"); ok {
				want = dir
			}
		}
	}
	which := v.facts(kind.Which)
	for _, x := range v.l.Exits {
		if x.Binary == "" || !strings.HasPrefix(x.Binary, "/") {
			continue
		}
		p := prefixOf(x.Binary)
		said := fact.Said{Place: x.Place, Kind: "binary", V: x.Binary, Text: "of binary: " + x.Binary}
		for _, w := range which {
			if strings.HasPrefix(w.Name, "python") && prefixOf(w.V) != p {
				return &said
			}
		}
		if want != "" && len(which) == 0 && !strings.Contains(want, "$") && strings.HasPrefix(want, "/") && want != p {
			return &said
		}
	}
	return nil
}

// prefixOf cuts /bin/python3.11 off.
func prefixOf(exe string) string {
	if i := strings.LastIndex(exe, "/bin/"); i > 0 {
		return exe[:i]
	}
	return exe
}

// decideEnv judges what went wrong before Python could start, and imports that fail.
func (v *view) decideEnv() {
	conda := v.ev("S336", "S337")
	condaNone := v.ev("S338")
	noActivate := v.ev("S339", "S340", "log-conda-not-found")
	module := v.ev("S342", "S343", "S344", "S341", "log-module-conflict")
	dash := v.ev("S345", "S346", "log-sh-syntax-not-bash")
	_ = condaNone
	torchGone := v.missingTorch()
	any := v.missingModule()
	outside := v.queuedOutside()
	if len(dash) > 0 {
		c := v.add(cand{id: "slurm-script-shell", cert: diag.Proven, over: []string{"torch-not-installed", "env-not-activated", "run-exception", "env-module-failed"}}, cap4(dash)...)
		for _, s := range v.batch() {
			c.ev = append(c.ev, s.ev(fact.Pos{Line: 1}))
		}
	}
	if outside != nil {
		c := v.add(cand{id: "slurm-not-submitted", cert: diag.Proven, over: []string{"env-module-failed", "env-conda-not-initialised", "env-not-activated", "torch-not-installed", "env-not-exported", "run-exception"}}, outside)
		for _, s := range v.batch() {
			if ev := s.first(); ev != nil {
				c.ev = append(c.ev, ev...)
				break
			}
		}
	}
	over := []string{"torch-not-installed", "env-not-activated", "run-exception", "env-conda-not-initialised"}
	var firstShell *fact.Event
	missing := v.gonePrograms()
	if len(module) > 0 && (v.dead || len(torchGone) > 0 || len(any) > 0 || len(missing) > 0) {
		firstShell = module[0]
		v.add(cand{id: "env-module-failed", cert: diag.Proven, over: over}, cap4(module)...)
	}
	if len(conda) > 0 && (firstShell == nil || before(conda[0].Place, firstShell.Place)) && (v.dead || len(torchGone) > 0 || len(any) > 0 || len(missing) > 0) {
		firstShell = conda[0]
		v.add(cand{id: "env-conda-not-initialised", cert: diag.Proven, over: []string{"torch-not-installed", "env-not-activated", "run-exception"}}, cap4(conda)...)
	}
	if gone := v.byRule["log-conda-not-found"]; firstShell == nil && len(gone) > 0 && len(condaNone) == 0 {
		firstShell = gone[0]
		v.add(cand{id: "env-conda-not-initialised", cert: diag.Proven, over: []string{"torch-not-installed", "env-not-activated", "run-exception"}}, cap4(append(gone[:len(gone):len(gone)], v.peek("S339")...))...)
	}
	if firstShell == nil && len(condaNone)+len(noActivate) > 0 {
		es := append(append([]*fact.Event{}, condaNone...), noActivate...)
		firstShell = es[0]
		v.add(cand{id: "env-not-activated", cert: diag.Proven, over: []string{"torch-not-installed", "run-exception"}}, cap4(es)...)
	}
	if firstShell != nil || len(dash) > 0 || outside != nil {
		return
	}
	if v.decidePrograms(missing) {
		return
	}
	if o := v.otherPython(); o != nil && (len(any) > 0 || len(torchGone) > 0) {
		x := any
		if len(x) == 0 {
			x = torchGone
		}
		c := v.addExc(cand{id: "env-not-activated", cert: diag.Proven, over: []string{"run-exception", "torch-not-installed"}}, x[0])
		v.said(c, *o)
		v.said(c, first(v.facts(kind.Which), 2)...)
		c.args = mergeArgs(c.args, diag.Args{"python": o.V})
		return
	}
	if len(any) > 0 && v.leftAgain(any[0]) {
		return
	}
	if base, other := v.condaBase(); len(any) > 0 && other.V != "" && len(v.batch()) > 0 && !v.activates() {
		c := v.addExc(cand{id: "env-not-activated", cert: diag.Likely, over: []string{"run-exception", "torch-not-installed"}, args: diag.Args{"python": base.V}}, any[0])
		v.said(c, base, other)
		v.noActivation(c)
		return
	}
	if len(torchGone) == 0 && !v.has("S349") {
		return
	}
	v.used["S349"] = true
	if len(torchGone) > 0 && v.orderOfShell(torchGone[0], nil) {
		return
	}
	x := cand{id: "env-not-exported", cert: diag.Likely, over: []string{"run-exception"}}
	if v.exportLine(&x) && len(torchGone) > 0 {
		v.addExc(x, torchGone[0])
		return
	}
	sys := v.systemPython()
	var c *cand
	mk := func(id string, cert diag.Certainty) *cand {
		var x *fact.Exception
		if len(torchGone) > 0 {
			x = torchGone[0]
		}
		return v.addExc(cand{id: id, cert: cert, over: []string{"run-exception"}}, x, v.firstOf("S349"))
	}
	switch {
	case sys.V != "" && len(v.batch()) > 0 && !v.activates():
		c = mk("env-not-activated", diag.Proven)
		v.said(c, sys)
	case sys.V != "":
		c = mk("env-not-activated", diag.Likely)
		v.said(c, sys)
		c.needs = append(c.needs, "which python", "python -c 'import sys; print(sys.executable, sys.path)'")
	case len(v.batch()) > 0 && !v.activates():
		c = mk("env-not-activated", diag.Likely)
		c.needs = append(c.needs, "which python", "python -c 'import sys; print(sys.executable)'")
	case len(v.batch()) == 0 && len(v.facts(kind.Pkg)) == 0 && len(v.facts(kind.Which)) == 0 && len(v.l.Commands) == 0:
		c = mk("torch-not-installed", diag.Possible)
		c.needs = append(c.needs, "which python", "python -m pip list | grep -i torch")
	default:
		c = mk("torch-not-installed", diag.Likely)
		c.needs = append(c.needs, "which python", "python -m pip list | grep -i torch")
	}
	v.noActivation(c)
}

// orderOfShell judges a script that activates its environment too late, or
// resets it again before the launch.
func (v *view) orderOfShell(x *fact.Exception, es []*fact.Event) bool {
	for _, s := range v.batch() {
		act, launch, reset := s.order()
		if act.Line == 0 || launch.Line == 0 {
			continue
		}
		c := cand{over: []string{"torch-not-installed", "env-not-activated", "run-exception"}}
		switch {
		case reset.Line > 0:
			c.id, c.cert = "env-modules-reset-after-activation", diag.Likely
			if len(v.facts(kind.Which)) > 0 {
				c.cert = diag.Proven
			}
			p := v.addExc(c, x, es...)
			p.ev = append(p.ev, s.ev(act), s.ev(reset))
			v.said(p, first(v.facts(kind.Which), 1)...)
			return true
		case launch.Before(act):
			c.id, c.cert = "env-activated-after-launch", diag.Proven
			p := v.addExc(c, x, es...)
			p.ev = append(p.ev, s.ev(launch), s.ev(act))
			return true
		}
	}
	return false
}

func (v *view) firstOf(sig string) *fact.Event {
	if es := v.bySig[sig]; len(es) > 0 {
		return es[0]
	}
	return nil
}

func (v *view) activates() bool {
	for _, s := range v.scripts {
		if s.blind() {
			return true // perhaps
		}
		for i := range s.f.Commands {
			if c := &s.f.Commands[i]; activation(c) || s.ownPython(c) {
				return true
			}
		}
	}
	return false
}

// noActivation quotes the launch line of a script that activates nothing.
func (v *view) noActivation(c *cand) {
	if v.activates() {
		return
	}
	for _, s := range v.batch() {
		if p := s.launchLine(); p.Line > 0 {
			c.ev = append(c.ev, s.ev(p))
			return
		}
	}
}

func (v *view) systemPython() fact.Said {
	for _, w := range v.facts(kind.Which) {
		if strings.HasPrefix(w.Name, "python") && (strings.HasPrefix(w.V, "/usr/bin/") || strings.HasPrefix(w.V, "/bin/") || strings.HasPrefix(w.V, "/usr/local/bin/")) {
			return w
		}
	}
	for _, e := range v.peek("S349") {
		if strings.HasPrefix(e.Text, "/usr/bin/python") {
			return fact.Said{Place: e.Place, V: "/usr/bin/python3", Text: e.Text}
		}
	}
	return fact.Said{}
}

func (v *view) missingTorch() []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.exc {
		if m := noModule.FindStringSubmatch(x.Message); m != nil && m[1] == "torch" {
			out = append(out, x)
		}
	}
	return out
}

// leftAgain judges a module that is missing because another python runs than
// that of the environment which the script enters first.
func (v *view) leftAgain(x *fact.Exception) bool {
	want := ""
	for _, s := range v.batch() {
		for i := range s.f.Sources {
			if dir, ok := strings.CutSuffix(s.f.Sources[i].Path, "/bin/activate"); ok && strings.HasPrefix(dir, "/") && !strings.Contains(dir, "$") {
				want = dir
			}
		}
	}
	if want == "" {
		return false
	}
	for _, w := range v.facts(kind.Which) {
		if strings.HasPrefix(w.Name, "python") && prefixOf(w.V) != want {
			return v.orderOfShell(x, nil)
		}
	}
	return false
}

// condaBase returns conda's base environment where conda says that no other one
// is active and that there are others, and one of these.
func (v *view) condaBase() (base, other fact.Said) {
	for _, s := range v.facts(kind.CondaEnv) {
		switch {
		case s.Name == "base":
			base = s
		case s.Aux == "*":
			return fact.Said{}, fact.Said{}
		case other.V == "":
			other = s
		}
	}
	if base.V == "" {
		return fact.Said{}, fact.Said{}
	}
	return base, other
}

func (v *view) missingModule() []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.exc {
		if noModule.MatchString(x.Message) {
			out = append(out, x)
		}
	}
	return out
}

// queuedOutside returns the line that says that srun stood outside of an allocation.
func (v *view) queuedOutside() *fact.Event {
	for _, e := range v.ev("S305") {
		if len(v.batch()) > 0 {
			return e
		}
		for _, c := range v.l.Commands {
			if strings.HasPrefix(c.Text, "bash ") || strings.HasPrefix(c.Text, "sh ") || strings.HasPrefix(c.Text, "./") {
				return e
			}
		}
	}
	return nil
}

func (v *view) crlf() bool {
	for _, s := range v.scripts {
		if s.crlf() {
			return true
		}
	}
	return false
}

var exportOpt = lazyre.New(`--export[= ]("[^"]*"|'[^']*'|\S+)`)

// exportLine finds an --export that drops the environment, in script or session.
func (v *view) exportLine(c *cand) bool {
	drops := func(val string) bool {
		val = strings.Trim(val, `"'`)
		return val != "" && val != "ALL" && !strings.HasPrefix(val, "ALL,") && !strings.Contains(val, ",ALL")
	}
	for _, s := range v.scripts {
		for i := range s.f.Directives {
			if o := &s.f.Directives[i]; o.Name == "export" && drops(o.Value) {
				c.ev = append(c.ev, s.ev(o.Pos))
				c.args = mergeArgs(c.args, diag.Args{"value": mask.Text(o.Value)})
				return true
			}
		}
		for _, t := range s.steps() {
			if o := t.Opt("export"); o != nil && drops(o.Value) {
				c.ev = append(c.ev, s.ev(s.stmt(t.Cmd)))
				c.args = mergeArgs(c.args, diag.Args{"value": mask.Text(o.Value)})
				return true
			}
		}
	}
	for _, cmd := range v.l.Commands {
		if m := exportOpt.FindStringSubmatch(cmd.Text); m != nil && drops(m[1]) && (strings.Contains(cmd.Text, "srun") || strings.Contains(cmd.Text, "sbatch")) {
			c.ev = append(c.ev, v.evidence(cmd.Place, cmd.Text))
			return true
		}
	}
	return false
}
