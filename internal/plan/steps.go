package plan

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/tables"
)

// Kinds of a Step.
const (
	StepSave    = "save"    // keep the state as it is now
	StepRemove  = "remove"  // take something away that is in the way
	StepInstall = "install" // put the build in place
	StepPin     = "pin"     // keep it in place
	StepEdit    = "edit"    // change or write a file
	StepModule  = "module"  // load another module
	StepSetting = "setting" // in the job's script
	StepCheck   = "check"   // prove it
	StepBack    = "back"    // how to undo it; not part of a run
)

// Step is one part of the way. Commands are one shell command each, safe to run
// twice.
type Step struct {
	Kind     string   `json:"kind"`
	Why      Reason   `json:"why"`
	Commands []string `json:"commands"`
	File     string   `json:"file,omitempty"` // for edits: the file
	Text     string   `json:"text,omitempty"` // for edits: what goes into it, or the whole new text when Whole
	Whole    bool     `json:"whole,omitempty"`
}

func step(kind, id string, commands ...string) Step {
	if commands == nil {
		commands = []string{}
	}
	return Step{Kind: kind, Why: why("step-" + id), Commands: commands}
}

func (s Step) arg(kv ...string) Step {
	for i := 0; i+1 < len(kv); i += 2 {
		s.Why.Args[kv[i]] = kv[i+1]
	}
	return s
}

// steps fills in the commands of an option.
func (in *Input) steps(o *Option) {
	e := &in.Env
	o.Tool = e.Tool
	if o.Tool == "" {
		o.Tool = Pip
	}
	if o.Installed && !in.Have.Broken && len(e.UserDists) == 0 {
		o.Steps = append(o.Steps, in.prove(o, e.python()))
		return
	}
	switch o.Tool {
	case UV:
		in.uv(o)
	case UVProject:
		in.uvProject(o)
	case Conda, Mamba, Micromamba:
		in.conda(o)
	case Pixi:
		in.pixi(o)
	case Poetry:
		in.poetry(o)
	case Apptainer:
		in.apptainer(o)
	case Module:
		in.module(o)
	default:
		in.pip(o)
	}
}

// requirements lists torch and its companions as one installer call wants them.
// What is not known of a companion is left to a note.
func (in *Input) requirements(o *Option) (reqs, names []string, notes []Step) {
	reqs, names = []string{"'torch==" + o.Requirement() + "'"}, []string{"torch"}
	var cs []string
	for c := range in.Env.Companions {
		cs = append(cs, c)
	}
	sort.Strings(cs)
	for _, c := range cs {
		v := tables.CompanionRelease(c, o.Torch)
		if v == "" {
			notes = append(notes, step(StepInstall, "companion").arg("package", c, "version", in.Env.Companions[c], "torch", o.Torch))
			continue
		}
		if o.Local {
			v += "+" + o.Tag
		}
		reqs, names = append(reqs, "'"+c+"=="+v+"'"), append(names, c)
	}
	return reqs, names, notes
}

// removeUser takes the copies in the user's site-packages away. pip takes away
// the copy that it finds first, which is that one as long as its metadata is there.
func (in *Input) removeUser(o *Option) {
	e := &in.Env
	if e.UserSite == "" || len(e.UserDists) == 0 {
		return
	}
	py := e.python()
	if e.Kind == "venv" && e.Base != "" {
		py = quote(e.Base) // pip of a venv refuses to touch what lies outside
	}
	s := step(StepRemove, "remove-user").arg("dir", e.UserSite)
	for _, d := range e.UserDists {
		s.Commands = append(s.Commands, fmt.Sprintf("if ls -d %s/%s-*.dist-info >/dev/null 2>&1; then PIP_BREAK_SYSTEM_PACKAGES=1 %s -m pip uninstall -y %s; fi", quote(e.UserSite), d, py, d))
	}
	o.Steps = append(o.Steps, s)
}

