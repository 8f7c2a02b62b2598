package lint

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// itoa is short for the arguments of findings.
func itoa(n int) string { return strconv.Itoa(n) }

// at is a place of a word or command.
func at(line, col int) fact.Pos { return fact.Pos{Line: line, Col: col} }

// code is the script without whole-line comments, for words that only need to
// be somewhere.
func (c *Ctx) code() string {
	c.words()
	return c.shared.text
}

// lower is code in lower case (ASCII letters).
func (c *Ctx) lower() string {
	c.words()
	return c.shared.lower
}

// says reports whether code has one of the words, which are in lower case.
func (c *Ctx) says(words ...string) bool {
	c.words()
	for _, w := range words {
		if c.shared.grams.may(w) && strings.Contains(c.shared.lower, w) {
			return true
		}
	}
	return false
}

// nodes is how many nodes the job has, as far as header and steps tell; 0: not known.
func (c *Ctx) nodes() int {
	n := c.S.Request.EffectiveNodes
	for i := range c.S.Steps {
		if s := &c.S.Steps[i]; s.Tool == "srun" && s.Nodes > n {
			n = s.Nodes
		}
	}
	return n
}

// gpus is the number of GPUs of a node by the request; 0: not known.
func (c *Ctx) gpus() int { return c.S.Request.EffectiveGPUs }

// submitted reports whether sbatch reads options from the file.
func (c *Ctx) submitted() bool { return c.S.Live() && !c.S.Generator }

// wholeNode reports whether the request takes whole nodes as far as it says.
func (c *Ctx) wholeNode() bool {
	r := &c.S.Request
	return r.Exclusive || r.MemMiB == -1 || c.gpus() >= 8
}

// num reads a word as a number: constant, or pinned by its bounds.
func num(w fact.Word) (int, bool) {
	if !w.Known {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(w.Text))
	return n, err == nil
}

func given(w fact.Word) bool { return w.Val != "" || w.Line > 0 }

// distributed reports whether a launch starts ranks by a launcher.
func distributed(l *fact.Launch) bool {
	switch l.Kind {
	case fact.LaunchTorchrun, fact.LaunchLegacy, fact.LaunchAccelerate, fact.LaunchDeepSpeed, fact.LaunchComposer, fact.LaunchColossal, fact.LaunchHorovod:
		return true
	}
	return false
}

// elastic reports whether a launch is torch's own launcher.
func elastic(l *fact.Launch) bool {
	return l.Kind == fact.LaunchTorchrun || l.Kind == fact.LaunchLegacy
}

// training reports whether a launch starts a program that may train.
func training(l *fact.Launch) bool {
	return distributed(l) || l.Kind == fact.LaunchLightning || l.Kind == fact.LaunchPython
}

// nproc is the number of processes that a launch starts on each node; 0: not known.
func (c *Ctx) nproc(l *fact.Launch) int {
	n, ok := num(l.Nproc)
	switch {
	case ok && l.Kind == fact.LaunchAccelerate:
		m := 1
		if k, ok := num(l.Nnodes); ok && k > 0 {
			m = k
		} else if given(l.Nnodes) {
			return 0
		} else if c.nodes() > 1 && l.Step >= 0 {
			return 0
		}
		if n%m != 0 {
			return 0
		}
		return n / m
	case ok && l.Kind == fact.LaunchComposer:
		return n
	case ok:
		return n
	case !given(l.Nproc) && elastic(l) && !l.Open && !c.assigned("PET_NPROC_PER_NODE"):
		return 1
	case strings.TrimSpace(l.Nproc.Text) == "gpu" || strings.TrimSpace(l.Nproc.Text) == "auto":
		return c.gpus()
	case l.Kind == fact.LaunchDeepSpeed && !given(l.Nproc) && !given(l.Hostfile) && !l.Open:
		return c.gpus() // all that it sees
	}
	// A count of what the node has: nvidia-smi -L | wc -l.
	if hs := c.S.HolesOf(l.Nproc.Val); len(hs) == 1 && l.Kind != fact.LaunchAccelerate && len([]rune(l.Nproc.Val)) == 1 {
		h := hs[0]
		count := h.Kind == "cmd" && strings.Contains(h.Text, "nvidia-smi") && (strings.Contains(h.Text, "wc -l") || strings.Contains(h.Text, "grep -c") || strings.Contains(h.Text, "query-gpu=count")) ||
			h.Kind == "cmd" && (strings.Contains(h.Text, "SLURM_JOB_GPUS") || strings.Contains(h.Text, "SLURM_STEP_GPUS")) && (strings.Contains(h.Text, "wc -l") || strings.Contains(h.Text, "NF")) || h.Name == "SLURM_GPUS_ON_NODE"
		if count && !(h.Step && (c.S.Request.GPUsPerTask > 0 || c.stepOf(l) != nil && c.stepOf(l).GPUsPerTask > 0)) {
			return c.gpus()
		}
	}
	return 0
}

