package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// build is what the input says about the torch that ran.
type build struct {
	cpu, cuda, rocm []fact.Said // what speaks for each kind of build; rocm: for AMD's or Intel's GPUs
	croot           []fact.Said // Anaconda's own package: cpu by default
	debian          []fact.Said // the distribution's own package: no CUDA
	noNCCL          []fact.Said // the program says that NCCL is not available
	aarch64         []fact.Said
	tegra           []fact.Said
	nvidia          bool // nvidia-* wheels are listed
	versions        []fact.Said
	pip, conda      []fact.Said // torch as pip's and as conda's package in one listing
	mac, win        *fact.Place
	winText         string
}

var (
	condaCPU  = lazyre.New(`^(?:cpu[_-]|py[\d.]+_cpu_|py\d+_cpu|\S*_cpu_\d|cpu$)`)
	condaCUDA = lazyre.New(`cuda\d|_cu\d{2,3}`)
)

func (v *view) build() build {
	var b build
	for _, s := range v.l.Listing.Facts {
		switch s.Kind {
		case kind.Pkg:
			switch s.Name {
			case "torch", "pytorch", "libtorch":
				b.versions = append(b.versions, s)
				switch {
				case strings.Contains(s.Aux, "lock+cu"):
					b.cuda = append(b.cuda, s)
				case strings.Contains(s.V, "+cpu") || strings.Contains(s.Aux, "%2Bcpu") || strings.Contains(s.Aux, "+cpu"), condaCPU.MatchString(s.Aux):
					b.cpu = append(b.cpu, s)
				case strings.Contains(s.V, "+rocm") || strings.Contains(s.V, "+xpu"):
					b.rocm = append(b.rocm, s)
				case strings.Contains(s.V, "+cu") || condaCUDA.MatchString(s.Aux):
					b.cuda = append(b.cuda, s)
				case strings.Contains(s.Aux, "/croot/"):
					b.croot = append(b.croot, s)
				}
				if s.Name == "torch" {
					b.pip = append(b.pip, s)
				} else if s.Name == "pytorch" {
					b.conda = append(b.conda, s)
				}
			case "pytorch-mutex":
				if s.Aux == "cpu" || s.V == "cpu" {
					b.cpu = append(b.cpu, s)
				}
			case "cpuonly":
				b.cpu = append(b.cpu, s)
			case "pytorch-triton-rocm":
				b.rocm = append(b.rocm, s)
			default:
				if strings.HasPrefix(s.Name, "nvidia-") {
					b.nvidia = true
				}
			}
		case kind.TorchVer:
			b.versions = append(b.versions, s)
			switch {
			case strings.Contains(s.V, "+cpu"):
				b.cpu = append(b.cpu, s)
			case strings.Contains(s.V, "+rocm") || strings.Contains(s.V, "+xpu"):
				b.rocm = append(b.rocm, s)
			case strings.Contains(s.V, "+cu"):
				b.cuda = append(b.cuda, s)
			}
		case kind.TorchCUDA:
			if s.V == "None" || s.V == "N/A" {
				b.cpu = append(b.cpu, s)
			} else if s.V != "" && s.V[0] >= '0' && s.V[0] <= '9' {
				b.cuda = append(b.cuda, s)
			}
		case kind.NCCLAvail:
			if s.V == "False" {
				b.noNCCL = append(b.noNCCL, s)
			}
		case kind.Debian:
			b.debian = append(b.debian, s)
		case kind.PipIn:
			if s.Name == "torch" && v.lastInstall(s) && !strings.Contains(s.V, "=") {
				b.versions = append(b.versions, s)
				switch {
				case strings.Contains(s.V, "+cpu"):
					b.cpu = append(b.cpu, s)
				case strings.Contains(s.V, "+cu"):
					b.cuda = append(b.cuda, s)
				}
			}
		case kind.TorchHIP:
			if s.V != "None" && s.V != "N/A" && s.V != "" {
				b.rocm = append(b.rocm, s)
			}
		case kind.CUDAAvail:
			if s.V == "True" {
				b.cuda = append(b.cuda, s)
			}
		case kind.Machine:
			b.aarch64 = append(b.aarch64, s)
		case kind.OS:
			b.tegra = append(b.tegra, s)
		}
	}
	if len(b.rocm) > 0 {
		// "CUDA used to build PyTorch: N/A" is how a ROCm build reads
		var keep []fact.Said
		for _, s := range b.cpu {
			if s.Kind != kind.TorchCUDA {
				keep = append(keep, s)
			}
		}
		b.cpu = keep
	}
	for i := range v.l.Exceptions {
		for _, f := range v.l.Exceptions[i].Frames {
			if len(f.File) > 3 && f.File[1] == ':' && f.File[2] == '\\' {
				b.win, b.winText = &v.l.Exceptions[i].Place, f.File
			}
			if strings.HasPrefix(f.File, "/Users/") || strings.HasPrefix(f.File, "/opt/homebrew/") || strings.HasPrefix(f.File, "/Library/Frameworks/Python") {
				b.mac, b.winText = &v.l.Exceptions[i].Place, f.File
			}
		}
	}
	return b
}

