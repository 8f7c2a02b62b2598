package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// script is a batch script of the input: its text, and what the collector of
// batch scripts says of it.
type script struct {
	fact.SourceText
	f    *fact.Script
	path string
}

func newScript(t fact.SourceText, path string) *script {
	s := &script{SourceText: t, f: t.Script, path: path}
	if s.f == nil {
		s.f = &fact.Script{}
	}
	return s
}

// submitted reports whether the script is meant for sbatch.
func (s *script) submitted() bool {
	return s.f.Live() || slices.ContainsFunc(s.f.Stray, func(x fact.Stray) bool { return x.Kind != fact.StrayQuoted && x.Kind != fact.StrayDisabled })
}

// blind reports that a part of the body is not known: what is missing from the
// facts may still stand in the script.
func (s *script) blind() bool { return !s.f.Parsed || s.f.Syntax != nil }

func (s *script) crlf() bool { return s.f.CRLF > 0 }

// quote returns a line of the script with those that continue it.
func (s *script) quote(n int) string {
	var b strings.Builder
	for i := n - 1; i >= 0 && i < len(s.Lines) && b.Len() < 4096; i++ {
		l := strings.TrimSpace(s.Lines[i])
		if !strings.HasSuffix(l, "\\") || strings.HasPrefix(l, "#") {
			return b.String() + l
		}
		b.WriteString(strings.TrimSuffix(l, "\\") + " ")
	}
	return strings.TrimSpace(b.String())
}

// ev quotes a place of the script.
func (s *script) ev(p fact.Pos) fact.Evidence {
	return fact.Evidence{Source: fact.SrcScript, Path: s.path, Line: s.From - 1 + p.Line, Excerpt: s.quote(p.Line)}
}

// place is the place of a line of the script among those of logs.
func (s *script) place(p fact.Pos) fact.Place {
	return fact.Place{File: s.File, Line: s.From - 1 + p.Line, Rank: -1, Local: -1, Task: -1}
}

// said makes a fact of a listing from what the script says.
func (s *script) said(p fact.Pos, name, val string) fact.Said {
	return fact.Said{Place: s.place(p), Name: name, V: val, Text: s.quote(p.Line)}
}

// first quotes the first live directive, which shows what the job asks for.
func (s *script) first() []fact.Evidence {
	if len(s.f.Directives) == 0 {
		return nil
	}
	return []fact.Evidence{s.ev(s.f.Directives[0].Pos)}
}

// opts quotes the live directives of these names.
func (s *script) opts(names ...string) []fact.Evidence {
	var out []fact.Evidence
	for i := range s.f.Directives {
		if d := &s.f.Directives[i]; slices.Contains(names, d.Name) {
			out = append(out, s.ev(d.Pos))
		}
	}
	return out
}

// optEv quotes an option of a step: where the script writes it, which may be
// the value of a variable.
func (s *script) optEv(o *fact.Directive) fact.Evidence {
	e := s.ev(o.Pos)
	if text := "--" + o.Name; !strings.Contains(e.Excerpt, text) {
		for i := range s.f.Assigns {
			if a := &s.f.Assigns[i]; strings.Contains(a.Value.Text, text) {
				return s.ev(a.Pos)
			}
		}
	}
	return e
}

// stmt is the place of the command of the script itself that starts another.
func (s *script) stmt(cmd int) fact.Pos {
	c := &s.f.Commands[cmd]
	for c.Outer >= 0 && s.f.Commands[c.Outer].Func == c.Func && !slices.Contains(s.f.Funcs, s.f.Commands[c.Outer].Name) {
		c = &s.f.Commands[c.Outer]
	}
	return c.Pos
}

// steps are the steps that srun starts and that can run.
func (s *script) steps() []*fact.Step {
	var out []*fact.Step
	for i := range s.f.Steps {
		if t := &s.f.Steps[i]; t.Tool == "srun" && !s.f.Commands[t.Cmd].Dead {
			out = append(out, t)
		}
	}
	return out
}

// launchers are the launches that start one process for each GPU of a node.
func (s *script) launchers() []*fact.Launch {
	var out []*fact.Launch
	for i := range s.f.Launches {
		switch l := &s.f.Launches[i]; l.Kind {
		case fact.LaunchTorchrun, fact.LaunchLegacy, fact.LaunchAccelerate, fact.LaunchDeepSpeed, fact.LaunchComposer, fact.LaunchColossal, fact.LaunchHorovod:
			if !l.Dead {
				out = append(out, l)
			}
		}
	}
	return out
}

// assigns are the assignments to variables that can run.
func (s *script) assigns(names ...string) []*fact.Assign {
	var out []*fact.Assign
	for i := range s.f.Assigns {
		if a := &s.f.Assigns[i]; slices.Contains(names, a.Name) && !a.Dead && !a.Bare && !a.Unset {
			out = append(out, a)
		}
	}
	return out
}

