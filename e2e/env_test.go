package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// relocated makes a whole Python installation, as a site or conda has its own:
// Debian's interpreter in another prefix, with the packages of a folder.
func relocated(t *testing.T, packages string) string {
	t.Helper()
	dir := temp(t)
	command(t, nil, "mkdir", "-p", dir+"/bin", dir+"/lib/python3", dir+"/lib/python3.11")
	command(t, nil, "cp", "-L", "/usr/bin/python3.11", dir+"/bin/python3.11")
	link(t, "python3.11", dir+"/bin/python3")
	std, err := os.ReadDir("/usr/lib/python3.11")
	if err != nil {
		testenv.Need(t, "/usr/lib/python3.11", "lab/deps.sh packages")
	}
	for _, e := range std {
		if e.Name() != "dist-packages" {
			link(t, filepath.Join("/usr/lib/python3.11", e.Name()), filepath.Join(dir, "lib/python3.11", e.Name()))
		}
	}
	link(t, packages, dir+"/lib/python3/dist-packages")
	return dir
}

// importOrder is a case of several torches on one search path.
type importOrder struct {
	name   string
	env    []string
	python string
	wins   string // folder of the torch that the real interpreter imports
	cause  string // "": the search path must not be accused
}

func (o importOrder) test(t *testing.T, accusation string) {
	t.Helper()
	t.Run(o.name, func(t *testing.T) {
		if got := imported(t, o.env, o.python); got != o.wins+"/__init__.py" {
			t.Fatalf("the real interpreter imports %s, the case expects %s", got, o.wins)
		}
		c := call{env: o.env}
		if w := winner(t, c.facts(t, "--python", o.python)); w.Dir != o.wins {
			t.Errorf("the program takes %s for the torch that is imported, the interpreter %s", w.Dir, o.wins)
		}
		r := c.check(t, "--python", o.python)
		if o.cause == "" && r.has(accusation) {
			t.Errorf("wrongly accused: %v", r.ids())
		}
		if o.cause != "" && r.cause() != o.cause {
			t.Errorf("cause %q, want %s; findings %v", r.cause(), o.cause, r.ids())
		}
		if o.cause != "" && r.cause() == o.cause && r.top(t).Certainty != "proven" {
			t.Errorf("%s, want proven", r.top(t).Certainty)
		}
	})
}

// TestUserSite: a CPU build in ~/.local beside a CUDA build in an environment.
func TestUserSite(t *testing.T) {
	cuda := prefix(t, "cuda")
	home := temp(t)
	user := home + "/.local/lib/python3.11/site-packages"
	copyDebianTorch(t, user)
	base := relocated(t, site(cuda))
	baseTorch := base + "/lib/python3/dist-packages/torch"

	// A venv that sees the base's packages, and one that has CUDA torch itself.
	outer := filepath.Join(temp(t), "venv")
	command(t, nil, base+"/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", outer)
	own := filepath.Join(temp(t), "venv")
	command(t, nil, "/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", own)
	if err := os.Remove(site(own)); err != nil {
		t.Fatal(err)
	}
	link(t, site(cuda), site(own))

	const shadow = "env-user-site-shadows"
	at := "HOME=" + home
	for _, o := range []importOrder{
		{"user site over the installation's", []string{at}, base + "/bin/python3", user + "/torch", shadow},
		{"PYTHONNOUSERSITE", []string{at, "PYTHONNOUSERSITE=1"}, base + "/bin/python3", baseTorch, ""},
		{"PYTHONUSERBASE", []string{"PYTHONUSERBASE=" + home + "/.local"}, base + "/bin/python3", user + "/torch", shadow},
		{"venv with system packages", []string{at}, outer + "/bin/python", user + "/torch", shadow},
		{"venv with system packages and a torch of its own", []string{at}, own + "/bin/python", site(own) + "/torch", ""},
		{"venv on its own", []string{at}, cuda + "/bin/python", site(cuda) + "/torch", ""},
	} {
		o.test(t, shadow)
	}
}

