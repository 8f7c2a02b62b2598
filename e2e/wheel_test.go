package e2e

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// winner is the torch that the facts say is imported.
func winner(t *testing.T, b *fact.Bundle) *fact.Torch {
	t.Helper()
	w := b.Winner()
	if w == nil {
		t.Fatalf("no torch found; problems %v", b.Problems)
	}
	return w
}

func equal[T comparable](t *testing.T, what string, got fact.Val[T], want T) {
	t.Helper()
	if v, ok := got.Get(); !ok || v != want {
		t.Errorf("%s: %+v, want %v", what, got, want)
	}
}

// TestCUDAWheel: the facts of the real CUDA wheel, installed with everything it
// requires, are what that wheel is known to be; and without a driver the
// driver is at fault, not torch.
func TestCUDAWheel(t *testing.T) {
	cuda := prefix(t, "cuda")
	c := call{env: []string{"VIRTUAL_ENV=" + cuda, "PATH=" + cuda + "/bin:/usr/bin:/bin"}}
	b := c.facts(t)
	w := winner(t, b)
	if want := site(cuda) + "/torch"; w.Dir != want {
		t.Errorf("torch %s, want %s", w.Dir, want)
	}
	equal(t, "version", w.Version, "2.6.0+cu124")
	equal(t, "CUDA", w.CUDA, "12.4")
	equal(t, "git", w.Git, "2236df1770800ffea5697b11b0bb0d910b2e59e1")
	equal(t, "NCCL compiled in", w.NCCL, true)
	equal(t, "Gloo compiled in", w.Gloo, true)
	equal(t, "distributed compiled in", w.Distributed, true)
	equal(t, "machine", w.Machine, "x86_64")
	if v, _ := w.PyTag.Get(); !strings.HasPrefix(v, "cpython-311") {
		t.Errorf("Python tag: %+v", w.PyTag)
	}
	archs, _ := w.Archs.Get()
	for _, a := range []string{"sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"} {
		if !slices.Contains(archs, a) {
			t.Errorf("architectures %v lack %s", archs, a)
		}
	}
	for _, a := range archs {
		if a == "sm_100" || a == "sm_120" {
			t.Errorf("architectures %v: 2.6.0 has no Blackwell kernels", archs)
		}
	}
	if o, _ := w.Origin.Get(); o.Kind != fact.OriginWheel {
		t.Errorf("origin: %+v, want a wheel", w.Origin)
	}
	if len(w.Damage) > 0 {
		t.Errorf("a right installation is called damaged: %+v", w.Damage)
	}
	l := b.LoadOf("libnccl.so.2")
	if l == nil {
		t.Fatalf("nothing is said about libnccl.so.2; loads %+v", b.Loads)
	}
	equal(t, "NCCL version", l.Version, "2.21.5")
	if p, _ := l.Path.Get(); !sameFile(t, p, site(cuda)+"/nvidia/nccl/lib/libnccl.so.2") {
		t.Errorf("libnccl.so.2 is %+v", l.Path)
	}
	if !slices.Contains([]string{"DT_RPATH", "DT_RUNPATH"}, l.Via) {
		t.Errorf("libnccl.so.2 was found via %q", l.Via)
	}
	if len(l.Missing) > 0 {
		t.Errorf("libnccl.so.2 lacks %v", l.Missing)
	}

	r := c.check(t)
	// Outside of a job this may be a login node, where no driver is no fault;
	// TestExportNone has the same environment in a job.
	if r.Verdict == "ok" || r.Verdict == "unknown" || r.cause() != "gpu-driver-missing" {
		t.Errorf("%s, cause %q, want a missing driver; findings %v", r.Verdict, r.cause(), r.ids())
	}
	for _, id := range r.ids() {
		if strings.HasPrefix(id, "torch-") || strings.HasPrefix(id, "nccl-") || strings.HasPrefix(id, "cuda-") {
			t.Errorf("a right installation is accused: %s", id)
		}
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	ra, errA := filepath.EvalSymlinks(a)
	rb, errB := filepath.EvalSymlinks(b)
	return errA == nil && errB == nil && ra == rb
}

// TestBareWheel: `pip install --no-deps` leaves a CUDA torch without NVIDIA's
// libraries; and one where NCCL alone is gone.
func TestBareWheel(t *testing.T) {
	for _, c := range []struct {
		prefix string
		causes []string
		words  string // what the real import says
	}{
		{"cuda-bare", []string{"cuda-library-missing", "nccl-library-missing"}, "libcublas.so"},
		{"cuda-no-nccl", []string{"nccl-library-missing"}, "libnccl.so.2: cannot open shared object file"},
	} {
		t.Run(c.prefix, func(t *testing.T) {
			dir := prefix(t, c.prefix)
			out := command(t, nil, "/bin/sh", "-c", dir+"/bin/python -c 'import torch' 2>&1 || true")
			if !strings.Contains(out, c.words) {
				t.Fatalf("the import does not fail as it should:\n%s", out)
			}
			r := call{}.check(t, "--python", dir+"/bin/python")
			if !slices.Contains(c.causes, r.cause()) {
				t.Errorf("cause %q, want one of %v; findings %v", r.cause(), c.causes, r.ids())
			}
			if f := r.top(t); f.Certainty != "proven" {
				t.Errorf("%s, want proven", f.Certainty)
			}
		})
	}
}

// TestAarch64Wheel: the package index's aarch64 build of 2.6.0 is a CPU build
// without a local version that would say so.
func TestAarch64Wheel(t *testing.T) {
	dir := prefix(t, "aarch64")
	c := call{}
	b := c.facts(t, "--python", dir+"/bin/python")
	w := winner(t, b)
	equal(t, "machine", w.Machine, "aarch64")
	equal(t, "NCCL compiled in", w.NCCL, false)
	equal(t, "Gloo compiled in", w.Gloo, true)
	if !w.CUDA.IsAbsent() {
		t.Errorf("CUDA: %+v, want absent", w.CUDA)
	}
	// Here it is above all a build for another machine.
	r := c.check(t, "--python", dir+"/bin/python")
	if want := "torch-other-machine"; runtime.GOARCH == "amd64" && r.cause() != want || !r.has("torch-cpu-build") {
		t.Errorf("cause %q, want %s and torch-cpu-build; findings %v", r.cause(), want, r.ids())
	}
	// The same facts on a GPU node of its own architecture.
	b.Host.Arch = fact.Of("aarch64", fact.Command("uname -m", "aarch64"))
	file := filepath.Join(temp(t), "facts.json")
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(raw))
	if r := c.check(t, file); r.cause() != "torch-cpu-build" {
		t.Errorf("on aarch64: cause %q, want torch-cpu-build; findings %v", r.cause(), r.ids())
	}
}