// TorchDir returns the folder of the torch that ran, as the paths in logs tell,
// or "".
func TorchDir(l *fact.Logs) string {
	dir, _ := (&view{l: l}).torchDir()
	if dir == "" {
		return ""
	}
	return dir + "/torch"
}

// torchDir returns the folder that holds the torch which the tracebacks and
// warnings run through, and where it is seen.
func (v *view) torchDir() (string, fact.Place) {
	for i := range v.l.Exceptions {
		x := &v.l.Exceptions[i]
		for _, f := range x.Frames {
			if d := beforeTorch(f.File); d != "" {
				return d, x.Place
			}
		}
		// cannot import name 'x' from 'torch.y' (/path/site-packages/torch/y/__init__.py)
		if _, in, ok := strings.Cut(x.Message, " (/"); ok && strings.Contains(x.Message, " from 'torch") {
			if d := beforeTorch("/" + in); d != "" {
				return d, x.Place
			}
		}
	}
	for _, e := range v.l.Events {
		if d := beforeTorch(e.Text); d != "" && !e.Quoted {
			if i := strings.LastIndexAny(d, " '\"("); i >= 0 {
				d = d[i+1:]
			}
			return d, e.Place
		}
	}
	for _, s := range v.facts(kind.TorchPath) { // what a program says of itself
		if d, ok := strings.CutSuffix(s.V, "/torch"); ok {
			return d, s.Place
		}
	}
	return "", fact.Place{}
}

func beforeTorch(s string) string {
	i := strings.Index(s, "/site-packages/torch/")
	if i < 0 {
		if i = strings.Index(s, "/dist-packages/torch/"); i < 0 {
			return ""
		}
	}
	return s[:i+len("/site-packages")]
}

// userSiteShadows reports a torch of ~/.local that runs although the
// environment that the job uses has one of its own.
func (v *view) userSiteShadows(b build) (ss []fact.Said, dir string, ok bool) {
	dir, _ = v.torchDir()
	if !strings.Contains(dir, "/.local/lib/python") {
		return nil, "", false
	}
	for _, s := range b.versions {
		if s.Kind == kind.Pkg && (len(b.cuda) > 0 || s.V != "") {
			// a listing of another environment than ~/.local: made with -s, of a prefix, or conda's
			if s.Name == "pytorch" || v.listedElsewhere(s) {
				ss = append(ss, s)
			}
		}
	}
	if len(ss) == 0 {
		ss = v.torchOutside()
	}
	return ss, dir, len(ss) > 0
}

// listedElsewhere reports whether a package line belongs to a named environment.
func (v *view) listedElsewhere(s fact.Said) bool {
	for _, e := range v.facts(kind.PkgEnv) {
		if e.File == s.File && e.Line <= s.Line && e.V != "" && !strings.Contains(e.V, "/.local") {
			return true
		}
	}
	for _, c := range v.l.Commands {
		if c.File == s.File && c.Line < s.Line && s.Line-c.Line < 400 && (strings.Contains(c.Text, "python -s ") || strings.Contains(c.Text, "conda list") || strings.Contains(c.Text, "PYTHONNOUSERSITE")) {
			return true
		}
	}
	return false
}

