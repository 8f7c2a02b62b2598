package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab/wheels"
)

// fixLab is a folder in which pip and uv see the lab's indexes where the real
// ones lie, and nothing else.
type fixLab struct {
	t      *testing.T
	server *wheels.Server
	dir    string
	env    []string
	plain  string // a virtual environment with pip, to be copied
}

func newFixLab(t *testing.T) *fixLab {
	t.Helper()
	testenv.File(t, "/usr/lib/python3.11/ensurepip", "apt-get install python3-venv")
	l := &fixLab{t: t, dir: t.TempDir()}
	var err error
	l.server, err = wheels.Start(l.dir, wheels.Indexes("3.11",
		map[string][]string{"2.6.0": {"cu118", "cu124", "cu126"}, "2.9.1": {"cu126", "cu128", "cu130", "rocm6.4"}, "2.14.1": {"cu126", "cu130", "cu132"}, "2.15.0": {"cu130", "cu132"}},
		map[string]string{"2.6.0": "cu124", "2.9.1": "cu128", "2.14.1": "cu130", "2.15.0": "cu132"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.server.Close() })
	home := filepath.Join(l.dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Dir(program) + ":/usr/bin:/bin"
	if uv := testenv.Cache(t, "tools"); uv != "" {
		// Its python must not be taken for the machine's.
		only := filepath.Join(l.dir, "bin")
		if err := os.Mkdir(only, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(uv, "bin", "uv"), filepath.Join(only, "uv")); err != nil {
			t.Fatal(err)
		}
		path = only + ":" + filepath.Dir(program) + ":/usr/bin:/bin"
	}
	l.env = append([]string{"HOME=" + home, "PATH=" + path, "LANG=C.UTF-8", "USER=user", "XDG_CACHE_HOME=" + filepath.Join(l.dir, "cache")}, l.server.Env()...)
	l.plain = filepath.Join(l.dir, "plain")
	l.must("/usr/bin/python3 -m venv " + l.plain)
	return l
}

// sh runs a command line in a folder.
func (l *fixLab) sh(dir, line string, env ...string) (string, int) {
	c := exec.Command("/bin/sh", "-c", line)
	c.Dir = dir
	c.Env = append(append([]string{}, l.env...), env...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("%s: %v", line, err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func (l *fixLab) must(line string, env ...string) string {
	l.t.Helper()
	out, code := l.sh(l.dir, line, env...)
	if code != 0 {
		l.t.Fatalf("%s: exit %d\n%s", line, code, out)
	}
	return out
}

// venv returns a fresh environment in a folder of its own, and that folder.
func (l *fixLab) venv(name string, prefix bool) (dir, py string) {
	l.t.Helper()
	dir = filepath.Join(l.dir, name)
	if prefix {
		l.must("mkdir " + dir)
		l.must(fmt.Sprintf(condaLike, dir+"/venv", l.plain))
	} else {
		l.must("mkdir " + dir + " && cp -a " + l.plain + " " + dir + "/venv")
	}
	return dir, filepath.Join(dir, "venv", "bin", "python")
}

// condaLike makes a prefix as conda does: an interpreter with a standard library
// and a site-packages of its own, before which the user's is searched. Debian's
// Python would look for dist-packages instead.
const condaLike = `set -e; p=%[1]s; lib=$p/lib/python3.11; mkdir -p $p/bin $p/conda-meta $lib/site-packages; touch $p/conda-meta/history
cp /usr/bin/python3.11 $p/bin/python
for f in /usr/lib/python3.11/*; do
	case ${f##*/} in site.py | sysconfig.py | sitecustomize.py | EXTERNALLY-MANAGED | dist-packages | __pycache__) ;; *) ln -s $f $lib/ ;; esac
done
sed 's#/local/lib/python{py_version_short}/dist-packages#/lib/python{py_version_short}/site-packages#; s#{base}/local#{base}#' /usr/lib/python3.11/sysconfig.py >$lib/sysconfig.py
sed 's/dist-packages/site-packages/g' /usr/lib/python3.11/site.py >$lib/site.py
echo 'import site, sys; site.addsitedir(sys.prefix + "/lib/python3.11/site-packages")' >$lib/sitecustomize.py
cp -a %[2]s/lib/python3.11/site-packages/pip* $lib/site-packages/`

// imports says which torch an interpreter imports.
func (l *fixLab) imports(py string, env ...string) string {
	out, _ := l.sh(l.dir, py+` -c 'import torch; print(torch.__version__, torch.__file__)'`, env...)
	return strings.TrimSpace(out)
}

// wrongState is a way to have the wrong torch, what people type then, and what
// has to come out.
type wrongState struct {
	name   string
	env    []string
	prefix bool     // the environment is like conda's: the user's packages come first
	setup  []string // {py} is the environment's interpreter
	naive  []string // what leaves it as it is, for pip and for uv
	flags  string   // of fix
	want   string   // version that is imported afterwards
	after  func(l *fixLab, dir, py, want string)
}

var wrongStates = []wrongState{
	{
		name:  "same-version-cpu",
		setup: []string{"{py} -m pip install -q torch==2.6.0 --index-url https://download.pytorch.org/whl/cpu"},
		naive: []string{"{py} -m pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu124", "uv pip install --python {py} torch==2.6.0 --index-url https://download.pytorch.org/whl/cu124"},
		flags: "--driver 550.54.15 --gpu A100", want: "2.6.0+cu124",
	},
	{
		name: "untagged-cpu-aarch64", env: []string{"_PYTHON_HOST_PLATFORM=linux-aarch64"},
		setup: []string{"{py} -m pip install -q torch==2.9.1"},
		naive: []string{"{py} -m pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/cu128", "uv pip install --python {py} torch==2.9.1 --index-url https://download.pytorch.org/whl/cu128"},
		flags: "--driver 570.124.06 --gpu GH200 --arch aarch64", want: "2.9.1+cu128",
	},
	{
		name: "cpu-in-user-site", prefix: true,
		setup: []string{"{py} -m pip install -q --user torch==2.6.0 --index-url https://download.pytorch.org/whl/cpu",
			"PYTHONNOUSERSITE=1 {py} -m pip install -q torch==2.6.0+cpu --index-url https://download.pytorch.org/whl/cpu"},
		naive: []string{"{py} -m pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu124", "uv pip install --python {py} 'torch==2.6.0+cu124' --index-url https://download.pytorch.org/whl/cu124"},
		flags: "--driver 550.54.15 --gpu A100", want: "2.6.0+cu124",
	},
	{
		name:  "cuda-on-amd",
		setup: []string{"{py} -m pip install -q 'torch==2.9.1+cu128' --index-url https://download.pytorch.org/whl/cu128"},
		naive: []string{"{py} -m pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/rocm6.4", "uv pip install --python {py} torch==2.9.1 --index-url https://download.pytorch.org/whl/rocm6.4"},
		flags: "--gpu MI250X", want: "2.9.1+rocm6.4",
	},
	{
		name:  "cu13-on-old-driver",
		setup: []string{"{py} -m pip install -q torch"},
		naive: []string{"{py} -m pip install torch --index-url https://download.pytorch.org/whl/cu126", "uv pip install --python {py} torch --index-url https://download.pytorch.org/whl/cu126"},
		flags: "--driver 535.161.08 --gpu H100", want: "2.14.1+cu126",
	},
	{
		name: "replaced-by-dependency",
		setup: []string{"{py} -m pip install -q 'torch==2.6.0+cu124' --index-url https://download.pytorch.org/whl/cu124",
			"{py} -m pip install -q trainer-lib", "{py} -m pip uninstall -q -y trainer-lib"},
		naive: []string{"{py} -m pip install torch --index-url https://download.pytorch.org/whl/cu124", "uv pip install --python {py} torch --index-url https://download.pytorch.org/whl/cu124"},
		flags: "--driver 550.54.15 --gpu A100 --torch 2.6.0", want: "2.6.0+cu124",
		after: func(l *fixLab, dir, py, want string) {
			c := filepath.Join(dir, "venv", "torch-constraints.txt")
			// A package that takes any torch goes in beside it; one that wants another is refused.
			if out, code := l.sh(dir, py+" -m pip install -c "+c+" helper-lib"); code != 0 {
				l.t.Errorf("helper-lib beside the pinned torch: %s", out)
			}
			if out, code := l.sh(dir, py+" -m pip install -c "+c+" trainer-lib"); code == 0 {
				l.t.Errorf("trainer-lib went in against the constraints:\n%s", out)
			}
			if out, code := l.sh(dir, "uv pip install --python "+py+" -c "+c+" trainer-lib"); code == 0 {
				l.t.Errorf("uv: trainer-lib went in against the constraints:\n%s", out)
			}
			if got := l.imports(py); !strings.HasPrefix(got, want+" ") {
				l.t.Errorf("after other installations: %s", got)
			}
			if out, code := l.sh(dir, py+" -m pip install -q trainer-lib"); code != 0 || strings.HasPrefix(l.imports(py), want) {
				l.t.Errorf("without the constraints trainer-lib replaces torch no more: does the stand-in still show the fault? %s", out)
			}
		},
	},
}

// TestFixCommands: from each wrong state the printed commands, run as they are
// printed, by real pip and real uv, end in the right state, and running them
// again changes nothing; what people type instead leaves the wrong one.
func TestFixCommands(t *testing.T) {
	l := newFixLab(t)
	for _, s := range wrongStates {
		for i, tool := range []string{"pip", "uv"} {
			t.Run(s.name+"/"+tool, func(t *testing.T) {
				l.t = t
				dir, py := l.venv(s.name+"-"+tool, s.prefix)
				for _, c := range s.setup {
					if out, code := l.sh(dir, strings.ReplaceAll(c, "{py}", py), s.env...); code != 0 {
						t.Fatalf("%s: exit %d\n%s", c, code, out)
					}
				}
				wrong := l.imports(py)
				naive := strings.ReplaceAll(s.naive[i], "{py}", py)
				out, _ := l.sh(dir, naive, s.env...)
				if got := l.imports(py); got != wrong {
					t.Errorf("%s: it helped after all: %s, then %s\n%s", naive, wrong, got, out)
				}
				script, code := l.sh(dir, "ncclinic fix --python "+py+" --with "+tool+" "+s.flags+" --format sh", s.env...)
				if code != 1 {
					t.Fatalf("fix: exit %d\n%s", code, script)
				}
				write(t, filepath.Join(dir, "fix.sh"), script)
				l.server.Asked()
				for run := 1; run <= 2; run++ {
					out, code := l.sh(dir, "sh fix.sh", s.env...)
					if code != 0 {
						t.Fatalf("run %d: exit %d\n%s\nscript:\n%s", run, code, out, script)
					}
					got := l.imports(py)
					if want := s.want + " " + filepath.Join(dir, "venv"); !strings.HasPrefix(got, want) {
						t.Fatalf("run %d: imports %s, want %s (was %s)\n%s\nscript:\n%s", run, got, want, wrong, out, script)
					}
				}
				if out, code := l.sh(dir, py+" -m pip check", s.env...); code != 0 {
					t.Errorf("pip check: %s", out)
				}
				// Asked again it has nothing to change.
				if out, code := l.sh(dir, "ncclinic fix --python "+py+" --with "+tool+" "+s.flags, s.env...); !strings.Contains(out, "(installed)") {
					t.Errorf("fix afterwards: exit %d\n%s", code, out)
				}
				if s.after != nil {
					s.after(l, dir, py, s.want)
				}
			})
		}
	}
}

// TestFixUVProject: the edit of pyproject.toml and the commands put the CUDA
// build into a project whose lock file holds the CPU build, and uv sync keeps it.
func TestFixUVProject(t *testing.T) {
	l := newFixLab(t)
	dir := filepath.Join(l.dir, "project")
	write(t, filepath.Join(dir, "pyproject.toml"), `[project]
name = "train"
version = "0.1"
requires-python = "==3.11.*"
dependencies = ["helper-lib", "torch==2.6.0"]

[[tool.uv.index]]
name = "pytorch-cpu"
url = "https://download.pytorch.org/whl/cpu"
explicit = true

[tool.uv.sources]
torch = { index = "pytorch-cpu" }

[tool.uv]
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
`)
	if out, code := l.sh(dir, "uv sync -q --python /usr/bin/python3"); code != 0 {
		t.Fatal(out)
	}
	py := filepath.Join(dir, ".venv", "bin", "python")
	if got := l.imports(py); !strings.HasPrefix(got, "2.6.0+cpu ") {
		t.Fatalf("the project starts with %s", got)
	}
	// What people type: it is gone with the next sync.
	l.sh(dir, "uv pip install --reinstall-package torch 'torch==2.6.0+cu124' --index-url https://download.pytorch.org/whl/cu124 && uv sync -q")
	if got := l.imports(py); !strings.HasPrefix(got, "2.6.0+cpu ") {
		t.Errorf("uv sync kept %s", got)
	}
	script, code := l.sh(dir, "ncclinic fix --python .venv/bin/python --project pyproject.toml --driver 550.54.15 --gpu A100 --format sh")
	if code != 1 {
		t.Fatalf("fix: exit %d\n%s", code, script)
	}
	write(t, filepath.Join(dir, "fix.sh"), script)
	for run := 1; run <= 2; run++ {
		if out, code := l.sh(dir, "sh fix.sh && uv sync -q"); code != 0 {
			t.Fatalf("run %d: %s\n%s", run, out, script)
		}
		if got := l.imports(py); !strings.HasPrefix(got, "2.6.0+cu124 ") {
			t.Fatalf("run %d: imports %s\n%s", run, got, script)
		}
	}
}