// TestNVIDIAFiles: NVIDIA's real libraries and nvidia-smi on a machine without
// the kernel module.
func TestNVIDIAFiles(t *testing.T) {
	nvidia := prefix(t, "nvidia")
	cuda := prefix(t, "cuda")
	libs := filepath.Join(nvidia, "usr/lib/x86_64-linux-gnu/nvidia/current")
	bin := filepath.Join(nvidia, "usr/lib/nvidia/current")
	found, err := filepath.Glob(libs + "/libcuda.so.*.*")
	if err != nil || len(found) != 1 {
		t.Fatalf("libcuda of the driver package: %v %v", found, err)
	}
	version := strings.TrimPrefix(filepath.Base(found[0]), "libcuda.so.")

	env := []string{"VIRTUAL_ENV=" + cuda, "PATH=" + cuda + "/bin:" + bin + ":/usr/bin:/bin", "LD_LIBRARY_PATH=" + libs}
	b := call{env: env}.facts(t)
	lib, ok := b.Node.LibCUDA.Get()
	if !ok || lib.Version != version || lib.Stub || lib.Compat {
		t.Errorf("libcuda: %+v, want version %s", b.Node.LibCUDA, version)
	}
	// What the real loader takes.
	for _, so := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		want := command(t, env, "/usr/bin/python3", "-c", `import ctypes, sys
ctypes.CDLL(sys.argv[1])
print(next(l.split()[-1] for l in open("/proc/self/maps") if sys.argv[1].split(".")[0] + ".so" in l))`, so)
		got := ""
		if so == "libcuda.so.1" {
			got = lib.Path
		}
		if l := b.LoadOf(so); l != nil {
			got, _ = l.Path.Get()
			if l.Via != "LD_LIBRARY_PATH" {
				t.Errorf("%s was found via %q", so, l.Via)
			}
		}
		if got == "" {
			t.Errorf("nothing is said about %s, the loader takes %s", so, want)
		} else if !sameFile(t, got, want) {
			t.Errorf("%s is %s, the loader takes %s", so, got, want)
		}
	}
	smi, ok := b.Node.SMI.Get()
	if !ok || smi.Code != 9 || !strings.Contains(smi.Error, "couldn't communicate with the NVIDIA driver") || smi.Hung {
		t.Errorf("nvidia-smi: %+v", b.Node.SMI)
	}
	if !b.Node.Driver.IsAbsent() {
		t.Errorf("driver: %+v, want absent", b.Node.Driver)
	}
	if r := (call{env: env}).check(t); r.cause() != "gpu-driver-missing" {
		t.Errorf("cause %q, want gpu-driver-missing; findings %v", r.cause(), r.ids())
	}

	// nvidia-smi without its library uses other words.
	b = call{env: []string{"PATH=" + bin + ":/usr/bin:/bin"}}.facts(t)
	if smi, _ := b.Node.SMI.Get(); smi.Code != 12 || !strings.Contains(smi.Error, "couldn't find libnvidia-ml.so") {
		t.Errorf("nvidia-smi without libnvidia-ml: %+v", b.Node.SMI)
	}
}
