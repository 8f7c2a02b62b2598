package install

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

const psp = "/env/lib/python3.12/site-packages"

func ncclLib(version, cuda string, symbols ...string) elftest.Lib {
	return elftest.Lib{Soname: "libnccl.so.2", Defined: symbols,
		Sections: []elftest.Section{{Name: ".rodata", Data: []byte("x\x00NCCL version " + version + "+cuda" + cuda + "\x00")}}}
}

// world is a machine with one environment.
type world struct {
	target string // kind of an artefact
	deny   string // a folder that cannot be read
	libs   map[string]elftest.Lib
	files  map[string]string
	env    map[string]string
	path   []fact.PathEntry // behind site-packages
	dists  []fact.Dist
	cpu    bool
}

// newWorld is a CUDA build whose libraries have DT_RUNPATH (rpath false) or
// DT_RPATH, as wheels have.
func newWorld(rpath bool) *world {
	paths := func(l elftest.Lib) elftest.Lib {
		p := "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN/../../nvidia/cusparse/lib:$ORIGIN:$ORIGIN/lib"
		if l.RunPath = p; rpath {
			l.RPath, l.RunPath = p, ""
		}
		return l
	}
	return &world{
		libs: map[string]elftest.Lib{
			"/usr/bin/python3.12":                             {Interp: "/lib64/ld-linux-x86-64.so.2", Needed: []string{"libc.so.6"}},
			"/lib/x86_64-linux-gnu/libc.so.6":                 {Soname: "libc.so.6", Versions: []string{"GLIBC_2.14", "GLIBC_2.17"}},
			psp + "/torch/_C.cpython-312-x86_64-linux-gnu.so": paths(elftest.Lib{Needed: []string{"libtorch_python.so"}}),
			psp + "/torch/lib/libtorch_python.so":             paths(elftest.Lib{Soname: "libtorch_python.so", Needed: []string{"libtorch_cuda.so", "libtorch_cpu.so", "libc10.so"}}),
			psp + "/torch/lib/libtorch_global_deps.so":        paths(elftest.Lib{Soname: "libtorch_global_deps.so", Needed: []string{"libcudart.so.12"}}),
			psp + "/torch/lib/libtorch_cpu.so":                paths(elftest.Lib{Soname: "libtorch_cpu.so", Needed: []string{"libc10.so"}, Defined: []string{"_ZN2at4_ops3add4callEv"}}),
			psp + "/torch/lib/libc10.so":                      paths(elftest.Lib{Soname: "libc10.so", Defined: []string{"_ZN3c105ErrorC1ENSt7__cxx1112basic_stringE"}}),
			psp + "/torch/lib/libtorch_cuda.so":               paths(elftest.Lib{Soname: "libtorch_cuda.so", Needed: []string{"libnccl.so.2", "libcusparse.so.12", "libcudart.so.12", "libc.so.6"}, Undefined: []string{"ncclSend", "ncclMemAlloc", "ncclCommSplit", "memcpy@GLIBC_2.14/libc.so.6"}}),
			psp + "/nvidia/nccl/lib/libnccl.so.2":             ncclLib("2.21.5", "12.4", "ncclSend", "ncclMemAlloc", "ncclCommSplit"),
			psp + "/nvidia/cuda_runtime/lib/libcudart.so.12":  {Soname: "libcudart.so.12"},
			psp + "/nvidia/cusparse/lib/libcusparse.so.12":    {Soname: "libcusparse.so.12", RunPath: "$ORIGIN:$ORIGIN/../../nvjitlink/lib", Needed: []string{"libnvJitLink.so.12"}, Undefined: []string{"__nvJitLinkComplete_12_4@libnvJitLink.so.12/libnvJitLink.so.12"}},
			psp + "/nvidia/nvjitlink/lib/libnvJitLink.so.12":  {Soname: "libnvJitLink.so.12", Defined: []string{"__nvJitLinkComplete_12_0@libnvJitLink.so.12", "__nvJitLinkComplete_12_4@libnvJitLink.so.12"}},
		},
		files: map[string]string{psp + "/torch/__init__.py": ""},
		env:   map[string]string{},
	}
}

