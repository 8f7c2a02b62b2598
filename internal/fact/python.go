package fact

import "strings"

// How an interpreter was chosen.
const (
	ByFlag        = "flag"         // --python
	ByVirtualEnv  = "VIRTUAL_ENV"  // $VIRTUAL_ENV/bin/python
	ByCondaPrefix = "CONDA_PREFIX" // $CONDA_PREFIX/bin/python
	ByPath        = "PATH"         // first python3 or python on PATH
	ByTorchrun    = "torchrun"     // shebang of the first torchrun on PATH
	ByScript      = "script"       // named by a batch script
	ByEntrypoint  = "entrypoint"   // named by the entry point of an image
)

// Python is the interpreter that the job would run and the search path that
// it would build, as its own site.py does.
type Python struct {
	Exe     Val[string] `json:"exe,omitzero"`     // as found, links not resolved: a venv is known by this path
	Real    Val[string] `json:"real,omitzero"`    // links resolved
	By      string      `json:"by,omitempty"`     // how it was chosen, see By… constants
	Version Val[string] `json:"version,omitzero"` // 3.11 or 3.11.7
	Prefix  Val[string] `json:"prefix,omitzero"`  // sys.prefix
	Base    Val[string] `json:"base,omitzero"`    // sys.base_prefix

	Venv       Val[bool]   `json:"venv,omitzero"`       // a pyvenv.cfg was found
	SystemSite Val[bool]   `json:"systemSite,omitzero"` // include-system-site-packages
	Pip        Val[bool]   `json:"pip,omitzero"`        // python -m pip works
	UV         Val[string] `json:"uv,omitzero"`         // version of the uv that made the virtual environment
	UserSite   Val[bool]   `json:"userSite,omitzero"`   // the user site directory is on the path
	Conda      Val[string] `json:"conda,omitzero"`      // prefix with conda-meta; Absent: not a conda environment

	Path   []PathEntry `json:"path,omitempty"`   // sys.path in order, without the script's own folder
	Others []PythonRef `json:"others,omitempty"` // other interpreters that variables, PATH or a torchrun name
	// Torchrun is the first torchrun on PATH and the interpreter that its first line starts.
	Torchrun Val[Torchrun] `json:"torchrun,omitzero"`
	// LocalTorch are torch folders and torch.py files in the working directory,
	// when that is not on the path by itself: they win in a script that lies
	// there and under python -m.
	LocalTorch []string `json:"localTorch,omitempty"`
}

// Kinds of a PathEntry.
const (
	PathPythonPath = "PYTHONPATH"
	PathStdlib     = "stdlib"
	PathSite       = "site-packages"
	PathUserSite   = "user-site"
	PathDist       = "dist-packages"
	PathSystemSite = "system-site"   // site-packages of the base interpreter, seen from a venv
	PathPth        = "pth"           // added by a .pth file
	PathCustomize  = "sitecustomize" // added by EasyBuild's sitecustomize.py from EBPYTHONPREFIXES
	PathFinder     = "finder"        // not an entry: an import hook of an editable install maps the package
)

// PathEntry is one entry of sys.path.
type PathEntry struct {
	Dir    string `json:"dir"`
	Kind   string `json:"kind"`
	Via    string `json:"via,omitempty"` // variable or .pth file (with line) that put it there
	Exists bool   `json:"exists"`
	// Module names the environment module that put the entry there, when that can be told.
	Module string `json:"module,omitempty"`
}

// PythonRef is an interpreter that something names.
type PythonRef struct {
	Exe string   `json:"exe"`
	By  string   `json:"by"`
	At  Evidence `json:"at,omitzero"`
	// Missing says that there is no such file, or a link to nowhere.
	Missing bool `json:"missing,omitempty"`
	// Torch is the version of the torch in its site-packages; Absent: none there.
	Torch Val[string] `json:"torch,omitzero"`
	// Accel is what that torch computes on, see Accel… constants; "" when not known.
	Accel string `json:"accel,omitempty"`
}

// Torchrun is a torchrun script and the interpreter on its first line.
type Torchrun struct {
	Path   string `json:"path"`
	Python string `json:"python"`
}