// ownEnv makes an environment of one's own where the interpreter is the
// system's, and returns the interpreter to use.
func (in *Input) ownEnv(o *Option, uv bool) string {
	e := &in.Env
	if !e.fresh() {
		return e.python()
	}
	base, py := e.python(), e.own()+"/bin/python"
	id, cmd := "own-venv", base+" -m venv "+e.own()
	if e.Kind == "new" {
		id = "new-venv"
	}
	if uv {
		from := base
		if e.Kind == "new" {
			from = in.Python
		}
		cmd = "[ -x " + py + " ] || uv venv --python " + from + " " + e.own()
	}
	o.Steps = append(o.Steps, step(StepInstall, id, cmd).arg("python", base))
	return py
}

func (in *Input) pip(o *Option) {
	e := &in.Env
	if e.NoPip && !e.fresh() {
		o.Steps = append(o.Steps, step(StepInstall, "ensurepip", e.python()+" -m ensurepip --upgrade"))
	}
	if !e.fresh() && in.Have.Version != "" {
		o.Steps = append(o.Steps, step(StepSave, "save", e.keep(e.python()+" -m pip freeze")).arg("file", e.before()))
	}
	in.removeUser(o)
	py := in.ownEnv(o, false)
	reqs, _, notes := in.requirements(o)
	install := py + " -m pip install " + strings.Join(reqs, " ")
	if ix := e.index(o); ix != "" {
		install += " " + ix
	}
	switch {
	case !o.Local:
		// Over a CPU build of the same version pip would see nothing to do.
		o.Steps = append(o.Steps, step(StepInstall, "pip-untagged", strings.Replace(install, "pip install", "pip install --force-reinstall --no-deps", 1), install).arg("torch", o.Torch, "cuda", o.CUDA))
	case in.Have.Broken:
		o.Steps = append(o.Steps, step(StepInstall, "pip-broken", strings.Replace(install, "pip install", "pip install --force-reinstall --no-deps", 1), install).arg("tag", o.Tag))
	default:
		o.Steps = append(o.Steps, step(StepInstall, "pip", install).arg("tag", o.Tag))
	}
	o.Steps = append(o.Steps, notes...)
	in.pin(o, reqs, py+" -m pip install", "--extra-index-url")
	o.Steps = append(o.Steps, in.prove(o, py))
	in.jobPython(o, py)
	if !e.fresh() && in.Have.Version != "" {
		back := fmt.Sprintf("%s -m pip uninstall -y torch && %s -m pip install -r %s", py, py, e.before())
		if u := in.oldIndex(); u != "" {
			back += " --extra-index-url " + u
		}
		o.Steps = append(o.Steps, step(StepBack, "back", back).arg("file", e.before()))
	}
}

// oldIndex is the index that the build that is there came from, when its version says so.
func (in *Input) oldIndex() string {
	if _, local, ok := strings.Cut(in.Have.Version, "+"); ok && (local == "cpu" || buildTag(local)) {
		return PyTorchIndex + "/" + local
	}
	return ""
}

// pin writes constraints, so that what is installed later cannot take another torch.
func (in *Input) pin(o *Option, reqs []string, install, extra string) {
	c := in.Env.constraints()
	later := install + " -c " + c
	if o.Local && in.Env.FindLinks == "" {
		later += " " + extra + " " + quote(in.Env.url(o.Tag))
	} else if in.Env.FindLinks != "" {
		later += " --find-links " + quote(in.Env.FindLinks)
	}
	o.Steps = append(o.Steps, step(StepPin, "pin", fmt.Sprintf("printf '%%s\\n' %s > %s", strings.Join(reqs, " "), c)).arg("file", c, "later", later+" PACKAGE"))
}

// proof is the program that fails unless the right torch is imported.
func proof(o *Option) string {
	if o.ROCm != "" {
		return fmt.Sprintf(`import torch, torch.distributed as d; print(torch.__file__, torch.__version__, torch.version.hip, d.is_nccl_available()); assert torch.__version__ == "%s" and torch.version.hip and d.is_nccl_available()`, o.Requirement())
	}
	return fmt.Sprintf(`import torch, torch.distributed as d; print(torch.__file__, torch.__version__, torch.version.cuda, d.is_nccl_available()); assert torch.__version__.split("+")[0] == "%s" and torch.version.cuda == "%s" and d.is_nccl_available()`, o.Torch, o.CUDA)
}