func (w *world) bundle(t *testing.T) *fact.Bundle {
	t.Helper()
	fsys := fstest.MapFS{}
	for p, l := range w.libs {
		fsys[source.Rel(p)] = &fstest.MapFile{Data: l.Bytes(), Mode: 0o755}
	}
	for p, s := range w.files {
		fsys[source.Rel(p)] = &fstest.MapFile{Data: []byte(s), Mode: 0o644}
	}
	b := &fact.Bundle{
		Python: fact.Python{Exe: fact.Of("/env/bin/python", fact.Evidence{}), Real: fact.Of("/usr/bin/python3.12", fact.Evidence{}), Version: fact.Of("3.12.1", fact.Evidence{}),
			Path: append([]fact.PathEntry{{Dir: "/usr/lib/python3.12"}, {Dir: psp}}, w.path...)},
		Torch: []fact.Torch{{Dir: psp + "/torch", CUDA: fact.Of("12.4", fact.Evidence{})}},
		Dists: w.dists,
	}
	if w.cpu {
		b.Torch[0].CUDA = fact.None[string](fact.Evidence{})
	}
	b.Target.Kind = w.target
	m := &source.Machine{FS: fsys, Env: w.env}
	if w.deny != "" {
		m.FS = denied{fsys, w.deny}
	}
	collectLoads(context.Background(), m, b, nil)
	return b
}

// A folder of libraries that cannot be read: for this user the loader finds nothing in it;
// what the job's user finds in an image is not known.
func TestUnreadableFolder(t *testing.T) {
	for _, target := range []string{"", "rootfs"} {
		w := newWorld(false)
		w.deny, w.target = psp+"/nvidia/nccl", target
		l := w.bundle(t).LoadOf("libnccl.so.2")
		want := fact.Absent
		if target != "" {
			want = fact.Failed
		}
		if l == nil || l.Path.State != want || l.Tried[0].Result != "unreadable" {
			t.Errorf("%q: %+v", target, l)
		}
	}
}

func wantLoad(t *testing.T, b *fact.Bundle, soname, file, via string) *fact.Load {
	t.Helper()
	l := b.LoadOf(soname)
	if l == nil {
		t.Fatalf("no Load of %s; problems %v", soname, b.Problems)
	}
	if l.Path.V != file || l.Via != via {
		t.Errorf("%s: %s by %s, want %s by %s", soname, l.Path.V, l.Via, file, via)
	}
	return l
}

func TestModuleNCCLWinsOverRunPathOnly(t *testing.T) {
	old := ncclLib("2.18.1", "12.1", "ncclSend", "ncclCommSplit")
	for _, rpath := range []bool{false, true} {
		w := newWorld(rpath)
		w.libs["/mod/libnccl.so.2"] = old
		w.env["LD_LIBRARY_PATH"] = "/mod"
		b := w.bundle(t)
		if rpath {
			l := wantLoad(t, b, "libnccl.so.2", psp+"/nvidia/nccl/lib/libnccl.so.2", "DT_RPATH")
			if l.Version.V != "2.21.5" || l.Missing != nil || l.Shadows != "" {
				t.Errorf("%+v", l)
			}
			continue
		}
		l := wantLoad(t, b, "libnccl.so.2", "/mod/libnccl.so.2", "LD_LIBRARY_PATH")
		if l.ViaDir != "/mod" || l.Version.V != "2.18.1" || l.CUDA.V != "12.1" || l.For != psp+"/torch/lib/libtorch_cuda.so" {
			t.Errorf("%+v", l)
		}
		if d := cmp.Diff([]string{"ncclMemAlloc"}, l.Missing); d != "" || l.MissingSince != "2.19.1" {
			t.Errorf("missing %q since %q", l.Missing, l.MissingSince)
		}
		if l.Shadows != psp+"/nvidia/nccl/lib/libnccl.so.2" || l.ShadowsVer != "2.21.5" {
			t.Errorf("shadows %q %q", l.Shadows, l.ShadowsVer)
		}
	}
}

func TestPreloadedNCCL(t *testing.T) {
	w := newWorld(true)
	w.libs["/mod/libnccl.so.2.18.1"] = elftest.Lib{Soname: "libnccl.so.2", Defined: []string{"ncclSend"}}
	w.env["LD_PRELOAD"] = "/mod/libnccl.so.2.18.1 /nowhere/x.so"
	b := w.bundle(t)
	l := wantLoad(t, b, "libnccl.so.2", "/mod/libnccl.so.2.18.1", "preload")
	if l.Version.V != "2.18.1" || l.MissingSince != "2.19.1" || l.ShadowsVer != "2.21.5" {
		t.Errorf("%+v", l)
	}
	if len(b.Problems) != 1 || !strings.Contains(b.Problems[0].What, "/nowhere/x.so") {
		t.Errorf("problems %v", b.Problems)
	}
}

