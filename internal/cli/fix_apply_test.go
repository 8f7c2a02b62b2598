package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// applyLab is an environment whose interpreter writes down how it is called.
type applyLab struct {
	t      *testing.T
	prefix string
	calls  string
}

func newApplyLab(t *testing.T, conda bool) *applyLab {
	t.Helper()
	dir := t.TempDir()
	l := &applyLab{t: t, prefix: filepath.Join(dir, "env"), calls: filepath.Join(dir, "calls")}
	site := "lib/python3.11/site-packages"
	l.put("bin/python", "#!/bin/sh\necho \"$@\" >> "+l.calls+"\ncase \"$*\" in *'pip install'*) "+`if [ -e `+dir+`/slow ]; then touch `+dir+`/busy; exec sleep 60; fi; [ ! -e `+dir+`/fails ]`+" ;; esac\n")
	l.put(site+"/torch/__init__.py", "")
	l.put(site+"/torch/version.py", "__version__ = '2.6.0+cpu'\ncuda = None\nhip = None\n")
	l.put(site+"/torch-2.6.0+cpu.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cpu\n")
	if conda {
		l.put("conda-meta/history", "")
	} else {
		l.put("pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n")
	}
	return l
}

func (l *applyLab) put(name, text string) {
	l.t.Helper()
	p := filepath.Join(l.prefix, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

// apply answers as a person at a terminal would.
func (l *applyLab) apply(ctx context.Context, tty bool, answer string, more ...string) (int, string) {
	var o bytes.Buffer
	a := &app{Streams: Streams{In: strings.NewReader(answer), Out: &o, Err: &o, Getenv: func(string) string { return "" }, Terminal: func() (bool, int) { return tty, 100 }}, lang: "en", askAnyway: tty}
	root := a.root()
	args := []string{"fix", "--python", filepath.Join(l.prefix, "bin/python"), "--arch", "x86_64", "--apply"}
	if !slices.Contains(more, "--gpu") {
		args = append(args, "--driver", "550.54.15", "--gpu", "A100")
	}
	root.SetArgs(append(args, more...))
	root.SetOut(&o)
	err := root.ExecuteContext(ctx)
	if code, ok := err.(exitError); ok {
		return int(code), o.String()
	}
	if err != nil {
		return 2, o.String() + err.Error()
	}
	return 0, o.String()
}

func (l *applyLab) called() string {
	raw, _ := os.ReadFile(l.calls)
	return string(raw)
}

// TestFixApplyRefuses: nothing is run where it is not safe to.
func TestFixApplyRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		conda bool
		setup func(l *applyLab)
		tty   bool
		more  []string
		says  string
	}{
		{"no terminal", false, nil, false, nil, "needs a terminal"},
		{"conda's base", true, func(l *applyLab) {
			l.put("condabin/conda", "")
			l.put("lib/python3.11/os.py", "")
			l.put("conda-meta/python-3.11.9-h1_0.json", "{}")
			elf, err := os.ReadFile("/bin/true") // conda's python is no script
			if err != nil {
				t.Fatal(err)
			}
			l.put("bin/python", string(elf))
		}, true, []string{"--with", "pip"}, "base environment"},
		{"somebody else's", false, func(l *applyLab) {
			if err := os.Chown(l.prefix, 12345, 12345); err != nil {
				_ = os.Chmod(l.prefix, 0o555)
			}
		}, true, nil, "belongs to somebody else"},
		{"the system's", false, func(l *applyLab) {
			_ = os.Remove(filepath.Join(l.prefix, "pyvenv.cfg"))
			l.put("lib/python3.11/EXTERNALLY-MANAGED", "[externally-managed]\nError=no\n")
		}, true, nil, "venv or conda environment of your own only"},
		{"an impossible wish", false, nil, true, []string{"--torch", "2.15.0"}, "what was asked for cannot be had"},
		{"a contradiction", false, nil, true, []string{"--driver", "590.48.01", "--gpu", "V100"}, "what was asked for cannot be had"},
		{"a driver before its GPU", false, nil, true, []string{"--driver", "550.54.15", "--gpu", "B200", "--torch", "2.9.1"}, "not all known"},
		{"AMD, with a driver that nobody looked at", false, nil, true, []string{"--gpu", "MI250"}, "not all known"},
		{"poetry", false, nil, true, []string{"--with", "poetry"}, "not of poetry"},
		{"no", false, nil, true, nil, "Nothing was run"},
	} {
		l := newApplyLab(t, c.conda)
		if c.setup != nil {
			c.setup(l)
		}
		answer := "yes\n"
		if c.name == "no" {
			answer = "y\n"
		}
		code, out := l.apply(t.Context(), c.tty, answer, c.more...)
		if code == 0 || !strings.Contains(oneLine(out), c.says) || l.called() != "" {
			t.Errorf("%s: exit %d, want %q, calls %q:\n%s", c.name, code, c.says, l.called(), out)
		}
		if m, _ := filepath.Glob(filepath.Join(l.prefix, "ncclinic-before-*")); len(m) > 0 {
			t.Errorf("%s: %v", c.name, m)
		}
	}
}

// TestFixApplyFails: an installer that fails leaves the state before and the way
// back; one that is stopped halfway too.
func TestFixApplyFails(t *testing.T) {
	l := newApplyLab(t, false)
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.prefix), "fails"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out := l.apply(t.Context(), true, "yes\n")
	m, _ := filepath.Glob(filepath.Join(l.prefix, "ncclinic-before-*.txt"))
	if code != 1 || len(m) != 1 || !strings.Contains(out, "To go back:") || !strings.Contains(out, "-m pip install -r "+m[0]) || strings.Contains(out, "Done.") {
		t.Errorf("exit %d, %v:\n%s", code, m, out)
	}

	l = newApplyLab(t, false)
	dir := filepath.Dir(l.prefix)
	if err := os.WriteFile(filepath.Join(dir, "slow"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for i := 0; i < 3000; i++ {
			if _, err := os.Stat(filepath.Join(dir, "busy")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	code, out = l.apply(ctx, true, "yes\n")
	m, _ = filepath.Glob(filepath.Join(l.prefix, "ncclinic-before-*.txt"))
	if code == 0 || len(m) != 1 || !strings.Contains(out, "To go back:") || !strings.Contains(out, m[0]) {
		t.Errorf("interrupted: exit %d, %v:\n%s", code, m, out)
	}

	// A list of the state that cannot be written stops everything.
	l = newApplyLab(t, false)
	l.put("bin/python", "#!/bin/sh\necho \"$@\" >> "+l.calls+"\ncase \"$*\" in *freeze*) echo half; exit 3 ;; esac\n")
	code, out = l.apply(t.Context(), true, "yes\n")
	m, _ = filepath.Glob(filepath.Join(l.prefix, "ncclinic-before-*.txt"))
	if code != 1 || len(m) != 0 || strings.Contains(l.called(), "install") || !strings.Contains(out, "before anything was changed") {
		t.Errorf("exit %d, %v, calls %q:\n%s", code, m, l.called(), out)
	}
}