const rocmProof = `import torch; print(torch.cuda.get_device_name(), torch.version.hip); torch.ones(1, device="cuda").sum().item()`

const gpuProof = `import torch; print(torch.cuda.get_device_name(), torch.cuda.nccl.version()); torch.ones(1, device="cuda").sum().item()`

func (in *Input) prove(o *Option, py string) Step {
	e := &in.Env
	gpu := py + " -c '" + gpuProof + "'"
	id := "check"
	if o.ROCm != "" {
		id, gpu = "check-rocm", py+" -c '"+rocmProof+"'"
	}
	if e.Login {
		gpu = "srun " + e.gres() + " " + gpu
	}
	return step(StepCheck, id, py+" -c '"+proof(o)+"'", "ncclinic check --python "+py, gpu).arg("torch", o.Requirement(), "cuda", o.CUDA, "rocm", o.ROCm)
}

func (e *Env) gres() string {
	if e.Gres != "" {
		return "--gres=gpu:" + quote(e.Gres) + ":1"
	}
	return "--gres=gpu:1"
}

// jobPython says that the job must start another interpreter than before.
func (in *Input) jobPython(o *Option, py string) {
	if in.Env.fresh() {
		o.Steps = append(o.Steps, step(StepSetting, "job-python", "export PATH="+in.Env.own()+"/bin:\"$PATH\"").arg("python", py))
	}
}

func (in *Input) uv(o *Option) {
	e := &in.Env
	if !e.fresh() && in.Have.Version != "" {
		o.Steps = append(o.Steps, step(StepSave, "save", e.keep("uv pip freeze --python "+e.python())).arg("file", e.before()))
	}
	in.removeUser(o)
	py := in.ownEnv(o, true)
	reqs, names, notes := in.requirements(o)
	install := "uv pip install --python " + py
	for _, n := range names {
		install += " --reinstall-package " + n
	}
	install += " " + strings.Join(reqs, " ")
	if ix := e.index(o); ix != "" {
		// --index-url gives way to UV_DEFAULT_INDEX, which sites with a mirror set.
		install += " " + strings.Replace(ix, "--index-url ", "--default-index ", 1)
	}
	o.Steps = append(o.Steps, step(StepInstall, "uv", install))
	o.Steps = append(o.Steps, notes...)
	in.pin(o, reqs, "uv pip install --python "+py, "--index-strategy unsafe-best-match --extra-index-url")
	o.Steps = append(o.Steps, in.prove(o, py))
	in.jobPython(o, py)
	if !e.fresh() && in.Have.Version != "" {
		back := fmt.Sprintf("uv pip install --python %s --reinstall-package torch -r %s", py, e.before())
		if u := in.oldIndex(); u != "" {
			back += " --index-strategy unsafe-best-match --extra-index-url " + u
		}
		o.Steps = append(o.Steps, step(StepBack, "back", back).arg("file", e.before()))
	}
}

