package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// TestStaticEqualsLive compares what is read from files with what the
// interpreter itself says, for every torch that can be imported here.
func TestStaticEqualsLive(t *testing.T) {
	home := temp(t)
	copyDebianTorch(t, home+"/.local/lib/python3.11/site-packages")
	pythonPath := temp(t)
	copyDebianTorch(t, pythonPath)
	venv := filepath.Join(temp(t), "venv")
	command(t, nil, "/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", venv)

	for _, c := range []struct {
		name   string
		python string
		env    []string
	}{
		{"debian", debian(t), nil},
		{"venv on debian", venv + "/bin/python", nil},
		{"cuda wheel", prefix(t, "cuda") + "/bin/python", nil},
		{"user site", "/usr/bin/python3", []string{"HOME=" + home}},
		{"PYTHONPATH over the cuda wheel", prefix(t, "cuda") + "/bin/python", []string{"PYTHONPATH=" + pythonPath}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := call{env: c.env, limit: 180 * time.Second}
			b := run.facts(t, "--python", c.python, "--live")
			l := b.Live
			if s, _ := l.State.Get(); s != "ok" {
				t.Fatalf("--live: %+v %s; problems %v", l.State, l.Error, b.Problems)
			}
			w := winner(t, b)
			if f, _ := l.File.Get(); filepath.Dir(f) != w.Dir {
				t.Errorf("torch: live %s, static %s", f, w.Dir)
			}
			same(t, "version", w.Version, l.Version)
			same(t, "CUDA", w.CUDA, l.CUDA)
			same(t, "HIP", w.HIP, l.HIP)
			same(t, "distributed", w.Distributed, l.Distributed)
			same(t, "NCCL", w.NCCL, l.NCCL)
			same(t, "Gloo", w.Gloo, l.Gloo)
			equal(t, "gloo group", l.GlooGroup, "ok")
			if v, ok := l.NCCLVersion.Get(); ok {
				load := b.LoadOf("libnccl.so.2")
				if load == nil {
					t.Errorf("NCCL %s is loaded, statically nothing is known of libnccl.so.2", v)
				} else {
					equal(t, "NCCL version", load.Version, v)
				}
			}
			if live, ok := l.Archs.Get(); ok && len(live) > 0 {
				static, _ := w.Archs.Get()
				for _, a := range live {
					if !slices.Contains(static, a) {
						t.Errorf("architectures: live %v, static %v", live, static)
						break
					}
				}
			}
			var static []string
			for _, e := range b.Python.Path {
				if e.Exists {
					static = append(static, e.Dir)
				}
			}
			// The script's own folder and the standard library's archive, which
			// does not exist, are not part of the static path.
			var live []string
			for _, d := range l.SysPath {
				if d != "" && !strings.HasSuffix(d, ".zip") {
					live = append(live, d)
				}
			}
			if !slices.Equal(static, live) {
				t.Errorf("sys.path:\nlive   %v\nstatic %v", live, static)
			}

			st := run.check(t, "--python", c.python)
			lv := run.check(t, "--python", c.python, "--live")
			if st.Verdict != lv.Verdict || st.cause() != lv.cause() {
				t.Errorf("static: %s, %q; live: %s, %q", st.Verdict, st.cause(), lv.Verdict, lv.cause())
			}
		})
	}
}

// same compares a static with a live value; None is a value too.
func same[T comparable](t *testing.T, what string, static, live fact.Val[T]) {
	t.Helper()
	if !static.Looked() || !live.Looked() {
		t.Errorf("%s: nobody looked: static %+v, live %+v", what, static, live)
		return
	}
	if static.State != live.State || static.V != live.V {
		t.Errorf("%s: static %+v, live %+v", what, static, live)
	}
}
