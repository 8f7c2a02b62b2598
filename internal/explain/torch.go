package explain

import (
	"slices"
	"strconv"
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

// replaced reports that an install of something else swapped torch.
func (v *view) replaced() (out, in fact.Said, cmd string, ok bool) {
	for _, o := range v.facts(kind.PipOut) {
		if o.Name != "torch" {
			continue
		}
		for _, n := range v.facts(kind.PipIn) {
			if n.Name != "torch" || n.File != o.File || n.Line < o.Line || sameFlavour(o.V, n.V) && n.V == o.V {
				continue
			}
			return o, n, o.Aux, true
		}
	}
	return
}

func sameFlavour(a, b string) bool { return flavour(a) == flavour(b) }

func flavour(s string) string {
	if i := strings.IndexByte(s, '+'); i >= 0 {
		return s[i+1:]
	}
	return ""
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

func noBackendEvents(xs []*fact.Exception) []*fact.Event {
	var es []*fact.Event
	for _, x := range xs {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + x.Message, Rule: ""})
	}
	return es
}

// debianDir is where packages of Debian and Ubuntu put Python modules.
const debianDir = "/usr/lib/python3/dist-packages"

// lastInstall reports whether no later line of the file installs the package again.
func (v *view) lastInstall(s fact.Said) bool {
	for _, o := range v.facts(kind.PipIn) {
		if o.Name == s.Name && o.File == s.File && o.Line > s.Line {
			return false
		}
	}
	return true
}

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

func plainVersion(ss []fact.Said) bool {
	for _, s := range ss {
		if strings.Contains(s.V, "+") {
			return false
		}
	}
	return true
}

