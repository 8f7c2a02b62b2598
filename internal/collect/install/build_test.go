package install

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

const sp = "sp/torch/"

// torchLibs are the libraries of a small CUDA build.
func torchLibs() map[string]elftest.Lib {
	return map[string]elftest.Lib{
		"_C.cpython-312-x86_64-linux-gnu.so": {Needed: []string{"libtorch_python.so"}},
		"lib/libtorch_cpu.so":                {Soname: "libtorch_cpu.so", Defined: []string{"_ZTIN4c10d5StoreE", "_ZTIN4c10d16ProcessGroupGlooE"}},
		"lib/libtorch_cuda.so":               {Soname: "libtorch_cuda.so", Needed: []string{"libnccl.so.2"}, Defined: []string{"_ZTIN4c10d16ProcessGroupNCCLE"}},
		"lib/libtorch_python.so": {Soname: "libtorch_python.so", Undefined: []string{"_ZTIN4c10d16ProcessGroupNCCLE"},
			Sections: []elftest.Section{{Name: ".rodata", Data: []byte("x\x00sm_90\x00_c10d_init\x00sm_80 sm_90 compute_90\x00y")}}},
	}
}

func buildOf(t *testing.T, libs map[string]elftest.Lib, accel string) *fact.Torch {
	t.Helper()
	fsys := fstest.MapFS{}
	for n, l := range libs {
		fsys[sp+n] = &fstest.MapFile{Data: l.Bytes(), Mode: 0o644}
	}
	tc := &fact.Torch{Dir: "/" + strings.TrimSuffix(sp, "/"), CUDA: fact.None[string](fact.Evidence{})}
	if accel == fact.AccelCUDA {
		tc.CUDA = fact.Of("12.4", fact.Evidence{})
	}
	collectBuild(context.Background(), &source.Machine{FS: fsys}, tc, false)
	return tc
}

func TestBuildCUDA(t *testing.T) {
	tc := buildOf(t, torchLibs(), fact.AccelCUDA)
	if !tc.NCCL.Or(false) || !tc.Gloo.Or(false) || tc.MPI.Or(true) || tc.XCCL.Or(true) || !tc.Distributed.Or(false) || tc.NCCLStatic.Or(true) {
		t.Errorf("nccl %v, gloo %v, mpi %v, xccl %v, distributed %v, static %v", tc.NCCL, tc.Gloo, tc.MPI, tc.XCCL, tc.Distributed, tc.NCCLStatic)
	}
	if got := tc.Archs.Or(nil); !slices.Equal(got, []string{"sm_80", "sm_90", "compute_90"}) {
		t.Errorf("archs %q", got)
	}
	if tc.PyTag.V != "cpython-312" || tc.Machine.V != "x86_64" {
		t.Errorf("tag %q, machine %q", tc.PyTag.V, tc.Machine.V)
	}
}

func TestBuildWithoutNCCL(t *testing.T) {
	l := torchLibs()
	delete(l, "lib/libtorch_cuda.so")
	py := l["lib/libtorch_python.so"]
	py.Undefined = nil
	l["lib/libtorch_python.so"] = py
	if tc := buildOf(t, l, fact.AccelCPU); !tc.NCCL.IsKnown() || tc.NCCL.V || tc.NCCLStatic.Looked() || tc.Archs.Looked() {
		t.Errorf("a CPU build: nccl %v, static %v, archs %v", tc.NCCL, tc.NCCLStatic, tc.Archs)
	}
	// A CUDA build with USE_NCCL=0.
	l["lib/libtorch_cuda.so"] = elftest.Lib{Soname: "libtorch_cuda.so", Defined: []string{"x"}}
	if tc := buildOf(t, l, fact.AccelCUDA); !tc.NCCL.IsKnown() || tc.NCCL.V {
		t.Errorf("USE_NCCL=0: %v", tc.NCCL)
	}
	// The same where libtorch_python still binds the class: never say no.
	py.Undefined = []string{"_ZN4c10d16ProcessGroupNCCL12someNewThingEv"}
	l["lib/libtorch_python.so"] = py
	if tc := buildOf(t, l, fact.AccelCUDA); !tc.NCCL.Or(false) {
		t.Errorf("a name in libtorch_python only: %v", tc.NCCL)
	}
}

