package install

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// realPythons are the interpreters of this machine that tests compare with:
// the system's, and the oldest, middle and newest that pyenv installed; all of
// them when NCCLINIC_ALL_PYTHONS is set.
func realPythons(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, p := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if _, err := os.Stat(p); err == nil {
			out = append(out, p)
		}
	}
	root := os.Getenv("PYENV_ROOT")
	if root == "" {
		root = filepath.Join(os.Getenv("HOME"), ".pyenv")
	}
	more, _ := filepath.Glob(filepath.Join(root, "versions/3.*/bin/python3"))
	slices.SortFunc(more, func(a, b string) int { // 3.6 before 3.13
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	if n := len(more); n > 3 && os.Getenv("NCCLINIC_ALL_PYTHONS") == "" {
		more = []string{more[0], more[n/2], more[n-1]}
	}
	out = append(out, more...)
	if len(out) == 0 {
		testenv.Need(t, "python3", "install Python 3")
	}
	return out
}

// sysInfo is what a real interpreter says about itself.
type sysInfo struct {
	Path       []string `json:"path"`
	Prefix     string   `json:"prefix"`
	Base       string   `json:"base"`
	Version    string   `json:"version"`
	Executable string   `json:"executable"`
}

// ask runs an interpreter with exactly the environment env.
func ask(t *testing.T, exe, dir string, env map[string]string) sysInfo {
	t.Helper()
	cmd := exec.Command(exe, "-c", `import sys, json
v = sys.version_info
print(json.dumps({"path": sys.path[1:], "prefix": sys.prefix, "base": sys.base_prefix, "version": "%d.%d.%d" % tuple(v[:3]), "executable": sys.executable}))`)
	cmd.Dir = dir
	cmd.Env = []string{}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", exe, err, stderr.String())
	}
	var s sysInfo
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%s: %v in %s", exe, err, out)
	}
	return s
}

func machine(env map[string]string) *source.Machine {
	return &source.Machine{FS: os.DirFS("/"), Env: env, Home: env["HOME"]}
}

func paths(b *fact.Bundle) []string {
	var out []string
	for _, e := range b.Python.Path {
		out = append(out, e.Dir)
	}
	return out
}