// Forms of a Torch other than an ordinary package.
const (
	FormModule    = "module"    // a torch.py or torch.…so that hides the package
	FormNamespace = "namespace" // a torch folder without __init__.py: taken only when nothing else is found
)

// Torch is one torch package on the search path.
type Torch struct {
	Dir   string `json:"dir"`             // …/site-packages/torch
	Entry int    `json:"entry"`           // index in Python.Path; -1 when not from a search path
	Kind  string `json:"kind,omitempty"`  // kind of that entry
	Form  string `json:"form,omitempty"`  // see Form… constants; empty: an ordinary package
	Via   string `json:"via,omitempty"`   // variable or file that put the entry there
	Names string `json:"names,omitempty"` // module that gave the variable, when that can be told

	Version Val[string] `json:"version,omitzero"` // __version__
	CUDA    Val[string] `json:"cuda,omitzero"`    // "12.4"; Absent: cuda = None
	HIP     Val[string] `json:"hip,omitzero"`
	XPU     Val[string] `json:"xpu,omitzero"`
	Git     Val[string] `json:"git,omitzero"`

	Dist   Val[Dist]   `json:"dist,omitzero"`   // the distribution that owns it
	Origin Val[Origin] `json:"origin,omitzero"` // where the build comes from

	Distributed Val[bool] `json:"distributed,omitzero"` // torch.distributed compiled in
	NCCL        Val[bool] `json:"nccl,omitzero"`        // c10d::ProcessGroupNCCL compiled in
	Gloo        Val[bool] `json:"gloo,omitzero"`        // c10d::ProcessGroupGloo compiled in
	MPI         Val[bool] `json:"mpi,omitzero"`
	XCCL        Val[bool] `json:"xccl,omitzero"`
	NCCLStatic  Val[bool] `json:"ncclStatic,omitzero"` // libnccl is linked in: no libnccl.so.2 is loaded
	// NCCLVersion is the NCCL that the build asks for by its metadata, or has linked in: 2.21.5.
	NCCLVersion Val[string] `json:"ncclVersion,omitzero"`

	Archs   Val[[]string] `json:"archs,omitzero"`   // sm_80, compute_90, … that the build carries
	Machine Val[string]   `json:"machine,omitzero"` // x86_64, aarch64 of its libraries
	PyTag   Val[string]   `json:"pyTag,omitzero"`   // cpython-312 of _C…so

	// Damage lists what makes the installation look half-removed or mixed:
	// "~orch" folders, two dist-info folders, RECORD files that are missing.
	Damage []Damage `json:"damage,omitempty"`
}

// Kinds of Damage.
const (
	DamageLeftover        = "leftover"         // a ~orch folder that an interrupted pip left
	DamageTwoDists        = "two-dist-infos"   // two metadata folders of torch in one site-packages
	DamageMissingFile     = "missing-file"     // a file that RECORD lists, or that makes the package, is not there
	DamageVersionMismatch = "version-mismatch" // version.py and the metadata name different releases or builds
	DamageTruncatedFile   = "truncated-file"   // a library ends before the parts that its own header promises
	DamageChangedFile     = "changed-file"     // a library has another size than RECORD says: overwritten, or stripped
	DamageTwoInstallers   = "two-installers"   // both conda and pip say that they installed it
)

// Damage is one sign of a damaged installation.
type Damage struct {
	Kind string   `json:"kind"` // see Damage… constants
	What string   `json:"what"`
	At   Evidence `json:"at,omitzero"`
}

// Accelerator of a torch build.
const (
	AccelCPU  = "cpu"
	AccelCUDA = "cuda"
	AccelROCm = "rocm"
	AccelXPU  = "xpu"
)

// Accel returns what the build computes on, and "" when that is not known.
func (t *Torch) Accel() string {
	switch {
	case t.HIP.IsKnown():
		return AccelROCm
	case t.CUDA.IsKnown():
		return AccelCUDA
	case t.XPU.IsKnown():
		return AccelXPU
	case t.CUDA.IsAbsent():
		return AccelCPU
	}
	return ""
}

