package live

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

func ask(t *testing.T, python string, timeout time.Duration) *fact.Live {
	t.Helper()
	b := &fact.Bundle{}
	if err := Ask(context.Background(), &source.Machine{Runner: run.Real{}}, python, timeout, b); err != nil {
		t.Fatal(err)
	}
	return &b.Live
}

func TestDebianTorch(t *testing.T) {
	python := testenv.DebianTorch(t)
	l := ask(t, python, time.Minute)
	if l.State.V != OK || l.Error != "" {
		t.Fatalf("%+v", l)
	}
	if f := l.File.V; f != "/usr/lib/python3/dist-packages/torch/__init__.py" {
		t.Errorf("file %q", f)
	}
	if !strings.HasPrefix(l.Version.V, "1.13") || !l.CUDA.IsAbsent() || !l.HIP.IsAbsent() {
		t.Errorf("version %+v, cuda %+v", l.Version, l.CUDA)
	}
	if v, ok := l.NCCL.Get(); v || !ok {
		t.Errorf("nccl %+v", l.NCCL)
	}
	if !l.Distributed.V || !l.Gloo.V || l.GlooGroup.V != "ok" {
		t.Errorf("%+v %+v %+v", l.Distributed, l.Gloo, l.GlooGroup)
	}
	if n, ok := l.Devices.Get(); n != 0 || !ok {
		t.Errorf("devices %+v", l.Devices)
	}
	if l.NCCLVersion.Looked() || l.Archs.Looked() || l.Seconds <= 0 || len(l.SysPath) < 3 || l.SysPath[0] == "" {
		t.Errorf("%+v", l)
	}
}