// compare holds the static search path against that of the interpreter.
func compare(t *testing.T, exe, dir string, env map[string]string) *fact.Bundle {
	t.Helper()
	want := ask(t, exe, dir, env)
	var b fact.Bundle
	if err := Collect(context.Background(), machine(env), Options{Python: exe, Cwd: dir}, &b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.Path, paths(&b)); d != "" {
		t.Errorf("%s: sys.path (-interpreter +ncclinic):\n%s", exe, d)
	}
	if got := b.Python.Prefix.Or(""); got != want.Prefix {
		t.Errorf("%s: prefix %q, the interpreter says %q", exe, got, want.Prefix)
	}
	if got := b.Python.Base.Or(""); got != want.Base {
		t.Errorf("%s: base prefix %q, the interpreter says %q", exe, got, want.Base)
	}
	if got := b.Python.Version.Or(""); got != want.Version && !strings.HasPrefix(want.Version, got+".") {
		t.Errorf("%s: version %q, the interpreter says %q", exe, got, want.Version)
	}
	return &b
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func minor(t *testing.T, exe string) string {
	t.Helper()
	v := ask(t, exe, "/", nil).Version
	return v[:strings.LastIndexByte(v, '.')]
}

// venv makes a virtual environment; Debian's python3 without python3-venv
// still can, without pip.
func venv(t *testing.T, exe string, args ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "env")
	cmd := exec.Command(exe, slices.Concat([]string{"-m", "venv", "--without-pip"}, args, []string{dir})...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("venv: %v\n%s", err, out)
	}
	return dir
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// ebCustomize does what the hook of EasyBuild's Python does.
const ebCustomize = `import os, site, sys
prefixes = os.environ.get("EBPYTHONPREFIXES")
if prefixes:
    base_paths = [p for p in sys.path if p.startswith(sys.base_prefix)]
    for prefix in prefixes.split(":"):
        d = os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        if os.path.isdir(d):
            site.addsitedir(d)
    sys.path = [p for p in sys.path if p not in base_paths] + base_paths
`

func TestSearchPathReal(t *testing.T) {
	for _, exe := range realPythons(t) {
		t.Run(strings.ReplaceAll(exe[1:], "/", "_"), func(t *testing.T) {
			home, cwd, extra := tempDir(t), tempDir(t), tempDir(t)
			ver := minor(t, exe)
			userSite := filepath.Join(home, ".local/lib/python"+ver+"/site-packages")
			// Old releases read .pth files in the locale's encoding.
			base := map[string]string{"HOME": home, "LC_ALL": "C.UTF-8"}
			with := func(kv ...string) map[string]string {
				env := map[string]string{"HOME": home, "LC_ALL": "C.UTF-8"}
				for i := 0; i < len(kv); i += 2 {
					env[kv[i]] = kv[i+1]
				}
				return env
			}

			compare(t, exe, cwd, base)
			compare(t, exe, cwd, with("PYTHONPATH", extra+":rel/dir::/nowhere/at/all:"+extra+"/../"+filepath.Base(extra)+":"))

			write(t, filepath.Join(userSite, "b.pth"), extra+"\n# no\n\n../rel\n./here  \n/nowhere\n  \n")
			write(t, filepath.Join(userSite, "a.pth"), "here\n"+extra+"/two\n")
			write(t, filepath.Join(userSite, ".hidden.pth"), "hidden\n")
			write(t, filepath.Join(userSite, "c.pth"), "\ufeffbom\n")
			write(t, filepath.Join(userSite, "d.pth"), "import site; site.addsitedir('"+extra+"/nested')\n")
			write(t, filepath.Join(userSite, "easy-install.pth"), "import sys; sys.__plen = len(sys.path)\n./egg\nimport sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); sys.path[p:p]=new; sys.__egginsert = p+len(new)\n")
			write(t, filepath.Join(extra, "nested/x.pth"), "deep\n")
			for _, d := range []string{"here", "hidden", "bom", "egg", "../rel"} {
				os.MkdirAll(filepath.Join(userSite, d), 0o755)
			}
			for _, d := range []string{"two", "nested/deep", "user/lib/python" + ver + "/site-packages"} {
				os.MkdirAll(filepath.Join(extra, d), 0o755)
			}
			b := compare(t, exe, cwd, base)
			if !b.Python.UserSite.Or(false) {
				t.Error("user site is on the path and not reported")
			}
			b = compare(t, exe, cwd, with("PYTHONNOUSERSITE", "1"))
			if v, ok := b.Python.UserSite.Get(); !ok || v {
				t.Errorf("PYTHONNOUSERSITE: UserSite = %+v", b.Python.UserSite)
			}
			compare(t, exe, cwd, with("PYTHONUSERBASE", extra+"/user"))
			compare(t, exe, cwd, with("PYTHONNOUSERSITE", "")) // empty means not set
			compare(t, exe, cwd, with("VIRTUAL_ENV", "/somewhere"))

			// A module system's hook: modules behind the environment, before the base.
			hook := tempDir(t)
			write(t, filepath.Join(hook, "sitecustomize.py"), ebCustomize)
			for _, d := range []string{"m1", "m2"} {
				write(t, filepath.Join(hook, d, "lib/python"+ver+"/site-packages/m.pth"), extra+"/two\n")
			}
			eb := with("PYTHONPATH", hook, "EBPYTHONPREFIXES", hook+"/m1:/nowhere:"+hook+"/m2")
			compare(t, exe, cwd, eb)

			for _, args := range [][]string{nil, {"--system-site-packages"}, {"--copies"}} {
				dir := venv(t, exe, args...)
				write(t, filepath.Join(dir, "lib/python"+ver+"/site-packages/z.pth"), extra+"\n")
				py := filepath.Join(dir, "bin/python")
				for _, env := range []map[string]string{base, eb, with("PYTHONPATH", extra+"/two"), with("PYTHONNOUSERSITE", "x")} {
					b := compare(t, py, cwd, env)
					if !b.Python.Venv.Or(false) {
						t.Error("not seen as a virtual environment")
					}
					if got := b.Python.SystemSite.Or(false); got != (len(args) > 0 && args[0] == "--system-site-packages") {
						t.Errorf("%v: SystemSite = %v", args, got)
					}
				}
				// A link to the program from elsewhere is not the environment.
				link := filepath.Join(extra, "linked-python")
				os.Remove(link)
				if err := os.Symlink(py, link); err != nil {
					t.Fatal(err)
				}
				compare(t, link, cwd, base)
			}
		})
	}
}

// TestCondaLike lays out a prefix as conda does: a copied program, its own
// library, conda-meta.
func TestCondaLike(t *testing.T) {
	for _, exe := range realPythons(t) {
		info := ask(t, exe, "/", nil)
		if strings.HasPrefix(info.Base, "/usr") {
			continue // a Debian program looks for /usr's patched site.py
		}
		v := "python" + minor(t, exe)
		prefix := filepath.Join(tempDir(t), "envs/train")
		for _, d := range []string{"bin", "lib", "conda-meta"} {
			os.MkdirAll(filepath.Join(prefix, d), 0o755)
		}
		real, err := filepath.EvalSymlinks(exe)
		if err != nil {
			t.Fatal(err)
		}
		run := func(name string, args ...string) {
			t.Helper()
			if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
		}
		run("cp", real, filepath.Join(prefix, "bin", v))
		os.Symlink(v, filepath.Join(prefix, "bin/python"))
		os.Symlink(filepath.Join(info.Base, "lib", v), filepath.Join(prefix, "lib", v))
		write(t, filepath.Join(prefix, "conda-meta/python-"+info.Version+"-h955ad1f_0_cpython.json"), "{}")
		write(t, filepath.Join(prefix, "conda-meta/history"), "")
		env := map[string]string{"HOME": tempDir(t), "CONDA_PREFIX": prefix, "PATH": filepath.Join(prefix, "bin")}
		b := compare(t, filepath.Join(prefix, "bin/python"), "/", env)
		if got := b.Python.Conda.Or(""); got != prefix {
			t.Errorf("Conda = %q", got)
		}
		if got := b.Python.Version.Or(""); got != info.Version {
			t.Errorf("Version = %q, want %q from conda-meta", got, info.Version)
		}
		var byPath fact.Bundle
		if err := Collect(context.Background(), machine(env), Options{}, &byPath); err != nil {
			t.Fatal(err)
		}
		if byPath.Python.By != fact.ByPath || len(byPath.Python.Others) != 0 {
			t.Errorf("By = %q, Others = %v: CONDA_PREFIX and PATH agree", byPath.Python.By, byPath.Python.Others)
		}
		return // copying one standard library is enough
	}
	testenv.Need(t, "a Python outside of /usr", "pyenv install 3.12")
}

func TestPythonHome(t *testing.T) {
	exe := realPythons(t)[0]
	base := ask(t, exe, "/", nil).Base
	env := map[string]string{"HOME": tempDir(t), "PYTHONHOME": base}
	b := compare(t, exe, "/", env)
	if b.Python.Base.At.Path != "PYTHONHOME" {
		t.Errorf("Base = %+v", b.Python.Base)
	}
}