// TestJitLink is pytorch#138460: libcusparse has DT_RUNPATH, so a CUDA module's
// older libnvJitLink wins, until torch learned to load its own one first.
func TestJitLink(t *testing.T) {
	w := newWorld(true)
	w.libs["/cuda/lib64/libnvJitLink.so.12"] = elftest.Lib{Soname: "libnvJitLink.so.12", Defined: []string{"__nvJitLinkComplete_12_0@libnvJitLink.so.12", "__nvJitLinkComplete_12_1@libnvJitLink.so.12"}}
	w.env["LD_LIBRARY_PATH"] = "/cuda/lib64"
	l := wantLoad(t, w.bundle(t), "libnvJitLink.so.12", "/cuda/lib64/libnvJitLink.so.12", "LD_LIBRARY_PATH")
	if !slices.Equal(l.Missing, []string{"__nvJitLinkComplete_12_4"}) || l.Version.V != "12.1" || l.ShadowsVer != "12.4" {
		t.Errorf("%+v", l)
	}
	w.files[psp+"/torch/__init__.py"] = init26
	l = wantLoad(t, w.bundle(t), "libnvJitLink.so.12", psp+"/nvidia/nvjitlink/lib/libnvJitLink.so.12", "already-loaded")
	if l.Missing != nil || l.ViaDir != psp {
		t.Errorf("%+v", l)
	}
}

func TestMissingLibraries(t *testing.T) {
	w := newWorld(true)
	delete(w.libs, psp+"/nvidia/nccl/lib/libnccl.so.2")
	b := w.bundle(t)
	l := b.LoadOf("libnccl.so.2")
	if l == nil || !l.Path.IsAbsent() || l.For != psp+"/torch/lib/libtorch_cuda.so" || len(l.Tried) == 0 {
		t.Errorf("%+v", l)
	}
	// Split over two folders of the search path: torch finds them itself when
	// libcudart is not where DT_RPATH says.
	w = newWorld(true)
	for p, l := range w.libs {
		if rest, ok := strings.CutPrefix(p, psp+"/nvidia/"); ok {
			delete(w.libs, p)
			w.libs["/other/nvidia/"+rest] = l
		}
	}
	w.files[psp+"/torch/__init__.py"] = init26
	if l := w.bundle(t).LoadOf("libcudart.so.12"); l == nil || !l.Path.IsAbsent() {
		t.Errorf("not on sys.path: %+v", l)
	}
	w.path = []fact.PathEntry{{Dir: "/other"}}
	wantLoad(t, w.bundle(t), "libnccl.so.2", "/other/nvidia/nccl/lib/libnccl.so.2", "already-loaded")
}

func TestOtherArchitectureAndDamage(t *testing.T) {
	w := newWorld(true)
	for p, l := range w.libs {
		if strings.HasPrefix(p, psp) {
			l.Machine = elfx.AArch64
			w.libs[p] = l
		}
	}
	if b := w.bundle(t); len(b.Loads) > 0 {
		t.Errorf("a torch for aarch64 on x86_64: %+v", b.Loads)
	}
	w = newWorld(true)
	delete(w.libs, psp+"/torch/_C.cpython-312-x86_64-linux-gnu.so")
	w.files[psp+"/torch/_C.cpython-312-x86_64-linux-gnu.so"] = "\x7fELF cut"
	if b := w.bundle(t); len(b.Problems) == 0 {
		t.Error("a damaged torch._C is no problem")
	}
	// The interpreter is a script or cannot be read: torch's own architecture counts.
	w = newWorld(true)
	delete(w.libs, "/usr/bin/python3.12")
	w.files["/usr/bin/python3.12"] = "#!/bin/sh\n"
	wantLoad(t, w.bundle(t), "libnccl.so.2", psp+"/nvidia/nccl/lib/libnccl.so.2", "DT_RPATH")
}