// A folder in which a torch lies must not be what the job imports.
func TestCurrentFolderDoesNotCount(t *testing.T) {
	python := testenv.DebianTorch(t)
	dir := t.TempDir()
	for _, f := range []string{"torch.py", "json.py"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("raise SystemExit('wrong')\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	if l := ask(t, python, time.Minute); l.State.V != OK {
		t.Errorf("%+v", l)
	}
}

// pythonWith returns an interpreter that is Debian's with files put before everything else.
func pythonWith(t *testing.T, files map[string]string) string {
	t.Helper()
	python := testenv.File(t, "/usr/bin/python3", "apt-get install python3")
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return script(t, "PYTHONPATH="+dir+" exec "+python+` "$@"`)
}

func script(t *testing.T, body string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

const fakeTorch = `
__version__ = "2.99.0+cu999"
class version: cuda = "99.9"; hip = None
class cuda:
    @staticmethod
    def device_count(): return 3
    @staticmethod
    def get_arch_list(): return ["sm_90", "compute_90"]
    class nccl:
        @staticmethod
        def version(): return (2, 29, 3)
`

func TestFakeTorches(t *testing.T) {
	dist := "def is_available(): return True\ndef is_nccl_available(): return True\ndef is_gloo_available(): return False\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		state string
		check func(t *testing.T, l *fact.Live)
	}{
		{"CUDA build", map[string]string{"torch/__init__.py": fakeTorch, "torch/distributed.py": dist}, OK, func(t *testing.T, l *fact.Live) {
			if l.CUDA.V != "99.9" || l.NCCLVersion.V != "2.29.3" || l.Devices.V != 3 || len(l.Archs.V) != 2 || l.GlooGroup.Looked() {
				t.Errorf("%+v", l)
			}
		}},
		{"chatter of sitecustomize", map[string]string{"torch/__init__.py": fakeTorch, "torch/distributed.py": dist,
			"sitecustomize.py": "print('Welcome to cluster X!', end='')\nprint('" + marker + "not json')\n"}, OK, func(t *testing.T, l *fact.Live) {
			if l.CUDA.V != "99.9" {
				t.Errorf("%+v", l)
			}
		}},
		{"stdout is replaced", map[string]string{"torch/__init__.py": "import sys, io\nsys.stdout = io.StringIO()\n" + fakeTorch, "torch/distributed.py": dist}, OK, nil},
		{"no torch", map[string]string{"torch.py": "raise ModuleNotFoundError(\"No module named 'torch'\")"}, ImportFailed, func(t *testing.T, l *fact.Live) {
			if !strings.Contains(l.Error, "No module named") || l.CUDA.Looked() {
				t.Errorf("%+v", l)
			}
		}},
		{"undefined symbol", map[string]string{"torch.py": "raise ImportError('/x/libtorch_cuda.so: undefined symbol: ncclCommSplit\\x1b[31m')"}, ImportFailed, func(t *testing.T, l *fact.Live) {
			if !strings.Contains(l.Error, "undefined symbol: ncclCommSplit") || strings.Contains(l.Error, "\x1b") {
				t.Errorf("%q", l.Error)
			}
		}},
		{"import leaves", map[string]string{"torch.py": "raise SystemExit(0)"}, ImportFailed, nil},
		{"no distributed", map[string]string{"torch/__init__.py": fakeTorch, "torch/distributed.py": "def is_available(): return False\n"}, OK, func(t *testing.T, l *fact.Live) {
			if v, ok := l.NCCL.Get(); v || !ok {
				t.Errorf("%+v", l.NCCL)
			}
		}},
		{"crash in native code", map[string]string{"torch/__init__.py": fakeTorch + "\n" + "def _die():\n  import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\ncuda.device_count = _die\n", "torch/distributed.py": dist}, Crashed, func(t *testing.T, l *fact.Live) {
			if l.CUDA.V != "99.9" || !strings.Contains(l.Error, "devices") {
				t.Errorf("%+v", l)
			}
		}},
		{"driver trouble", map[string]string{"torch/__init__.py": fakeTorch + "\ndef _bad(): raise RuntimeError('CUDA driver version is insufficient')\ncuda.device_count = _bad\n", "torch/distributed.py": dist}, OK, func(t *testing.T, l *fact.Live) {
			if l.Devices.State != fact.Failed || !strings.Contains(l.Devices.Why, "insufficient") {
				t.Errorf("%+v", l.Devices)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ask(t, pythonWith(t, tt.files), time.Minute)
			if l.State.V != tt.state {
				t.Fatalf("%+v", l)
			}
			if tt.check != nil {
				tt.check(t, l)
			}
		})
	}
}

func TestHang(t *testing.T) {
	p := pythonWith(t, map[string]string{"torch.py": "import time\ntime.sleep(300)"})
	start := time.Now()
	l := ask(t, p, 2*time.Second)
	if l.State.V != Timeout || !strings.Contains(l.Error, "import") || time.Since(start) > 10*time.Second || len(l.SysPath) == 0 {
		t.Errorf("%+v after %s", l, time.Since(start))
	}
}

func TestBrokenInterpreters(t *testing.T) {
	for name, tt := range map[string]struct{ body, state, says string }{
		"nonsense":   {"head -c 100000 /dev/urandom", NoAnswer, "status 0"},
		"error":      {"echo 'error while loading shared libraries: libpython3.so' >&2; exit 127", NoAnswer, "loading shared libraries"},
		"endless":    {"yes '" + marker + "{'", Timeout, "2s"},
		"two colons": {"echo '" + marker + `{"steps":["done"],"version":"x\u001b[2J"}'`, OK, ""},
	} {
		l := ask(t, script(t, tt.body), 2*time.Second)
		if l.State.V != tt.state || !strings.Contains(l.Error, tt.says) || strings.ContainsAny(l.Version.V+l.Error, "\x1b\x00") {
			t.Errorf("%s: %+v", name, l)
		}
	}
	l := ask(t, "/no/such/python", time.Second)
	if l.State.State != fact.Failed || l.Error == "" {
		t.Errorf("%+v", l)
	}
	if err := Ask(context.Background(), &source.Machine{}, "python", 0, &fact.Bundle{}); err == nil {
		t.Error("ran without a runner")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(marker + `{"steps":["import","done"],"cuda":"12.4","devices":1e3}`))
	f.Add([]byte("x\n" + marker + "{}\n" + marker + `{"steps":[""],"errors":{"import":"` + "\x1b" + `"}}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		var l fact.Live
		fill(&l, source.Result{Stdout: out, Stderr: out}, time.Second, fact.Evidence{})
		if strings.ContainsAny(l.Error+l.Version.V+l.File.V, "\x00\x1b\n") {
			t.Fatalf("%+v", l)
		}
	})
}