// decideBuild judges everything that says "this torch cannot do CUDA or NCCL".
func (v *view) decideBuild() {
	noNCCL := v.ev("S001", "S002", "S005", "S006")
	noCUDA := v.ev("S008", "S009", "S541")
	hip := v.peek("log-hip-no-device")
	noBackend := v.needGPU()
	all := append(append(append([]*fact.Event{}, noNCCL...), noCUDA...), hip...)
	if len(all) == 0 && len(noBackend) == 0 {
		v.decideListedCPU()
		return
	}
	b := v.build()
	es := cap4(all)
	if len(es) == 0 {
		es = nil
	}
	mk := func(id string, cert diag.Certainty, ss ...fact.Said) *cand {
		c := v.add(cand{id: id, rule: loudest(es), cert: cert, args: v.torchArgs(b), over: []string{"run-exception"}}, es...)
		if len(es) == 0 && len(noBackend) > 0 {
			x := noBackend[0]
			c.at = x.Place
			c.ev = append(c.ev, v.evidence(x.Place, x.Type+": "+x.Message))
			c.where = append(c.where, v.where(x.Place))
		}
		v.said(c, first(ss, 3)...)
		return c
	}
	redirect := v.peek("S104", "S069")
	switch {
	case len(noNCCL) > 0 && (b.win != nil || b.mac != nil || len(redirect) > 0):
		c := mk("torch-platform-has-no-nccl", diag.Proven)
		for _, e := range redirect {
			c.ev = append(c.ev, v.evidence(e.Place, e.Text))
		}
		if b.winText != "" {
			p := b.win
			if p == nil {
				p = b.mac
			}
			c.ev = append(c.ev, v.evidence(*p, b.winText))
		}
		return
	}
	if o, n, cmd, ok := v.replaced(); ok {
		if !explicitTorch(cmd) || flavour(o.V) != "" && flavour(n.V) == "" {
			c := mk("torch-replaced-by-dependency", diag.Proven, o, n)
			c.args = mergeArgs(c.args, wanted(o, n, cmd))
			c.over = []string{"torch-cpu-build", "torch-built-without-nccl"}
			return
		}
	}
	if ss, dir, ok := v.userSiteShadows(b); ok {
		c := mk("env-user-site-shadows", diag.Proven, ss...)
		c.args = mergeArgs(c.args, diag.Args{"dir": dir, "torch_dir": dir + "/torch"})
		return
	}
	if ss, dir, ok := v.pythonPathShadows(); ok {
		c := mk("env-pythonpath-shadows", diag.Proven, ss...)
		c.args = mergeArgs(c.args, diag.Args{"dir": dir})
		return
	}
	nvidiaHere := len(v.facts(kind.Driver)) > 0 || len(v.facts(kind.GPU)) > 0
	if len(b.rocm) > 0 && (nvidiaHere || len(hip) > 0 && nvidiaHere || len(noCUDA)+len(noNCCL) > 0 && nvidiaHere) {
		mk("torch-wrong-accelerator", diag.Proven, append(first(b.rocm, 2), first(append(v.facts(kind.Driver), v.facts(kind.GPU)...), 2)...)...)
		return
	}
	if len(hip) > 0 {
		return // the general rules know what a missing HIP device suggests
	}
	if listed, ran, ok := v.otherListing(b); ok && len(b.cpu) == 0 {
		c := mk("env-not-activated", diag.Likely, listed, ran)
		c.needs = append(c.needs, "which python torchrun", "python -c 'import sys, torch; print(sys.executable, torch.__file__, torch.__version__)'")
		return
	}
	if len(noNCCL) > 0 && (len(b.tegra) > 0 || len(b.cuda) > 0) && len(b.cpu) == 0 {
		cert := diag.Likely
		if (len(b.tegra) > 0 || len(b.noNCCL) > 0) && len(b.cuda) > 0 {
			cert = diag.Proven
		}
		mk("torch-built-without-nccl", cert, append(first(b.cuda, 2), first(b.tegra, 1)...)...)
		return
	}
	if other := v.otherPython(); other != nil && len(b.cpu) == 0 {
		c := mk("env-not-activated", diag.Likely, *other)
		c.needs = append(c.needs, "which python torchrun", "python -c 'import sys, torch; print(sys.executable, torch.__file__, torch.__version__)'")
		return
	}
	if len(b.cpu) > 0 {
		if contradicts(b) {
			v.unknown(es, "python -c 'import torch; print(torch.__file__, torch.__version__, torch.version.cuda)'")
			return
		}
		mk("torch-cpu-build", diag.Proven, b.cpu...)
		return
	}
	if len(b.croot) > 0 && len(noNCCL)+len(noCUDA) > 0 {
		mk("torch-cpu-build", diag.Likely, b.croot...)
		return
	}
	if len(b.aarch64) > 0 && len(b.versions) > 0 && !b.nvidia && len(noNCCL)+len(noCUDA) > 0 && plainVersion(b.versions) {
		mk("torch-cpu-build", diag.Likely, append(first(b.versions, 1), b.aarch64[0])...)
		return
	}
	if dir, p := v.torchDir(); len(noNCCL)+len(noCUDA) > 0 && plainModule.MatchString(dir) && len(b.cuda)+len(b.rocm) == 0 {
		// EasyBuild says -CUDA-x.y in the name of a build that has it
		c := mk("torch-cpu-build", diag.Likely)
		c.ev = append(c.ev, v.evidence(p, dir+"/torch"))
		c.needs = append(c.needs, "python -c 'import torch; print(torch.__version__, torch.version.cuda)'")
		return
	}
	if dir, p := v.torchDir(); len(noNCCL)+len(noCUDA) > 0 && dir == debianDir && len(b.cuda)+len(b.rocm) == 0 {
		c := mk("torch-cpu-build", diag.Likely, b.debian...)
		c.args = mergeArgs(c.args, diag.Args{"installer": "debian", "env_kind": "system"})
		c.ev = append(c.ev, v.evidence(p, dir+"/torch"))
		c.needs = append(c.needs, "dpkg -S "+debianDir+"/torch", "python3 -c 'import torch; print(torch.version.cuda)'")
		return
	}
	if len(noCUDA) > 0 {
		// only a build without CUDA and ROCm says so
		c := mk("torch-cpu-build", diag.Likely, b.versions...)
		c.needs = append(c.needs, "python -c 'import torch; print(torch.__file__, torch.__version__, torch.version.cuda)'")
		return
	}
	if len(noBackend) > 0 && len(es) == 0 {
		v.gpuMissing(noBackendEvents(noBackend))
		return
	}
	v.unknown(es, v.askEnvironment(), "srun python -c 'import torch; print(torch.__file__, torch.__version__, torch.version.cuda)'")
}