func TestOwners(t *testing.T) {
	w := newWorld(true)
	for _, n := range []string{"nvidia-nccl-cu12", "nvidia-nccl-cu13"} {
		d := psp + "/" + strings.ReplaceAll(n, "-", "_") + "-2.21.5.dist-info"
		w.dists = append(w.dists, fact.Dist{Name: n, Version: "2.21.5", Dir: d})
		w.files[d+"/RECORD"] = "nvidia/__init__.py,,\nnvidia/nccl/lib/libnccl.so.2,sha256=x,1\n"
	}
	b := w.bundle(t)
	l := b.LoadOf("libnccl.so.2")
	if !slices.Equal(l.Owners, []string{"nvidia-nccl-cu12", "nvidia-nccl-cu13"}) {
		t.Errorf("owners %q", l.Owners)
	}
	w.dists = w.dists[:1]
	if l := w.bundle(t).LoadOf("libnccl.so.2"); l.Owner != "nvidia-nccl-cu12" || l.Owners != nil {
		t.Errorf("owner %q %q", l.Owner, l.Owners)
	}
}

func TestLibCUDA(t *testing.T) {
	w := newWorld(true)
	if c := w.bundle(t).Node.LibCUDA; !c.IsAbsent() {
		t.Errorf("without a driver: %+v", c)
	}
	w.libs["/usr/lib/x86_64-linux-gnu/libcuda.so.1"] = elftest.Lib{Soname: "libcuda.so.1"}
	if c := w.bundle(t).Node.LibCUDA; c.V.Path != "/usr/lib/x86_64-linux-gnu/libcuda.so.1" || c.V.Stub || c.V.Compat || c.V.Via != "default" {
		t.Errorf("%+v", c)
	}
	w.libs["/cuda/lib64/stubs/libcuda.so.1"] = elftest.Lib{Soname: "libcuda.so.1"}
	w.env["LD_LIBRARY_PATH"] = "/cuda/lib64/stubs:/cuda/lib64"
	if c := w.bundle(t).Node.LibCUDA; !c.V.Stub || c.V.Via != "LD_LIBRARY_PATH" {
		t.Errorf("stub: %+v", c)
	}
	w.env["LD_LIBRARY_PATH"] = "/cuda/compat"
	w.libs["/cuda/compat/libcuda.so.1"] = elftest.Lib{Soname: "libcuda.so.1"}
	if c := w.bundle(t).Node.LibCUDA; !c.V.Compat || c.V.Stub {
		t.Errorf("compat: %+v", c)
	}
	w.cpu = true
	if c := w.bundle(t).Node.LibCUDA; c.Looked() {
		t.Errorf("a CPU build opens no libcuda: %+v", c)
	}
}

func TestOldGlibc(t *testing.T) {
	w := newWorld(true)
	l := w.libs[psp+"/torch/lib/libtorch_cuda.so"]
	l.Undefined = append(l.Undefined, "fcntl64@GLIBC_2.28/libc.so.6")
	w.libs[psp+"/torch/lib/libtorch_cuda.so"] = l
	got := w.bundle(t).LoadOf("libc.so.6")
	if got == nil || !slices.Equal(got.Missing, []string{"GLIBC_2.28"}) || got.For != psp+"/torch/lib/libtorch_cuda.so" {
		t.Errorf("%+v", got)
	}
}