// tasksPerNode as far as directives and options of the step tell; 0: not told.
func (s *script) tasksPerNode(step int) int {
	if step >= 0 {
		return s.f.Steps[step].EffTPN
	}
	if r := &s.f.Request; r.EffectiveTPN == 0 {
		return r.Tasks // of a number of nodes that is not said
	}
	return s.f.Request.EffectiveTPN
}

// exportedValue is the value of a variable that the script puts in; "" for one
// that is known only when it runs.
func exportedValue(a *fact.Assign) string {
	if !a.Value.Known {
		return ""
	}
	return a.Value.Text
}

// activation is the command that enters an environment.
func activation(c *fact.ScriptCmd) bool {
	if len(c.Words) < 2 || c.Dead {
		return false
	}
	arg := c.Words[1].Text
	switch c.Name {
	case "source", ".":
		return strings.HasSuffix(arg, "activate")
	case "conda", "mamba", "micromamba", "pyenv":
		return arg == "activate"
	}
	return false
}

// ownPython reports that a command brings its own Python: conda run, the
// interpreter of an environment by its path, or a container.
func (s *script) ownPython(c *fact.ScriptCmd) bool {
	switch c.Name {
	case "conda", "mamba", "micromamba", "uv", "poetry", "pipenv", "pdm", "pixi", "rye", "hatch":
		return len(c.Words) > 1 && c.Words[1].Text == "run"
	}
	return c.Container != nil || strings.Contains(c.Words[0].Text, "/bin/python") || strings.Contains(c.Words[0].Text, "/bin/torchrun")
}

// resets reports commands after which another python may come first.
func resets(c *fact.ScriptCmd) bool {
	if c.Name != "module" && c.Name != "ml" || len(c.Words) < 2 || c.Dead {
		return false
	}
	switch arg := c.Words[1].Text; arg {
	case "purge", "load", "reset", "restore", "swap", "add":
		return true
	case "list", "avail", "spider", "show", "use", "unload", "help":
		return false
	default:
		return c.Name == "ml" && !strings.HasPrefix(arg, "-")
	}
}

// order returns where the script enters an environment, where it first launches
// something, and what came between that may have put another python first.
func (s *script) order() (act, launch, reset fact.Pos) {
	seq := 0 // of reset
	for i := range s.f.Commands {
		c := &s.f.Commands[i]
		switch {
		case c.Dead || c.Step >= 0:
		case activation(c):
			if act.Line == 0 {
				act = c.Pos
			}
			if launch.Line == 0 {
				reset, seq = fact.Pos{}, c.Seq
			}
		case launch.Line == 0 && s.launches(i):
			launch = s.stmt(i)
			if act.Line == 0 {
				continue
			}
			for _, a := range s.assigns("PATH") {
				if a.Step < 0 && a.Seq > seq && a.Seq < c.Seq && (!strings.Contains(a.Value.Raw, "$") || strings.HasPrefix(strings.Trim(a.Value.Raw, `"`), "/")) {
					reset, seq = a.Pos, a.Seq
				}
			}
		case act.Line > 0 && launch.Line == 0 && resets(c):
			reset, seq = c.Pos, c.Seq
		}
	}
	return act, launch, reset
}

// launches reports that a command of the script starts the program: a step, a
// launcher, or a Python.
func (s *script) launches(cmd int) bool {
	c := &s.f.Commands[cmd]
	if c.Name == "srun" {
		for j := cmd + 1; j < len(s.f.Commands) && s.f.Commands[j].Seq > c.Seq; j++ {
			if s.f.Commands[j].Outer == cmd {
				return s.f.Commands[j].Name != "hostname"
			}
		}
		return true
	}
	for i := range s.f.Launches {
		if l := &s.f.Launches[i]; l.Cmd == cmd {
			return l.Kind != fact.LaunchWrapper
		}
	}
	return false
}

// launchLine is the first command that starts the program.
func (s *script) launchLine() fact.Pos {
	for i := range s.f.Commands {
		if c := &s.f.Commands[i]; !c.Dead && s.launches(i) {
			return s.stmt(i)
		}
	}
	return fact.Pos{}
}

// lateGPU quotes a request for GPUs that sbatch does not read: after the first
// command, not in column 1, misspelt or in lower case.
func (s *script) lateGPU() (fact.Evidence, bool) {
	for i := range s.f.Stray {
		if x := &s.f.Stray[i]; x.Kind != fact.StrayQuoted && x.Kind != fact.StrayDisabled && strings.Contains(x.Text, "gpu") {
			return s.ev(x.Pos), true
		}
	}
	return fact.Evidence{}, false
}