// plainModule matches folders of a torch that EasyBuild built without CUDA.
var plainModule = lazyre.New(`/PyTorch(?:-bundle)?/[\d.]+-(?:foss|intel|gfbf|gomkl|gompi)-\d{4}[ab]/`)

// loudest is the rule of the error itself, which says more than the warnings
// before it, or "".
func loudest(es []*fact.Event) string {
	for _, e := range es {
		if e.Sig == "S001" {
			return e.Rule
		}
	}
	return ""
}

// askEnvironment is the check that decides about the torch of the log: of its
// own environment when the paths in the log name that.
func (v *view) askEnvironment() string {
	const check = "srun --gres=gpu:1 ncclinic check"
	dir, _ := v.torchDir()
	prefix, _, ok := strings.Cut(dir, "/lib/python")
	if !ok || !plainPath.MatchString(prefix) || strings.HasSuffix(prefix, "/.local") || prefix == "/usr" {
		return check
	}
	return check + " --python " + prefix
}

// plainPath are paths that need no quoting in a command that is pasted.
var plainPath = lazyre.New(`^/[\w./@+-]+$`)

// decideListedCPU judges listings alone: nothing that ran is among the input,
// and the torch that they describe has no CUDA.
func (v *view) decideListedCPU() {
	if v.dead || len(v.facts("success")) > 0 || v.trained() || v.meansCPU() {
		return
	}
	b := v.build()
	gpu := append(v.facts(kind.GPU), v.facts(kind.Driver)...)
	if len(b.cpu) == 0 || len(b.cuda) > 0 || len(b.rocm) > 0 {
		return
	}
	c := v.add(cand{id: "torch-cpu-build", cert: diag.Likely, args: v.torchArgs(b)})
	v.said(c, first(b.cpu, 3)...)
	v.said(c, first(gpu, 2)...)
	c.where = append(c.where, v.where(c.at))
	if len(gpu) > 0 {
		c.cert = diag.Proven
	}
}