func TestExtensions(t *testing.T) {
	w := newWorld(true)
	w.dists = []fact.Dist{{Name: "torchvision", Version: "0.21.0", Dir: psp + "/torchvision-0.21.0.dist-info"}}
	w.libs[psp+"/torchvision/_C.so"] = elftest.Lib{Needed: []string{"libc10.so", "libtorch_cpu.so", "libcudart.so.12"},
		Undefined: []string{"_ZN3c105ErrorC1ENSt7__cxx1112basic_stringE", "_ZN2at4_ops3add4callEv", "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "malloc"},
		Sections:  []elftest.Section{{Name: ".nv_fatbin", Data: elftest.FatBin("sm_80", "compute_90")}}}
	w.libs[psp+"/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"] = elftest.Lib{Needed: []string{"libc10.so", "libtorch_xyz.so"}}
	b := w.bundle(t)
	if len(b.Extensions) != 2 {
		t.Fatalf("%+v %v", b.Extensions, b.Problems)
	}
	e := b.Extensions[0]
	if e.Name != "torchvision" || e.Version != "0.21.0" || e.CUDART.V != "libcudart.so.12" || !slices.Equal(e.Archs.V, []string{"sm_80", "compute_90"}) {
		t.Errorf("%+v", e)
	}
	if !slices.Equal(e.Missing, []string{"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"}) {
		t.Errorf("missing %q", e.Missing)
	}
	if e := b.Extensions[1]; e.Name != "flash-attn" || !slices.Equal(e.Missing, []string{"libtorch_xyz.so"}) {
		t.Errorf("%+v", e)
	}
}

// The essential lines of torch/__init__.py of three generations.
const init26 = `
def _preload_cuda_deps(lib_folder: str, lib_name: str) -> None:
        candidate_lib_paths = glob.glob(
            os.path.join(nvidia_path, lib_folder, "lib", lib_name)
        )
        if not candidate_lib_paths:
            candidate_lib_paths = glob.glob(
                os.path.join(path, lib_folder, "lib", lib_name)
            )

def _load_global_deps() -> None:
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        try:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "nvidia/cuda_runtime/lib/libcudart.so" not in _maps:
                return
            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
        except Exception:
            pass

    except OSError as err:
        cuda_libs: _Dict[str, str] = {
            "cuda_runtime": "libcudart.so.*[0-9]",
            "nvjitlink": "libnvJitLink.so.*[0-9]",
            "cusparse": "libcusparse.so.*[0-9]",
            "nccl": "libnccl.so.*[0-9]",
        }

if (USE_RTLD_GLOBAL_WITH_LIBTORCH or os.getenv("TORCH_USE_RTLD_GLOBAL")) and (
    x = {"a": "libnot.so"}
`

const init21 = `
def _preload_cuda_deps(lib_folder, lib_name):
        candidate_lib_paths = glob.glob(os.path.join(nvidia_path, lib_folder, 'lib', lib_name))

def _load_global_deps() -> None:
    except OSError as err:
        cuda_libs: Dict[str, str] = {
            'cublas': 'libcublas.so.*[0-9]',
            'nccl': 'libnccl.so.*[0-9]',
        }
`

const init215 = `
def _get_cuda_dep_paths(path: str, lib_folder: str, lib_name: str) -> list[str]:
            os.path.join(path, "nvidia", f"cu{maj_cuda_version}", "lib", lib_name)
    lib_paths = glob.glob(os.path.join(path, lib_folder, "lib", lib_name))

def _preload_cuda_deps(err: OSError | None = None, required: bool = True) -> None:
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("nccl", "libnccl.so.*[0-9]"),
    ]
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)

def _load_global_deps() -> None:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps(required=False)
    except OSError as err:
        _preload_cuda_deps(err)
`

func TestParsePreload(t *testing.T) {
	str := func(ls []preloadLib) string {
		var out []string
		for _, l := range ls {
			s := l.folder + "/" + l.glob
			if l.optional {
				s += "?"
			}
			out = append(out, s)
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct{ name, src, libs, eager, gate string }{
		{"2.1", init21, "cublas/libcublas.so.*[0-9] nccl/libnccl.so.*[0-9]", "", ""},
		{"2.6", init26, "cuda_runtime/libcudart.so.*[0-9] nvjitlink/libnvJitLink.so.*[0-9] cusparse/libcusparse.so.*[0-9] nccl/libnccl.so.*[0-9]", "nvjitlink/libnvJitLink.so.*[0-9]", "nvidia/cuda_runtime/lib/libcudart.so"},
		{"2.15", init215, "cublas/libcublasLt.so.*[0-9] nccl/libnccl.so.*[0-9] nvtx/libnvToolsExt.so.*[0-9]?", "cublas/libcublasLt.so.*[0-9]? nccl/libnccl.so.*[0-9]? nvtx/libnvToolsExt.so.*[0-9]?", "libcudart.so"},
		{"none", "import os\n", "", "", ""},
	} {
		p := parsePreload(tt.src)
		if str(p.libs) != tt.libs || str(p.eager) != tt.eager || p.gate != tt.gate {
			t.Errorf("%s: libs %q, eager %q, gate %q", tt.name, str(p.libs), str(p.eager), p.gate)
		}
	}
	if p := parsePreload(init215); !p.cuXX || !p.without {
		t.Errorf("2.15: %+v", p)
	}
	// The real one.
	b, err := os.ReadFile(path.Join(testenv.Cache(t, "cuda"), "lib/python3.11/site-packages/torch/__init__.py"))
	if err != nil {
		t.Fatal(err)
	}
	p := parsePreload(string(b))
	if len(p.libs) != 13 || str(p.eager) != "cuda_nvrtc/libnvrtc.so.*[0-9] nvjitlink/libnvJitLink.so.*[0-9]" || !p.without || p.cuXX {
		t.Errorf("2.6.0: %+v", p)
	}
}

func FuzzParsePreload(f *testing.F) {
	f.Add(init21)
	f.Add(init26)
	f.Add(init215)
	f.Fuzz(func(t *testing.T, s string) { parsePreload(s) })
}
