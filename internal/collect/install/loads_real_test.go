package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// mapped asks a real interpreter which files "import torch" maps.
func mapped(t *testing.T, py string, env map[string]string) (map[string]bool, string) {
	t.Helper()
	// All libraries are mapped once torch._C is imported; the seconds of Python that follow are cut off.
	cmd := exec.Command(py, "-c", `
import os, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if "torch._C" in sys.modules:
            os.write(1, open("/proc/self/maps", "rb").read())
            os._exit(0)
sys.meta_path.insert(0, Stop())
import torch`)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + cmd.Dir, "PYTHONDONTWRITEBYTECODE=1"}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, string(out)
	}
	got := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		if i := strings.IndexByte(line, '/'); i >= 0 {
			got[strings.TrimSpace(line[i:])] = true
		}
	}
	return got, ""
}

// copyLib copies a real library into a folder, as an environment module would have it.
func copyLib(t *testing.T, dir, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLoadsAgainstRealImport imports a real CUDA build of torch and compares
// what was mapped with the simulation: files, and for missing libraries the
// words of the error.
func TestLoadsAgainstRealImport(t *testing.T) {
	cuda := testenv.Cache(t, "cuda")
	site := cuda + "/lib/python3.11/site-packages"
	bare := filepath.Join(filepath.Dir(cuda), "cuda-bare")
	noNCCL := filepath.Join(filepath.Dir(cuda), "cuda-no-nccl")
	mod := t.TempDir()
	copyLib(t, mod, site+"/nvidia/cuda_runtime/lib/libcudart.so.12")
	copyLib(t, mod, site+"/nvidia/nvtx/lib/libnvToolsExt.so.1")
	copyLib(t, mod, site+"/nvidia/nvjitlink/lib/libnvJitLink.so.12")
	dirs, err := filepath.Glob(site + "/nvidia/*/lib")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	all := strings.Join(append(dirs, site+"/cusparselt/lib"), ":")

	tests := []struct {
		name, venv string
		env        map[string]string
	}{
		{"plain", cuda, nil},
		{"LD_LIBRARY_PATH does not beat DT_RPATH", cuda, map[string]string{"LD_LIBRARY_PATH": mod}},
		{"LD_PRELOAD", cuda, map[string]string{"LD_PRELOAD": mod + "/libcudart.so.12"}},
		{"CUDA by LD_LIBRARY_PATH", bare, map[string]string{"LD_LIBRARY_PATH": mod + ":" + all}},
		{"CUDA by PYTHONPATH, some by LD_LIBRARY_PATH", bare, map[string]string{"PYTHONPATH": site, "LD_LIBRARY_PATH": mod}},
		{"no CUDA", bare, nil},
		{"no NCCL", noNCCL, nil},
		{"NCCL by LD_LIBRARY_PATH", noNCCL, map[string]string{"LD_LIBRARY_PATH": site + "/nvidia/nccl/lib"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			py := tt.venv + "/bin/python3"
			got, errText := mapped(t, py, tt.env)
			env := map[string]string{"HOME": "/nonexistent", "PATH": "/usr/bin"}
			for k, v := range tt.env {
				env[k] = v
			}
			cnt := &countFS{FS: os.DirFS("/")}
			m := &source.Machine{FS: cnt, Env: env}
			b := &fact.Bundle{}
			if err := Collect(context.Background(), m, Options{Python: py}, b); err != nil {
				t.Fatal(err)
			}
			t.Logf("the whole of Collect: %d files, %d bytes in %d reads", cnt.files, cnt.bytes, cnt.reads)
			b.Loads, b.Problems, b.Node.LibCUDA, b.Extensions = nil, nil, fact.Val[fact.LibCUDA]{}, nil
			*cnt = countFS{FS: os.DirFS("/")}
			start := time.Now()
			collectLoads(context.Background(), m, b, nil)
			t.Logf("the libraries: %d files, %d bytes in %d reads, %v", cnt.files, cnt.bytes, cnt.reads, time.Since(start))
			if cnt.bytes > 5<<20 || cnt.files > 120 {
				t.Errorf("%d files and %d bytes were read", cnt.files, cnt.bytes)
			}
			for _, p := range b.Problems {
				t.Errorf("%s: %s", p.What, p.Why)
			}
			if len(b.Loads) < 5 {
				t.Fatalf("loads: %+v", b.Loads)
			}
			if b.Loads[0].Soname != "libnccl.so.2" {
				t.Errorf("first is %s", b.Loads[0].Soname)
			}
			missing := false
			for _, l := range b.Loads {
				real := l.Real
				if real == "" {
					real = l.Path.V
				}
				if r, err := filepath.EvalSymlinks(real); err == nil {
					real = r
				}
				t.Logf("%-22s %-16s %s %s %q owner %s missing %v", l.Soname, l.Via, l.Path.V, l.Version.V, l.CUDA.V, l.Owner, l.Missing)
				switch {
				case l.Path.IsAbsent():
					missing = true
				case got != nil && l.Soname != "libcuda.so.1" && !got[real]:
					t.Errorf("%s: simulation %s, which is not mapped", l.Soname, real)
				}
				if len(l.Missing) > 0 {
					t.Errorf("%s misses %q", l.Soname, l.Missing)
				}
			}
			if missing != (got == nil) {
				t.Errorf("the simulation misses something: %v; the import said: %s", missing, errText)
			}
			if got == nil && !strings.Contains(errText, firstMissing(b)) && !strings.Contains(errText, "not found in the system path") {
				t.Errorf("simulation misses %s, the import said: %s", firstMissing(b), errText)
			}
			// And nothing of CUDA is mapped that the simulation does not know.
			for f := range got {
				if interesting(filepath.Base(f)) && !knownLoad(b, f) && !strings.Contains(f, "nvrtc-builtins") {
					t.Errorf("mapped and not in the simulation: %s", f)
				}
			}
			if l := b.LoadOf("libnccl.so.2"); l.Path.IsKnown() && (l.Version.V != "2.21.5" || l.CUDA.V != "12.4") {
				t.Errorf("NCCL %+v", l)
			}
		})
	}
}

func firstMissing(b *fact.Bundle) string {
	for _, l := range b.Loads {
		if l.Path.IsAbsent() {
			return l.Soname
		}
	}
	return "?"
}

func knownLoad(b *fact.Bundle, file string) bool {
	for _, l := range b.Loads {
		if r, err := filepath.EvalSymlinks(l.Path.V); err == nil && r == file {
			return true
		}
	}
	return false
}