var cpuWords = lazyre.New(`(?i)\bgloo\b|(?:device|accelerator)[ =:'"]+cpu\b|--(?:use[-_])?cpu\b|--no[-_]cuda\b`)

// meansCPU reports a script or a log that says that CPUs are to be used.
func (v *view) meansCPU() bool {
	for _, s := range v.scripts {
		for _, l := range s.Lines {
			if cpuWords.MatchString(l) {
				return true
			}
		}
	}
	for _, s := range v.facts(kind.TorchVer) {
		if cpuWords.MatchString(s.Text) {
			return true
		}
	}
	return false
}

// debianDir is where packages of Debian and Ubuntu put Python modules.
const debianDir = "/usr/lib/python3/dist-packages"

func contradicts(b build) bool {
	// two listings of different environments, one with CUDA: which one ran is not told
	for _, c := range b.cuda {
		for _, p := range b.cpu {
			if c.Kind == kind.Pkg && p.Kind == kind.Pkg && c.File != p.File && c.Name == p.Name {
				return true
			}
			if c.File == p.File && strings.HasPrefix(c.Aux, "lock") && strings.HasPrefix(p.Aux, "lock") {
				return true // a lock file for several platforms
			}
		}
	}
	return false
}

func (v *view) torchArgs(b build) diag.Args {
	a := diag.Args{}
	if d, _ := v.torchDir(); d != "" {
		a["torch_dir"] = d + "/torch"
	}
	for _, s := range b.versions {
		if s.V != "" {
			a["version"] = s.V
			a["public_version"], _, _ = strings.Cut(s.V, "+")
		}
	}
	for _, s := range b.cuda {
		if s.Kind == kind.TorchCUDA {
			a["torch_cuda"] = s.V
		}
	}
	v.installer(a)
	for _, x := range v.l.Exits {
		if x.Binary != "" {
			a["python"] = x.Binary
			break
		}
	}
	if ds := v.facts(kind.Driver); len(ds) > 0 {
		a["driver"] = ds[0].V
	}
	if gs := v.facts(kind.GPU); len(gs) > 0 {
		a["gpu"] = gs[0].V
	}
	return a
}

func mergeArgs(a, b diag.Args) diag.Args {
	if a == nil {
		a = diag.Args{}
	}
	for k, x := range b {
		if x != "" {
			a[k] = x
		}
	}
	return a
}

func cap4(es []*fact.Event) []*fact.Event {
	if len(es) > 6 {
		return es[:6]
	}
	return es
}

func first(ss []fact.Said, n int) []fact.Said {
	if len(ss) > n {
		ss = ss[:n]
	}
	return append([]fact.Said(nil), ss...)
}

// unknown notes a failure whose cause the input cannot decide, with what would.
func (v *view) unknown(es []*fact.Event, needs ...string) {
	v.unsure = append(v.unsure, es...)
	for _, n := range needs {
		dup := false
		for _, x := range v.needs {
			dup = dup || x == n
		}
		if !dup {
			v.needs = append(v.needs, n)
		}
	}
}