// TestModule: a module of the site puts another torch first through PYTHONPATH.
func TestModule(t *testing.T) {
	const lmod = "/usr/share/lmod/lmod/init/bash"
	if _, err := os.Stat(lmod); err != nil {
		testenv.Need(t, "lmod", "lab/deps.sh packages")
	}
	cuda := prefix(t, "cuda")
	dir := temp(t)
	copyDebianTorch(t, dir+"/sw/pytorch")
	write(t, dir+"/modules/pytorch-cpu/1.13.lua", `prepend_path("PYTHONPATH", "`+dir+`/sw/pytorch")`+"\n")
	run := func(words string) (report, string) {
		t.Helper()
		out := command(t, nil, "/bin/bash", "-c", `. `+lmod+`
. `+cuda+`/bin/activate
module use `+dir+`/modules
`+words+`
python -c 'import importlib.util as u; print(u.find_spec("torch").origin)'
`+program+` check --format json || true`)
		origin, rest, _ := strings.Cut(out, "\n")
		return parse(t, []byte(rest), out), origin
	}
	r, origin := run("module load pytorch-cpu")
	if want := dir + "/sw/pytorch/torch/__init__.py"; origin != want {
		t.Fatalf("the module did not do its work: %s", origin)
	}
	if r.cause() != "env-pythonpath-shadows" {
		t.Fatalf("cause %q, want env-pythonpath-shadows; findings %v", r.cause(), r.ids())
	}
	f := r.top(t)
	if f.Certainty != "proven" {
		t.Errorf("%s, want proven", f.Certainty)
	}
	var named bool
	for _, e := range f.Evidence {
		named = named || strings.Contains(e.Path+e.Excerpt, "PYTHONPATH")
	}
	if !named {
		t.Errorf("the evidence does not name PYTHONPATH: %+v", f.Evidence)
	}

	r, origin = run("module load pytorch-cpu; module unload pytorch-cpu")
	if origin != site(cuda)+"/torch/__init__.py" || r.has("env-pythonpath-shadows") {
		t.Errorf("after module unload: torch %s, findings %v", origin, r.ids())
	}
}

// TestTorchrunOfAnotherPrefix: the environment is active, but the first
// torchrun on PATH starts another interpreter.
func TestTorchrunOfAnotherPrefix(t *testing.T) {
	debian(t)
	cuda := prefix(t, "cuda")
	dir := temp(t)
	command(t, nil, "mkdir", dir+"/bin")
	command(t, nil, "cp", "/usr/bin/torchrun", dir+"/bin/torchrun")
	env := []string{"VIRTUAL_ENV=" + cuda, "PATH=" + dir + "/bin:" + cuda + "/bin:/usr/bin:/bin"}
	// What really happens. (Debian's torchrun of 1.13 fails on its Python 3.11;
	// its traceback says whose it is.)
	write(t, dir+"/v.py", "import torch; print(torch.__file__)\n")
	out := command(t, append(env, "GLOO_SOCKET_IFNAME=lo"), "/bin/sh", "-c", "torchrun --standalone --nproc_per_node=1 "+dir+"/v.py 2>&1 || true")
	if !strings.Contains(out, debianTorch) || strings.Contains(out, cuda) {
		t.Fatalf("the case expects Debian's torch to run:\n%s", out)
	}
	r := call{env: env}.check(t)
	if r.cause() != "env-not-activated" {
		t.Errorf("cause %q, want env-not-activated; findings %v", r.cause(), r.ids())
	}
	// The environment's own torchrun first: nothing to say.
	env[1] = "PATH=" + cuda + "/bin:" + dir + "/bin:/usr/bin:/bin"
	if r := (call{env: env}).check(t); r.has("env-not-activated") {
		t.Errorf("wrongly accused: %v", r.ids())
	}
}