func TestBuildDamaged(t *testing.T) {
	l := torchLibs()
	fsys := fstest.MapFS{}
	for n, l := range l {
		fsys[sp+n] = &fstest.MapFile{Data: l.Bytes()}
	}
	fsys[sp+"lib/libtorch_cuda.so"] = &fstest.MapFile{Data: fsys[sp+"lib/libtorch_cuda.so"].Data[:100]}
	py := l["lib/libtorch_python.so"]
	py.Undefined = nil
	fsys[sp+"lib/libtorch_python.so"] = &fstest.MapFile{Data: py.Bytes()}
	tc := &fact.Torch{Dir: "/sp/torch", CUDA: fact.Of("12.4", fact.Evidence{})}
	collectBuild(context.Background(), &source.Machine{FS: fsys}, tc, false)
	if tc.NCCL.State != fact.Failed {
		t.Errorf("a cut libtorch_cuda.so says NCCL %v", tc.NCCL)
	}
	if !tc.Gloo.Or(false) {
		t.Errorf("the rest is still there: %v", tc.Gloo)
	}
}

func TestBuildStaticNCCLAndFatBinaries(t *testing.T) {
	l := torchLibs()
	l["lib/libtorch_cuda.so"] = elftest.Lib{Defined: []string{"_ZTIN4c10d16ProcessGroupNCCLE", "ncclCommInitRank"},
		Sections: []elftest.Section{{Name: ".rodata", Data: []byte("x\x00NCCL version 2.14.3+cuda11.7\x00y")}, {Name: ".nv_fatbin", Data: append(elftest.FatBin("sm_90"), elftest.FatBin("sm_80", "compute_90")...)}}}
	py := l["lib/libtorch_python.so"]
	py.Sections = []elftest.Section{{Name: ".rodata", Data: []byte("_c10d_init\x00")}}
	l["lib/libtorch_python.so"] = py
	tc := buildOf(t, l, fact.AccelCUDA)
	if !tc.NCCLStatic.Or(false) || tc.NCCLVersion.Or("") != "2.14.3" || !slices.Equal(tc.Archs.V, []string{"sm_80", "sm_90", "compute_90"}) {
		t.Errorf("static %v, version %v, archs %v", tc.NCCLStatic, tc.NCCLVersion, tc.Archs)
	}
	py.Sections = []elftest.Section{{Name: ".rodata", Data: []byte("nothing\x00gfx90a gfx942\x00")}}
	l["lib/libtorch_python.so"] = py
	tc = buildOf(t, l, fact.AccelCUDA)
	if tc.Distributed.Or(true) || !slices.Equal(tc.Archs.V, []string{"gfx90a", "gfx942"}) {
		t.Errorf("distributed %v, archs %v", tc.Distributed, tc.Archs)
	}
}

func TestBuildNothingThere(t *testing.T) {
	tc := buildOf(t, map[string]elftest.Lib{"x": {}}, fact.AccelCUDA)
	if tc.NCCL.State != fact.Failed || tc.NCCL.Why != NoLibrary || tc.Machine.Looked() {
		t.Errorf("a folder without libraries: %v", tc.NCCL)
	}
}

// A build for Windows, of which an archive keeps nothing that is looked at here.
func TestBuildElsewhere(t *testing.T) {
	tc := buildOf(t, map[string]elftest.Lib{"lib/torch_cpu.dll": {}}, fact.AccelCUDA)
	if tc.NCCL.Looked() {
		t.Errorf("a build for another system: %v", tc.NCCL)
	}
}

// realTorch is one real torch of the machine.
type realTorch struct {
	dir         string
	cuda        string
	nccl        bool
	machine     string
	archs, pyab string
}