// assigned reports whether the script sets a variable anywhere.
func (c *Ctx) assigned(name string) bool { return c.shared.sets[name] }

// setBefore reports whether the batch shell sets a variable before a place in
// the order of execution.
func (c *Ctx) setBefore(name string, seq int) bool {
	return c.shared.sets[name] && c.S.Var(name, seq) != nil
}

// last returns the last live assignment of a variable that has a value.
func (c *Ctx) last(name string) *fact.Assign {
	if !c.shared.sets[name] {
		return nil
	}
	for i := len(c.S.Assigns) - 1; i >= 0; i-- {
		if a := &c.S.Assigns[i]; a.Name == name && !a.Dead && !a.Bare && a.File == "" {
			if a.Unset {
				return nil
			}
			return a
		}
	}
	return nil
}

// sourcedUnknown reports whether files that could not be followed may start things.
func (c *Ctx) sourcedUnknown() bool {
	for _, s := range c.S.Sources {
		if s.Followed {
			continue
		}
		p := s.Path
		b := p[strings.LastIndexByte(p, '/')+1:]
		switch {
		case b == "activate", strings.Contains(b, "bashrc"), strings.Contains(b, "profile"), strings.Contains(b, "conda"), b == "setvars.sh", b == "bash", b == "init.sh", b == "zshrc", b == ".env",
			strings.HasPrefix(p, "/etc/"), strings.HasPrefix(p, "/usr/"), strings.Contains(p, "/lmod/"), strings.Contains(p, "modules"), strings.Contains(b, "module"), strings.Contains(b, "env"), strings.Contains(b, "proxy"), strings.Contains(b, "mamba"), strings.Contains(b, "activate"):
		default:
			return true
		}
	}
	return false
}

// stepOf returns the step of a launch, or nil.
func (c *Ctx) stepOf(l *fact.Launch) *fact.Step {
	if l.Step < 0 {
		return nil
	}
	return &c.S.Steps[l.Step]
}

// inSrun reports whether a launch runs in a step of srun or mpirun, not ssh.
func (c *Ctx) inSrun(l *fact.Launch) bool {
	s := c.stepOf(l)
	return s != nil && (s.Tool == "srun" || strings.HasPrefix(s.Tool, "mpi") || s.Tool == "ibrun" || s.Tool == "jsrun" || s.Tool == "orterun" || s.Tool == "prterun" || s.Tool == "flux")
}

// live calls f for every launch that is not in a function that nothing calls.
func (c *Ctx) live(f func(l *fact.Launch, cmd *fact.ScriptCmd)) {
	for i := range c.S.Launches {
		l := &c.S.Launches[i]
		if !l.Dead && l.Cmd < len(c.S.Commands) {
			f(l, &c.S.Commands[l.Cmd])
		}
	}
}

// cmds calls f for every command with one of the names that is not in dead code.
func (c *Ctx) cmds(f func(x *fact.ScriptCmd), names ...string) {
	any := false
	for _, n := range names {
		any = any || c.shared.names[n]
	}
	if !any {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" {
			continue
		}
		for _, n := range names {
			if x.Name == n {
				f(x)
				break
			}
		}
	}
}

// outermost returns the command of the script itself that leads to a command.
func (c *Ctx) outermost(i int) *fact.ScriptCmd { return &c.S.Commands[c.outermostIndex(i)] }

func (c *Ctx) outermostIndex(i int) int {
	for n := 0; n < 100 && c.S.Commands[i].Outer >= 0; n++ {
		i = c.S.Commands[i].Outer
	}
	return i
}

// cpuOnly reports signs that the program is meant to run without a GPU, or on
// another accelerator.
func (c *Ctx) cpuOnly() bool {
	if c.shared.cpu == 0 {
		c.shared.cpu = 1
		if c.saysCPU() {
			c.shared.cpu = 2
		}
	}
	return c.shared.cpu == 2
}

func (c *Ctx) saysCPU() bool {
	return c.saysNoGPU() || emptyCVD.MatchString(c.code())
}