// explicitTorch reports whether a pip command asks for torch itself.
func explicitTorch(cmd string) bool {
	for _, w := range strings.Fields(cmd) {
		w = strings.Trim(w, `"'`)
		if w == "torch" || strings.HasPrefix(w, "torch==") || strings.HasPrefix(w, "torch>") || strings.HasPrefix(w, "torch<") || strings.HasPrefix(w, "torch~") || strings.HasPrefix(w, "torch-") {
			return true
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

func (v *view) excWith(words ...string) []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.exc {
		for _, w := range words {
			if strings.Contains(x.Message, w) {
				out = append(out, x)
				break
			}
		}
	}
	return out
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

// pythonPathShadows reports a torch that PYTHONPATH puts before the environment's.
func (v *view) pythonPathShadows() (ss []fact.Said, dir string, ok bool) {
	tdir, _ := v.torchDir()
	for _, d := range v.pythonPath() {
		if x := v.torchFrame(d.V); x != nil {
			return []fact.Said{d, {Place: x.Place, Text: d.V + "/torch"}}, d.V, true
		}
		if tdir != "" && (tdir == d.V || strings.HasPrefix(tdir, d.V+"/")) || tdir == "" && torchish(d.V+"/") {
			return []fact.Said{d}, d.V, true
		}
	}
	return nil, "", false
}

// torchFrame returns an exception that was raised in the torch of a folder.
func (v *view) torchFrame(dir string) *fact.Exception {
	for _, x := range v.exc {
		for _, f := range x.Frames {
			if strings.HasPrefix(f.File, dir+"/torch/") {
				return x
			}
		}
	}
	return nil
}

func torchish(d string) bool {
	l := strings.ToLower(d)
	return strings.Contains(l, "/pytorch/") || strings.Contains(l, "/torch/") || strings.Contains(l, "/pytorch-")
}

var attrTorch = lazyre.New(`^(?:partially initialized )?module 'torch(?:\.[\w.]+)?' has no attribute '(\w+)'`)

// decideTorchPackage judges what a torch package that is not whole, or not the
// one that was meant, says.
func (v *view) decideTorchPackage() {
	var attr *fact.Exception
	for _, x := range v.exc {
		if attrTorch.MatchString(x.Message) {
			attr = x
			break
		}
	}
	noDist := v.excWith("No module named 'torch.distributed'", "No module named 'torch._C'", "No module named 'torch.cuda'", "cannot import name '_C' from 'torch'")
	broken := v.facts(kind.PipBroken)
	var torchBroken []fact.Said
	for _, s := range broken {
		if strings.Contains(s.V, "-orch") {
			torchBroken = append(torchBroken, s)
		}
	}
	if v.localTorch() || v.noDistributed() {
		return
	}
	failing := attr
	if failing == nil && len(noDist) > 0 {
		failing = noDist[0]
	}
	inTorch := v.tornTorch()
	b := v.build()
	if x := v.cutLibrary(); x != nil {
		c := v.addExc(cand{id: "torch-install-damaged", cert: diag.Proven, over: []string{"run-exception", "torch-not-installed"}}, x)
		v.cutFile(c)
		return
	}
	twice := len(b.pip) > 0 && len(b.conda) > 0 && v.sameListing(b.pip, b.conda)
	if len(torchBroken) > 0 && (failing != nil || inTorch != nil || v.importOfTorchFails()) {
		c := v.addExc(cand{id: "torch-install-damaged", cert: diag.Proven, over: []string{"host-disk-full", "torch-not-installed", "run-exception"}}, failing, inTorch)
		v.said(c, first(torchBroken, 2)...)
		v.used["S356"], v.used["S317"] = true, true
		return
	}
	if inTorch != nil {
		cert := diag.Likely
		if twice {
			cert = diag.Proven
		}
		v.used["S237"] = true
		c := v.add(cand{id: "torch-install-damaged", cert: cert}, inTorch)
		if twice {
			v.said(c, b.pip[0], b.conda[0])
		}
		return
	}
	if attr != nil {
		m := attrTorch.FindStringSubmatch(attr.Message)
		if ss, dir, ok := v.pythonPathShadows(); ok {
			c := v.addExc(cand{id: "env-pythonpath-shadows", cert: diag.Proven, args: diag.Args{"dir": dir}}, attr)
			v.said(c, ss...)
			return
		}
		if ss, dir, ok := v.userSiteShadows(b); ok {
			c := v.addExc(cand{id: "env-user-site-shadows", cert: diag.Likely, args: diag.Args{"dir": dir}}, attr)
			v.said(c, ss...)
			return
		}
		switch m[1] {
		case "__version__", "tensor", "Tensor", "nn", "cuda", "float32", "float16", "device", "no_grad", "manual_seed", "load", "save", "zeros", "ones", "utils", "optim", "backends", "long", "set_num_threads":
			v.addExc(cand{id: "torch-install-damaged", cert: diag.Likely}, attr)
		case "init_process_group":
			v.used["S007"] = true
			v.addExc(cand{id: "torch-built-without-distributed", cert: diag.Likely}, attr)
		}
		return
	}
	if len(noDist) > 0 {
		v.addExc(cand{id: "torch-install-damaged", cert: diag.Likely}, noDist[0])
	}
}

func (v *view) sameListing(a, b []fact.Said) bool {
	for _, x := range a {
		for _, y := range b {
			if x.File == y.File && x.V != y.V {
				return true
			}
		}
	}
	return false
}

// cutLib matches the loader's words for a library that was not written wholly.
var cutLib = lazyre.New(`(/\S*/(?:torch|nvidia)/\S*\.so[\d.]*): (?:file too short|invalid ELF header|cannot read file data|ELF load command past end of file|ELF file's phentsize)`)

// cutLibrary returns the exception of a library of torch's own that was cut.
func (v *view) cutLibrary() *fact.Exception {
	for _, x := range v.exc {
		if cutLib.MatchString(x.Message) {
			return x
		}
	}
	return nil
}

// cutFile adds a listing that shows a library of torch with no bytes.
func (v *view) cutFile(c *cand) {
	for _, s := range v.facts(kind.EmptyLib) {
		v.said(c, s)
	}
}

func (v *view) importOfTorchFails() bool {
	for _, x := range v.exc {
		if n := len(x.Frames); n > 0 && strings.HasSuffix(x.Frames[n-1].File, "/torch/__init__.py") {
			return true
		}
	}
	return false
}

// tornTorch returns an undefined torch symbol inside torch's own libraries.
func (v *view) tornTorch() *fact.Event {
	for _, e := range v.peek("S237") {
		if strings.Contains(e.Text, "/torch/lib/lib") || strings.Contains(e.Text, "/torch/_C") {
			return e
		}
	}
	return nil
}

// addExc notes a candidate from an exception (and an event that may be nil).
func (v *view) addExc(c cand, x *fact.Exception, es ...*fact.Event) *cand {
	if x != nil {
		if c.at.Line == 0 {
			c.at = x.Place
		}
		c.ev = append(c.ev, v.excEvidence(x)...)
		c.where = append(c.where, v.where(x.Place))
		if c.args == nil {
			c.args = diag.Args{}
		}
		if c.args["exception"] == "" {
			c.args["exception"] = x.Type
			c.args["message"] = fact.Clip(x.Message, 200)
		}
		if f := userFrame(x); f.File != "" && c.args["frame_file"] == "" {
			c.args["frame_file"], c.args["frame_line"] = f.File, strconv.Itoa(f.Line)
		}
	}
	var live []*fact.Event
	for _, e := range es {
		if e != nil {
			live = append(live, e)
		}
	}
	return v.add(c, live...)
}

func (v *view) excEvidence(x *fact.Exception) []fact.Evidence {
	out := []fact.Evidence{v.evidence(x.Place, fact.Clip(x.Type+": "+x.Message, 400))}
	if f := userFrame(x); f.File != "" {
		e := v.evidence(x.Place, `File "`+f.File+`", line `+strconv.Itoa(f.Line)+inFunc(f.Func)+codeOf(f.Code))
		if x.Start > 0 {
			e.Line = x.Start
		}
		out = append(out, e)
	}
	return out
}

func inFunc(f string) string {
	if f == "" {
		return ""
	}
	return ", in " + f
}

func codeOf(c string) string {
	if c == "" {
		return ""
	}
	return ": " + c
}

// userFrame returns the last frame of the program's own code, else the last one.
func userFrame(x *fact.Exception) fact.Frame {
	for i := len(x.Frames) - 1; i >= 0; i-- {
		f := x.Frames[i].File
		if !strings.Contains(f, "/site-packages/") && !strings.Contains(f, "/dist-packages/") && !strings.Contains(f, "/lib/python") && !strings.HasPrefix(f, "<frozen") && !strings.Contains(f, `\site-packages\`) {
			return x.Frames[i]
		}
	}
	if n := len(x.Frames); n > 0 {
		return x.Frames[n-1]
	}
	return fact.Frame{}
}

// extFrame returns the extension package in whose code the exception was raised, "" for torch itself.
func extFrame(x *fact.Exception) string {
frames:
	for i := len(x.Frames) - 1; i >= 0; i-- {
		f := x.Frames[i].File
		for _, sep := range []string{"/site-packages/", "/dist-packages/"} {
			if j := strings.Index(f, sep); j >= 0 {
				p := f[j+len(sep):]
				if k := strings.IndexByte(p, '/'); k > 0 {
					p = p[:k]
				}
				p = strings.TrimSuffix(p, ".py")
				if p == "torch" {
					if i == len(x.Frames)-1 && !strings.Contains(f, "/autograd/") && !strings.Contains(f, "_tensor.py") && !strings.Contains(f, "/_ops.py") && !strings.Contains(f, "/nn/modules/module.py") && !strings.Contains(f, "/utils/_contextlib.py") {
						return ""
					}
					continue frames // torch calls back into the extension: the caller stands above
				}
				return p
			}
		}
		return ""
	}
	return ""
}

// decideLibraries judges loader errors.
func (v *view) decideLibraries() {
	if es := v.ev("S227"); len(es) > 0 {
		var w11, w12 []fact.Said
		seen := map[string]fact.Said{}
		for _, s := range v.facts(kind.Pkg) {
			if strings.HasPrefix(s.Name, "nvidia-nccl-cu") {
				seen[s.Name] = s
			}
		}
		for _, s := range seen {
			w11 = append(w11, s)
		}
		_ = w12
		if len(seen) > 1 {
			c := v.add(cand{id: "nccl-wheels-collide", cert: diag.Proven, over: []string{"nccl-library-too-old"}}, cap4(es)...)
			v.said(c, w11...)
		} else {
			c := v.add(cand{id: "nccl-library-too-old", cert: diag.Proven}, cap4(es)...)
			for _, s := range v.facts(kind.LDD) {
				if strings.HasPrefix(s.Name, "libnccl") {
					v.said(c, s)
					c.args = mergeArgs(c.args, diag.Args{"path": s.V})
				}
			}
			for _, n := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH"} {
				if val, s, ok := v.env(n); ok && strings.Contains(strings.ToLower(val), "nccl") {
					v.said(c, s)
					c.args = mergeArgs(c.args, diag.Args{"var": n, "value": val})
				}
			}
			v.said(c, w11...)
		}
	}
	if es := v.ev("S228"); len(es) > 0 {
		v.add(cand{id: "nccl-library-missing", cert: diag.Proven}, cap4(es)...)
	}
	// cuDNN, nvJitLink, cuBLASLt of somebody else come first
	if es := v.ev("S230", "S231", "log-cudnn-version-incompatible"); len(es) > 0 {
		c := v.add(cand{id: "cuda-library-shadowed", cert: diag.Proven}, cap4(es)...)
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && val != "" {
			v.said(c, s)
			c.args = mergeArgs(c.args, diag.Args{"var": "LD_LIBRARY_PATH", "value": val})
		}
		v.moduleEv(c, "cuda", "cudnn", "nvhpc", "hpc_sdk")
	} else if xs := v.excWith("cuDNN version incompatibility"); len(xs) > 0 {
		c := v.addExc(cand{id: "cuda-library-shadowed", cert: diag.Proven}, xs[0])
		v.moduleEv(c, "cudnn", "cuda")
	}
	if es := v.ev("S229"); len(es) > 0 {
		e := es[0]
		x := v.excAt(e)
		torchItself := x != nil && loadsTorch(x)
		if x != nil && !torchItself && len(x.Frames) > 0 {
			c := v.add(cand{id: "torch-extension-built-for-other-torch", cert: diag.Likely}, cap4(es)...)
			for _, s := range v.facts(kind.TorchCUDA) {
				v.said(c, s)
				c.cert = diag.Proven
			}
			v.said(c, first(v.facts(kind.TorchVer), 1)...)
		} else {
			v.add(cand{id: "cuda-library-missing", cert: diag.Likely}, cap4(es)...)
		}
	}
	var foreign, es []*fact.Event // symbols of CUDA's libraries, of torch
	for _, e := range v.ev("S237") {
		if strings.Contains(e.Text, "Warning: ") {
			continue // the import went on without that part
		}
		if cudaSymbol.MatchString(e.Text) {
			foreign = append(foreign, e)
		} else {
			es = append(es, e)
		}
	}
	if len(foreign) > 0 && !v.candidate("cuda-library-shadowed") {
		c := v.add(cand{id: "cuda-library-shadowed", cert: diag.Likely, over: []string{"run-exception", "run-native-crash"}}, cap4(foreign)...)
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && val != "" {
			v.said(c, s)
			c.args = mergeArgs(c.args, diag.Args{"var": "LD_LIBRARY_PATH", "value": val})
		}
		v.moduleEv(c, "cudnn", "cuda")
	}
	if len(es) > 0 && v.tornTorch() == nil && !v.userTorch(es) {
		c := v.add(cand{id: "torch-extension-built-for-other-torch", cert: diag.Proven}, cap4(es)...)
		for _, s := range v.facts(kind.Pkg) {
			if s.Name == "torch" {
				v.said(c, s)
				break
			}
		}
	}
}

// loadsTorch reports that an exception was raised while torch loads its own libraries.
func loadsTorch(x *fact.Exception) bool {
	n := len(x.Frames)
	for i, f := range x.Frames {
		if strings.Contains(f.File, "/torch/__init__.py") && (i == n-1 || strings.Contains(f.Func, "_load_global_deps") || strings.Contains(f.Func, "_preload_cuda")) {
			return true
		}
	}
	return false
}

// userTorch judges an extension of an environment or image whose symbols are
// missing because the torch of ~/.local comes first: frames of the launcher or
// the program show that torch, and the extension lies elsewhere.
func (v *view) userTorch(es []*fact.Event) bool {
	for _, e := range es {
		if strings.Contains(e.Text, "/.local/") || !strings.Contains(e.Text, "-packages/") {
			return false
		}
	}
	for i := range v.l.Exceptions {
		for _, f := range v.l.Exceptions[i].Frames {
			dir, _, ok := strings.Cut(f.File, "/site-packages/torch/")
			if !ok || !strings.Contains(dir, "/.local/lib/python") {
				continue
			}
			c := v.add(cand{id: "env-user-site-shadows", cert: diag.Likely, args: diag.Args{"dir": dir + "/site-packages", "torch_dir": dir + "/site-packages/torch"},
				over: []string{"run-exception", "torch-extension-built-for-other-torch", "torch-install-damaged"}, needs: []string{"PYTHONNOUSERSITE=1 python -c 'import torch; print(torch.__file__, torch.__version__)'"}}, cap4(es)...)
			x := &v.l.Exceptions[i]
			c.ev = append(c.ev, v.evidence(x.Place, f.File))
			return true
		}
	}
	return false
}

// cudaSymbol matches symbols that one library of CUDA misses in another.
var cudaSymbol = lazyre.New(`undefined symbol: _ZN\d+(?:cudnn|cublas|cufft|cusparse|cusolver)`)

func (v *view) excAt(e *fact.Event) *fact.Exception {
	for i := range v.l.Exceptions {
		x := &v.l.Exceptions[i]
		for _, k := range x.Sigs {
			if k < len(v.l.Events) && &v.l.Events[k] == e {
				return x
			}
		}
		if x.File == e.File && x.Line == e.Line {
			return x
		}
	}
	return nil
}

// moduleEv quotes the module load of the script that names one of the words.
func (v *view) moduleEv(c *cand, words ...string) {
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			cmd := &s.f.Commands[i]
			if cmd.Name != "module" && cmd.Name != "ml" {
				continue
			}
			for _, arg := range cmd.Words {
				if l := strings.ToLower(arg.Text); slices.ContainsFunc(words, func(w string) bool { return strings.Contains(l, w) }) {
					c.ev = append(c.ev, s.ev(cmd.Pos))
					return
				}
			}
		}
	}
}

// wanted describes the torch that an installation took away: the fix puts it back.
func wanted(o, n fact.Said, cmd string) diag.Args {
	a := diag.Args{"old": o.V, "new": n.V, "command": cmd}
	if tag := flavour(o.V); strings.HasPrefix(tag, "cu") {
		a["public_version"], a["cuda_tag"] = public(o.V), tag
	}
	return a
}