func realTorches(t *testing.T) []realTorch {
	t.Helper()
	var out []realTorch
	if d := "/usr/lib/python3/dist-packages/torch"; exists(d) {
		out = append(out, realTorch{dir: d, machine: "x86_64", pyab: "cpython-311"})
	}
	out = append(out, realTorch{
		dir:  testenv.Cache(t, "cuda") + "/lib/python3.11/site-packages/torch",
		cuda: "12.4", nccl: true, machine: "x86_64", pyab: "cpython-311", archs: "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
	}, realTorch{
		dir:     testenv.Cache(t, "aarch64") + "/lib/python3.11/site-packages/torch",
		machine: "aarch64", pyab: "cpython-311",
	})
	// Further wheels that a developer unpacked: folders with torch/ in them.
	more, _ := filepath.Glob(os.Getenv("NCCLINIC_TEST_WHEELS") + "/*/torch")
	for _, d := range more {
		out = append(out, realTorch{dir: d, cuda: "?", nccl: true})
	}
	return out
}

func exists(p string) bool { _, err := os.Stat(p); return err == nil }

// TestBuildOfRealWheels also holds the limits of what may be read.
func TestBuildOfRealWheels(t *testing.T) {
	for _, r := range realTorches(t) {
		tc := &fact.Torch{Dir: r.dir, CUDA: fact.None[string](fact.Evidence{})}
		if r.cuda != "" {
			tc.CUDA = fact.Of(r.cuda, fact.Evidence{})
		}
		cnt := &countFS{FS: os.DirFS("/")}
		collectBuild(context.Background(), &source.Machine{FS: cnt}, tc, false)
		t.Logf("%s: nccl %v gloo %v mpi %v distributed %v static %v archs %v %s %s; %d files, %d bytes in %d reads", path.Dir(r.dir), tc.NCCL.V, tc.Gloo.V, tc.MPI.V, tc.Distributed.V, tc.NCCLStatic.V, tc.Archs.V, tc.Machine.V, tc.PyTag.V, cnt.files, cnt.bytes, cnt.reads)
		if !tc.NCCL.IsKnown() || tc.NCCL.V != r.nccl || !tc.Gloo.Or(false) || !tc.Distributed.Or(false) || tc.MPI.V && r.cuda != "" {
			t.Errorf("%s: nccl %+v, gloo %+v, mpi %+v, distributed %+v", r.dir, tc.NCCL, tc.Gloo, tc.MPI, tc.Distributed)
		}
		if r.nccl && (!tc.NCCLStatic.IsKnown() || tc.NCCLStatic.V) {
			t.Errorf("%s: static %+v", r.dir, tc.NCCLStatic)
		}
		if r.archs != "" && strings.Join(tc.Archs.V, " ") != r.archs || r.nccl && len(tc.Archs.V) < 2 {
			t.Errorf("%s: archs %+v", r.dir, tc.Archs)
		}
		if r.machine != "" && (tc.Machine.V != r.machine || tc.PyTag.V != r.pyab) {
			t.Errorf("%s: %s %s", r.dir, tc.Machine.V, tc.PyTag.V)
		}
		if cnt.bytes > 3<<20 || cnt.files > 15 {
			t.Errorf("%s: %d files and %d bytes were read", r.dir, cnt.files, cnt.bytes)
		}
	}
}

// TestFatBinariesOfRealWheels checks the second way to the architectures on kernels of a real build.
func TestFatBinariesOfRealWheels(t *testing.T) {
	lib := testenv.Cache(t, "cuda") + "/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so"
	f, c, err := elfx.OpenFS(os.DirFS("/"), source.Rel(lib), &elfx.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, ok, err := f.Section(".nv_fatbin")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	got, err := f.FatArchs(s, maxFatBins)
	if want := "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"; strings.Join(got, " ") != want || err != nil {
		t.Errorf("FatArchs = %q, %v, want %s", got, err, want)
	}
}