// saysNoGPU leaves CUDA_VISIBLE_DEVICES aside.
func (c *Ctx) saysNoGPU() bool {
	return c.says("--cpu ", "--cpu\n", "--no-cuda", "--no_cuda", "--device cpu", "--device=cpu", "accelerator=cpu", "accelerator cpu", "neuronx", "neuron-", "trainium", "--use_cpu", "torch_xla", "habana", "ascend", "hccl") || c.gloo()
}

// gloo reports whether the script speaks of the backend, not only of the
// interface that gloo uses beside NCCL.
func (c *Ctx) gloo() bool {
	return gloo.MatchString(c.lower())
}

// lightning reports signs of Lightning, which finds the ranks in Slurm's own
// variables: its name, or options of its Trainer.
func (c *Ctx) lightning() bool {
	return c.says("lightning", "trainer.") && lightningSign.MatchString(c.lower())
}

var (
	gloo          = lazyre.New(`\bgloo\b`)
	lightningSign = lazyre.New(`lightning|(?:^|[\s"'])[+-]*trainer\.[a-z_]+[ =]`)
)

var emptyCVD = lazyre.New(`CUDA_VISIBLE_DEVICES=["']?["']?(?:\s|$)`)

// gpuSign reports signs that the program means to use NVIDIA GPUs.
func (c *Ctx) gpuSign() bool {
	if c.says("nccl", "nvidia-smi", "--nv ", "cuda", "--gpus", "accelerator gpu", "accelerator=gpu", "--num_gpus", "--num-gpus") {
		return true
	}
	found := false
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if distributed(l) {
			if n, ok := num(l.Nproc); ok && n > 1 {
				found = true
			}
		}
	})
	return found
}

// amd reports signs of AMD GPUs.
func (c *Ctx) amd() bool {
	return strings.HasPrefix(strings.ToLower(c.S.Request.GPUType), "mi") || c.says("rocm", "mi250", "mi300", "mi210", "/opt/amdgpu", "miopen", "hip_visible", "rccl", "lumi", "frontier", "hsa_")
}

// activation reports whether a command activates a Python environment: conda,
// venv, or "" for none.
func activation(x *fact.ScriptCmd) string {
	if len(x.Words) < 2 {
		return ""
	}
	a := x.Words[1].Text
	switch x.Name {
	case "conda", "mamba", "micromamba":
		if a == "activate" {
			return "conda"
		}
	case "source", ".":
		b := a[strings.LastIndexByte(a, '/')+1:]
		switch {
		case b == "activate" && (len(x.Words) > 2 || !strings.Contains(a, "/") || strings.Contains(a, "conda") || strings.Contains(a, "mamba")):
			return "conda"
		case b == "activate":
			return "venv"
		case strings.Contains(b, "activate") || strings.Contains(b, "venv"):
			return "venv"
		}
	case "workon", "pyenv", "poetry", "pipenv":
		if x.Name == "workon" || a == "activate" || a == "shell" {
			return "venv"
		}
	}
	return ""
}

// stray is a helper of the directive rules: the options as text.
func optText(o []fact.Directive) string {
	var out []string
	for _, d := range o {
		t := d.Written
		if d.HasValue {
			if strings.HasPrefix(t, "--") {
				t += "=" + d.Value
			} else {
				t += " " + d.Value
			}
		}
		out = append(out, t)
	}
	return strings.Join(out, " ")
}

// lineSpan is a whole line with its end.
func (c *Ctx) lineSpan(n int) (from, to int) {
	from, to, _ = c.S.LineRange(n)
	return from, min(to+1, len(c.S.Src))
}

// offset is the byte offset of a place.
func (c *Ctx) offset(p fact.Pos) int {
	from, to, _ := c.S.LineRange(p.Line)
	return min(from+max(p.Col-1, 0), to)
}

// inHeredoc reports whether a line stands in a here-document.
func (c *Ctx) inHeredoc(line int) bool {
	for i := range c.S.Heredocs {
		if h := &c.S.Heredocs[i]; h.End > h.Line && line >= h.Line && line < h.End || h.Line == line && h.End > line {
			return true
		}
	}
	return false
}

// variableOption is the name of the shell variable that a directive has for a
// value, which sbatch does not expand: --nodes=${NODES}. "" is none.
func (c *Ctx) variableOption(name string) string {
	d := c.S.Opt(name)
	if d == nil {
		return ""
	}
	m := oneVariable.FindStringSubmatch(d.Value)
	if m == nil {
		return ""
	}
	return m[1]
}

var oneVariable = lazyre.New(`^\$\{?([A-Za-z_]\w*)\}?$`)