// Dist is an installed distribution as its metadata folder describes it.
type Dist struct {
	Name      string   `json:"name"` // normalised: nvidia-nccl-cu12
	Version   string   `json:"version"`
	Dir       string   `json:"dir"` // the .dist-info or .egg-info folder, or the conda-meta file
	Entry     int      `json:"entry"`
	Installer string   `json:"installer,omitempty"` // pip, uv, conda, debian
	URL       string   `json:"url,omitempty"`       // direct_url.json, credentials masked
	Requires  []string `json:"requires,omitempty"`  // Requires-Dist without extras, only for torch
	Tags      []string `json:"tags,omitempty"`      // Tag lines of WHEEL
	Build     string   `json:"build,omitempty"`     // conda build string
	Channel   string   `json:"channel,omitempty"`   // conda channel
}

// Origin kinds.
const (
	OriginWheel  = "wheel"
	OriginConda  = "conda"
	OriginDebian = "debian"
	OriginSource = "source"
)

// Origin says who built a torch.
type Origin struct {
	Kind    string `json:"kind"`              // see Origin… constants
	Package string `json:"package,omitempty"` // python3-torch, pytorch
	Version string `json:"version,omitempty"`
	Build   string `json:"build,omitempty"`   // conda build string
	Channel string `json:"channel,omitempty"` // conda channel: conda-forge, defaults, pytorch
	URL     string `json:"url,omitempty"`
}

// Load is what the dynamic loader would do for one library that torch needs.
type Load struct {
	Soname  string      `json:"soname"`            // libnccl.so.2
	For     string      `json:"for"`               // the library that needs it
	Path    Val[string] `json:"path,omitzero"`     // the file that wins; Absent: nowhere on the search path
	Real    string      `json:"real,omitempty"`    // links resolved
	Via     string      `json:"via,omitempty"`     // preload, DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, ld.so.cache, default, already-loaded
	ViaDir  string      `json:"viaDir,omitempty"`  // the entry of that list
	Version Val[string] `json:"version,omitzero"`  // of the file: 2.21.5
	CUDA    Val[string] `json:"cuda,omitzero"`     // CUDA that the file was built for, where it says so
	Missing []string    `json:"missing,omitempty"` // symbols that torch needs and the file does not export
	// MissingSince is the first release that has all Missing symbols, from the NCCL table.
	MissingSince string `json:"missingSince,omitempty"`
	Owner        string `json:"owner,omitempty"` // distribution that installed the file
	// Owners are all distributions that list the file as theirs, when there are
	// several: the last one that was installed won.
	Owners     []string  `json:"owners,omitempty"`
	Shadows    string    `json:"shadows,omitempty"` // the file that would win without LD_LIBRARY_PATH/LD_PRELOAD
	ShadowsVer string    `json:"shadowsVer,omitempty"`
	Tried      []LoadTry `json:"tried,omitempty"`
	// Chain are the files that led here, the one that was opened first, when it was asked for.
	Chain []string `json:"chain,omitempty"`
}

// LoadTry is one step of the loader's search.
type LoadTry struct {
	Path   string `json:"path"`
	Via    string `json:"via"`
	Result string `json:"result"` // found, absent, other-arch, unreadable
}

// Extension is a compiled extension that links against torch: torchvision,
// flash-attn, apex, a JIT cache.
type Extension struct {
	Name    string   `json:"name"` // distribution or module
	Version string   `json:"version,omitempty"`
	Path    string   `json:"path"`              // the shared object that was examined
	Missing []string `json:"missing,omitempty"` // c10/at/torch symbols that it needs and the winning torch does not export, or libtorch_cuda.so itself
	// CUDART is the CUDA runtime that it links: libcudart.so.12; Absent: none.
	CUDART Val[string]   `json:"cudart,omitzero"`
	Archs  Val[[]string] `json:"archs,omitzero"` // kernels inside; Absent: no device code
	At     Evidence      `json:"at,omitzero"`
}

// TagOS is the operating system of a platform tag or of a whole tag of a wheel,
// as Host.OS names it: cp312-cp312-win_amd64 is windows; "" for any and for those
// that are not known.
func TagOS(tag string) string {
	switch plat := tag[strings.LastIndexByte(tag, '-')+1:]; {
	case strings.HasPrefix(plat, "win"):
		return "windows"
	case strings.HasPrefix(plat, "macosx"):
		return "darwin"
	case strings.Contains(plat, "linux"):
		return "linux"
	}
	return ""
}