func (in *Input) uvProject(o *Option) {
	e := &in.Env
	reqs := map[string]string{"torch": o.Requirement()}
	for c := range e.Companions {
		if v := tables.CompanionRelease(c, o.Torch); v != "" {
			if o.Local {
				v += "+" + o.Tag
			}
			reqs[c] = v
		}
	}
	in.removeUser(o)
	file := e.Project
	if file == "" {
		file = "pyproject.toml"
	}
	name := "pytorch-" + o.Tag
	if e.Text == "" {
		var b strings.Builder
		fmt.Fprintf(&b, "[[tool.uv.index]]\nname = %q\nurl = %q\nexplicit = true\n\n[tool.uv.sources]\n", name, e.url(o.Tag))
		for _, c := range sortedKeys(reqs) {
			fmt.Fprintf(&b, "%s = { index = %q }\n", c, name)
		}
		o.Steps = append(o.Steps, Step{Kind: StepEdit, Why: why("step-uv-project", "file", file, "torch", o.Requirement(), "name", name), Commands: []string{}, File: file, Text: b.String()})
	} else {
		text := editPyproject(e.Text, name, e.url(o.Tag), reqs)
		o.Steps = append(o.Steps, Step{Kind: StepEdit, Why: why("step-uv-project", "file", file, "torch", o.Requirement(), "name", name), Commands: []string{}, File: file, Text: text, Whole: true})
	}
	sync := "uv sync"
	lock := "uv lock"
	for _, c := range sortedKeys(reqs) {
		lock += " --upgrade-package " + c
		sync += " --reinstall-package " + c
	}
	if i := strings.LastIndexByte(file, '/'); i > 0 {
		lock += " --project " + quote(file[:i])
		sync += " --project " + quote(file[:i])
	}
	o.Steps = append(o.Steps, step(StepInstall, "uv-sync", lock, sync))
	py := e.python()
	o.Steps = append(o.Steps, in.prove(o, py))
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func (in *Input) conda(o *Option) {
	e := &in.Env
	p := "-p " + quote(e.Prefix)
	if e.Prefix == "" {
		p = `-p "$CONDA_PREFIX"`
	}
	t := o.Tool
	if e.Kind == "venv" || e.Kind == "pyenv" {
		e.Kind = "system" // conda cannot change what is none of its environments
	}
	if e.fresh() {
		p = "-p " + e.own()
		with := in.Python
		if with == "" {
			with = "3.12"
		}
		o.Steps = append(o.Steps, step(StepInstall, "new-conda", fmt.Sprintf("[ -e %s/conda-meta/history ] || %s create -y %s --override-channels -c conda-forge python=%s", e.own(), t, p, with)).arg("python", with))
	} else {
		list := "list " + p
		if t == Micromamba { // whose list had no --explicit for long
			list = "env export " + p
		}
		o.Steps = append(o.Steps, step(StepSave, "save", e.keep(t+" "+list+" --explicit")).arg("file", e.before()))
	}
	in.removeUser(o)
	fam := family(o.CUDA)
	next := itoa(num(fam) + 1)
	over := tables.DriverCUDA(in.oldest())
	if over == "" || family(over) != fam {
		over = o.CUDA
	}
	install := fmt.Sprintf("CONDA_OVERRIDE_CUDA=%s %s install -y %s --override-channels -c conda-forge 'pytorch=%s=*cuda*' 'cuda-version>=%s,<%s'", over, t, p, o.Torch, fam, next)
	o.Steps = append(o.Steps, step(StepInstall, "conda", install).arg("cuda", over, "family", fam))
	pinLine := fmt.Sprintf("pytorch %s *cuda*", o.Torch)
	pinned := strings.TrimPrefix(p, "-p ") + "/conda-meta/pinned"
	o.Steps = append(o.Steps, step(StepPin, "conda-pin", fmt.Sprintf("grep -qxF '%s' %s 2>/dev/null || echo '%s' >> %s", pinLine, pinned, pinLine, pinned)))
	py := e.python()
	if e.Python == "" || e.fresh() {
		py = strings.TrimPrefix(p, "-p ") + "/bin/python"
	}
	check := in.prove(o, py)
	// conda-forge's version of CUDA need not be the wheel's: the family is what the driver runs.
	check.Commands[0] = py + " -c '" + strings.Replace(proof(o), `torch.version.cuda == "`+o.CUDA+`"`, `torch.version.cuda.split(".")[0] == "`+fam+`"`, 1) + "'"
	check.Commands = slices.Insert(check.Commands, 1, fmt.Sprintf("%s list %s '^(pytorch|libtorch)$'", t, p))
	o.Steps = append(o.Steps, check)
	in.jobPython(o, py)
	if !e.fresh() {
		unpin := fmt.Sprintf("sed -i '/^%s$/d' %s", strings.NewReplacer(".", `\.`, "*", `\*`).Replace(pinLine), pinned)
		o.Steps = append(o.Steps, step(StepBack, "back", unpin+" && "+fmt.Sprintf("%s install -y %s --file %s", t, p, e.before())).arg("file", e.before()))
	}
}

func (in *Input) pixi(o *Option) {
	file := in.Env.Project
	if file == "" {
		file = "pixi.toml"
	}
	platform := "linux-64"
	if in.Machine == "aarch64" {
		platform = "linux-aarch64"
	}
	text := fmt.Sprintf("[workspace]\nplatforms = [{ platform = %q, cuda = %q }]\n\n[dependencies]\npytorch = { version = \"==%s\", build = \"*cuda*\" }\ncuda-version = \"%s.*\"\n",
		platform, family(o.CUDA)+".0", o.Torch, family(o.CUDA))
	o.Steps = append(o.Steps, Step{Kind: StepEdit, Why: why("step-pixi", "file", file, "family", family(o.CUDA)), Commands: []string{}, File: file, Text: text})
	o.Steps = append(o.Steps, step(StepInstall, "pixi-install", "CONDA_OVERRIDE_CUDA="+o.CUDA+" pixi install"))
	check := in.prove(o, "pixi run python")
	check.Commands[0] = "pixi run python -c '" + strings.Replace(proof(o), `torch.version.cuda == "`+o.CUDA+`"`, `torch.version.cuda.split(".")[0] == "`+family(o.CUDA)+`"`, 1) + "'"
	check.Commands = slices.Delete(check.Commands, 1, 2)
	o.Steps = append(o.Steps, check)
}

func (in *Input) poetry(o *Option) {
	name := "pytorch-" + o.Tag
	reqs, _, notes := in.requirements(o)
	in.removeUser(o)
	o.Steps = append(o.Steps, step(StepInstall, "poetry",
		fmt.Sprintf("poetry source add --priority explicit %s %s", name, quote(in.Env.url(o.Tag))),
		"poetry add --source "+name+" "+strings.Join(reqs, " ")).arg("name", name))
	o.Steps = append(o.Steps, notes...)
	check := in.prove(o, "poetry run python")
	check.Commands = slices.Delete(check.Commands, 1, 2)
	o.Steps = append(o.Steps, check)
}

func (in *Input) apptainer(o *Option) {
	e := &in.Env
	reqs, _, notes := in.requirements(o)
	py := in.Python
	if py == "" {
		py = "3.11"
	}
	from := "python:" + strings.TrimSuffix(py, "t") + "-slim"
	install := "python3 -m pip install --no-cache-dir " + strings.Join(reqs, " ")
	if ix := e.index(o); ix != "" {
		install += " " + ix
	}
	text := fmt.Sprintf("Bootstrap: docker\nFrom: %s\n\n%%post\n    %s\n\n%%environment\n    export PYTHONNOUSERSITE=1\n\n%%test\n    python3 -s -c '%s'\n", from, install, proof(o))
	o.Steps = append(o.Steps, Step{Kind: StepEdit, Why: why("step-apptainer", "file", "torch.def", "from", from), Commands: []string{}, File: "torch.def", Text: text, Whole: true})
	o.Steps = append(o.Steps, notes...)
	o.Steps = append(o.Steps, step(StepInstall, "apptainer-build", "apptainer build torch.sif torch.def").arg("flag", map[bool]string{true: "--rocm", false: "--nv"}[o.ROCm != ""]))
	id, flag, gpu := "check", "--nv", gpuProof
	if o.ROCm != "" {
		id, flag, gpu = "check-rocm", "--rocm", rocmProof
	}
	o.Steps = append(o.Steps, step(StepCheck, id,
		"apptainer exec torch.sif python3 -s -c '"+proof(o)+"'",
		"ncclinic check torch.sif",
		"srun "+e.gres()+" apptainer exec "+flag+" torch.sif python3 -s -c '"+gpu+"'").arg("torch", o.Requirement(), "cuda", o.CUDA, "rocm", o.ROCm))
}
