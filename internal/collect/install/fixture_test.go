package install

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// files makes a file system from absolute paths. A text that begins with "->"
// is a link; what lies in a bin folder may be run.
func files(m map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for p, text := range m {
		f := &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if target, ok := strings.CutPrefix(text, "->"); ok {
			f.Data, f.Mode = []byte(target), fs.ModeSymlink|0o777
		} else if path.Base(path.Dir(p)) == "bin" || strings.HasSuffix(path.Dir(p), "shims") {
			f.Mode = 0o755
		} else if strings.HasSuffix(p, "/") {
			f.Mode = fs.ModeDir | 0o755
			p = strings.TrimSuffix(p, "/")
		}
		out[source.Rel(p)] = f
	}
	return out
}

const elf = "\x7fELF"

// basePython is a plain /opt/py of Python 3.11.
func basePython() map[string]string {
	return map[string]string{
		"/opt/py/bin/python3.11":                     elf,
		"/opt/py/bin/python3":                        "->python3.11",
		"/opt/py/bin/python":                         "->python3",
		"/opt/py/lib/python3.11/os.py":               "",
		"/opt/py/lib/python3.11/site.py":             "",
		"/opt/py/lib/python3.11/lib-dynload/":        "",
		"/opt/py/lib/python3.11/site-packages/x.txt": "",
		"/work/dir/":                                 "",
	}
}

const site = "/opt/py/lib/python3.11/site-packages"

func addAll(dst map[string]string, more map[string]string) map[string]string {
	for k, v := range more {
		dst[k] = v
	}
	return dst
}

// torchAt is a torch package with a wheel's metadata.
func torchAt(site, version, cuda, dist string) map[string]string {
	m := map[string]string{
		site + "/torch/__init__.py": "",
		site + "/torch/version.py":  "__version__ = '" + version + "'\ndebug = False\ncuda: Optional[str] = " + cuda + "\ngit_version = 'abc'\nhip: Optional[str] = None\n",
	}
	if dist != "" {
		d := site + "/torch-" + dist + ".dist-info/"
		m[d+"METADATA"] = "Metadata-Version: 2.1\nName: torch\nVersion: " + dist + "\nRequires-Dist: filelock\nRequires-Dist: nvidia-nccl-cu12==2.21.5; platform_system == \"Linux\"\nRequires-Dist: opt-einsum>=3.3; extra == 'opt-einsum'\n\nVersion: 9\n"
		m[d+"INSTALLER"] = "pip\n"
		m[d+"WHEEL"] = "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n"
		m[d+"RECORD"] = "torch/version.py,sha256=x,99999\ntorch/lib/libtorch_cuda.so,sha256=x,12\ntorch/a.py,,\n"
	}
	return m
}

func collect(t *testing.T, m map[string]string, env map[string]string, o Options) *fact.Bundle {
	t.Helper()
	if env["PATH"] == "" {
		env["PATH"] = "/opt/py/bin"
	}
	var b fact.Bundle
	if err := Collect(context.Background(), &source.Machine{FS: files(m), Env: env, Home: "/home/u"}, o, &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestShadowed(t *testing.T) {
	m := addAll(basePython(), torchAt(site, "2.5.1+cu121", "'12.1'", "2.5.1"))
	m = addAll(m, torchAt("/home/u/.local/lib/python3.11/site-packages", "2.4.0+cpu", "None", "2.4.0"))
	m = addAll(m, torchAt("/apps/pytorch/2.1.0/lib", "2.1.0", "'11.8'", ""))
	b := collect(t, m, map[string]string{
		"HOME":                        "/home/u",
		"PYTHONPATH":                  "/apps/pytorch/2.1.0/lib",
		"LOADEDMODULES":               "gcc/12:pytorch/2.1.0",
		"__LMOD_REF_COUNT_PYTHONPATH": "/apps/pytorch/2.1.0/lib:1",
	}, Options{})
	var got []string
	for _, t := range b.Torch {
		got = append(got, strings.Join([]string{t.Dir, t.Kind, t.Names, t.Version.Or("?"), t.Accel()}, " "))
	}
	want := []string{
		"/apps/pytorch/2.1.0/lib/torch PYTHONPATH pytorch/2.1.0 2.1.0 cuda",
		"/home/u/.local/lib/python3.11/site-packages/torch user-site  2.4.0+cpu cpu",
		"/opt/py/lib/python3.11/site-packages/torch site-packages  2.5.1+cu121 cuda",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	w := b.Torch[2]
	if w.Version.At.Line != 1 || w.CUDA.At.Line != 3 || w.CUDA.At.Excerpt != "cuda: Optional[str] = '12.1'" {
		t.Errorf("evidence %+v, %+v", w.Version.At, w.CUDA.At)
	}
	d := w.Dist.V
	if d.Installer != "pip" || cmp.Diff(d.Requires, []string{"filelock", `nvidia-nccl-cu12==2.21.5; platform_system == "Linux"`}) != "" || len(d.Tags) != 1 {
		t.Errorf("dist %+v", d)
	}
	if w.Origin.V.Kind != fact.OriginWheel {
		t.Errorf("origin %+v", w.Origin)
	}
	if len(b.Problems) != 0 {
		t.Errorf("problems %v", b.Problems)
	}
}

func TestDamage(t *testing.T) {
	m := addAll(basePython(), torchAt(site, "2.5.1+cu121", "'12.1'", "2.5.1"))
	m = addAll(m, map[string]string{
		site + "/~orch/x":                        "",
		site + "/~-rch-2.1.dist-info/x":          "",
		site + "/~umpy/x":                        "",
		site + "/torch-2.4.0.dist-info/METADATA": "Name: torch\nVersion: 2.4.0\n\n",
	})
	b := collect(t, m, map[string]string{}, Options{})
	var got []string
	for _, d := range b.Torch[0].Damage {
		got = append(got, d.Kind+" "+d.What)
	}
	want := []string{
		"leftover " + site + "/~-rch-2.1.dist-info",
		"leftover " + site + "/~orch",
		"two-dist-infos torch-2.4.0.dist-info, torch-2.5.1.dist-info",
		"changed-file " + site + "/torch/version.py",
		"missing-file " + site + "/torch/lib/libtorch_cuda.so",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestVersionMismatch(t *testing.T) {
	for _, c := range []struct {
		version, dist string
		same          bool
	}{
		{"2.5.1+cu121", "2.5.1", true},
		{"2.5.1+cu121", "2.5.1+cu121", true},
		{"2.5.1+cu121", "2.5.1+cpu", false},
		{"2.5.1", "2.4.0", false},
		{"1.13.0a0", "1.13.0a0+gitunknown", true},
		{"2.1.0-rc1", "2.1.0rc1", true},
		{"2.6.0a0+ecf3bae40a.nv25.1", "2.6.0a0+ecf3bae40a.nv25.1", true},
		{"v2.1.0", "2.1.0", true},
		{"2.10.0", "2.1.0", false},
		{"2.10.0", "2.10", true},
	} {
		if got := sameRelease(c.version, c.dist); got != c.same {
			t.Errorf("sameRelease(%q, %q) = %v", c.version, c.dist, got)
		}
	}
}

func TestFormsOfTorch(t *testing.T) {
	m := addAll(basePython(), torchAt(site, "2.5.1", "'12.4'", ""))
	m["/p1/torch/readme"] = ""  // a folder without __init__.py
	m["/p2/torch.py"] = "x = 1" // a module of the user
	b := collect(t, m, map[string]string{"PYTHONPATH": "/p1:/p2"}, Options{})
	var got []string
	for _, t := range b.Torch {
		got = append(got, t.Dir+" "+t.Form)
	}
	if d := cmp.Diff([]string{"/p2/torch.py module", site + "/torch ", "/p1/torch namespace"}, got); d != "" {
		t.Error(d)
	}
	if b.Torch[0].Version.Looked() || b.Torch[2].CUDA.Looked() {
		t.Error("a module or a bare folder has no version to judge")
	}
}

func TestLocalTorch(t *testing.T) {
	m := addAll(basePython(), map[string]string{"/work/dir/torch/__init__.py": "", "/work/dir/torch.py": ""})
	b := collect(t, m, map[string]string{"PWD": "/work/dir"}, Options{})
	if d := cmp.Diff([]string{"/work/dir/torch", "/work/dir/torch.py"}, b.Python.LocalTorch); d != "" {
		t.Error(d)
	}
	if len(b.Torch) != 0 {
		t.Errorf("not on the path: %v", b.Torch)
	}
	b = collect(t, m, map[string]string{"PYTHONPATH": ":/x"}, Options{Cwd: "/work/dir"})
	if len(b.Torch) != 1 || len(b.Python.LocalTorch) != 0 || !strings.Contains(b.Torch[0].Via, "working directory") {
		t.Errorf("an empty entry puts the working directory on the path: %+v", b.Torch)
	}
}

func TestEditable(t *testing.T) {
	t.Run("static", func(t *testing.T) {
		m := addAll(basePython(), torchAt("/src/pytorch", "2.7.0a0+git1234567", "None", ""))
		m = addAll(m, map[string]string{
			site + "/__editable__.torch-2.7.0a0+git1234567.pth":              "/src/pytorch\n",
			site + "/torch-2.7.0a0+git1234567.dist-info/METADATA":            "Name: torch\nVersion: 2.7.0a0+git1234567\n",
			site + "/torch-2.7.0a0+git1234567.dist-info/direct_url.json":     `{"dir_info": {"editable": true}, "url": "file:///src/pytorch"}`,
			site + "/torch-2.7.0a0+git1234567.dist-info/INSTALLER":           "pip",
			site + "/torchvision-0.20.0.dist-info/METADATA":                  "",
			site + "/nvidia_nccl_cu11-2.21.5.dist-info/INSTALLER":            "uv",
			site + "/nvidia_nccl_cu12-2.21.5.dist-info/INSTALLER":            "pip\n",
			site + "/requests-2.0.dist-info/METADATA":                        "",
			site + "/flash_attn-2.7.0-py3.11-linux-x86_64.egg-info/PKG-INFO": "",
		})
		b := collect(t, m, map[string]string{}, Options{})
		w := b.Winner()
		if w == nil || w.Dir != "/src/pytorch/torch" || w.Kind != fact.PathPth || w.Origin.V.Kind != fact.OriginSource {
			t.Fatalf("%+v", w)
		}
		if w.Dist.V.URL != "file:///src/pytorch" || !strings.HasSuffix(w.Via, "git1234567.pth:1") {
			t.Errorf("dist %+v, via %q", w.Dist, w.Via)
		}
		var names []string
		for _, d := range b.Dists {
			names = append(names, strings.TrimSpace(d.Name+" "+d.Version+" "+d.Installer))
		}
		want := []string{"flash-attn 2.7.0", "nvidia-nccl-cu11 2.21.5 uv", "nvidia-nccl-cu12 2.21.5 pip", "torch 2.7.0a0+git1234567 pip", "torchvision 0.20.0"}
		if d := cmp.Diff(want, names); d != "" {
			t.Error(d)
		}
	})
	t.Run("finder", func(t *testing.T) {
		m := addAll(basePython(), torchAt("/src/pytorch", "2.7.0a0+git1", "None", ""))
		m[site+"/__editable__.torch-2.7.0.pth"] = "import __editable___torch_2_7_0_finder; __editable___torch_2_7_0_finder.install()"
		m[site+"/__editable___torch_2_7_0_finder.py"] = "from __future__ import annotations\nMAPPING: dict[str, str] = {'functorch': '/src/pytorch/functorch', 'torch': '/src/pytorch/torch'}\n"
		b := collect(t, m, map[string]string{}, Options{})
		if w := b.Winner(); w == nil || w.Dir != "/src/pytorch/torch" || w.Entry != -1 || w.Kind != fact.PathFinder || w.Origin.V.Kind != fact.OriginSource {
			t.Fatalf("%+v", w)
		}
	})
	t.Run("develop", func(t *testing.T) {
		m := addAll(basePython(), torchAt("/src/pytorch", "1.9.0a0+git1", "'11.1'", ""))
		m[site+"/easy-install.pth"] = "/src/pytorch\n"
		m[site+"/torch.egg-link"] = "/src/pytorch\n."
		m["/src/pytorch/torch.egg-info/PKG-INFO"] = "Name: torch\nVersion: 1.9.0a0+git1\n"
		b := collect(t, m, map[string]string{}, Options{})
		if w := b.Winner(); w == nil || w.Origin.V.Kind != fact.OriginSource || w.Dist.V.Version != "1.9.0a0+git1" || len(w.Damage) != 0 {
			t.Fatalf("%+v", w)
		}
	})
}

func TestConda(t *testing.T) {
	record := func(name, rest string) map[string]string {
		return map[string]string{"/opt/py/conda-meta/" + name + ".json": `{"build": "b", "channel": "https://conda.anaconda.org/conda-forge/linux-64", "constrains": ["a"], "depends": [{"x": 1}], ` + rest + `"url": "https://u:p@h/t/tk-123/c/linux-64/x.conda"}`}
	}
	base := func() map[string]string {
		m := addAll(basePython(), torchAt(site, "2.4.0", "None", "2.4.0"))
		delete(m, site+"/torch-2.4.0.dist-info/RECORD")
		m["/opt/py/conda-meta/python-3.11.9-hb806964_0_cpython.json"] = "{}"
		return m
	}
	t.Run("conda", func(t *testing.T) {
		m := addAll(base(), record("pytorch-2.4.0-cpu_mkl_py311h0_100", `"files": [`+strings.Repeat(`"lib/x",`, 20)+`"y"], `))
		m = addAll(m, record("libtorch-2.4.0-cpu_mkl_h1_100", ""))
		m[site+"/torch-2.4.0.dist-info/INSTALLER"] = "conda"
		b := collect(t, m, map[string]string{}, Options{})
		if v := b.Python.Version.Or(""); v != "3.11.9" {
			t.Errorf("version %q", v)
		}
		want := fact.Origin{Kind: fact.OriginConda, Package: "pytorch", Version: "2.4.0", Build: "cpu_mkl_py311h0_100", Channel: "conda-forge", URL: "https://***@h/t/***/c/linux-64/x.conda"}
		if d := cmp.Diff(want, b.Torch[0].Origin.V); d != "" {
			t.Error(d)
		}
		if d := b.Torch[0].Dist.V; d.Installer != "conda" || d.Build != want.Build {
			t.Errorf("dist %+v", d)
		}
	})
	t.Run("pip over conda", func(t *testing.T) {
		m := addAll(base(), record("pytorch-2.3.0-py3.11_cuda12.1_cudnn8.9.2_0", ""))
		b := collect(t, m, map[string]string{}, Options{})
		w := b.Torch[0]
		if w.Origin.V.Kind != fact.OriginWheel || len(w.Damage) != 1 || w.Damage[0].Kind != fact.DamageTwoInstallers {
			t.Errorf("origin %+v, damage %+v", w.Origin, w.Damage)
		}
	})
	t.Run("pip only", func(t *testing.T) {
		b := collect(t, base(), map[string]string{}, Options{})
		if w := b.Torch[0]; w.Origin.V.Kind != fact.OriginWheel || len(w.Damage) != 0 {
			t.Errorf("origin %+v, damage %+v", w.Origin, w.Damage)
		}
	})
}

func TestChannelName(t *testing.T) {
	for in, want := range map[string]string{
		"https://conda.anaconda.org/conda-forge/linux-64": "conda-forge",
		"https://conda.anaconda.org/pytorch":              "pytorch",
		"https://repo.anaconda.com/pkgs/main/linux-64":    "defaults",
		"https://conda.anaconda.org/t/tk-1/private":       "private",
		"pytorch/linux-64":                                "pytorch/linux-64",
		"pytorch":                                         "pytorch",
		"pkgs/main":                                       "defaults",
		"https://prefix.dev/conda-forge/":                 "conda-forge",
	} {
		if got := channelName(in); got != want {
			t.Errorf("channelName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNoTorch(t *testing.T) {
	b := collect(t, basePython(), map[string]string{}, Options{})
	if len(b.Torch) != 0 || len(b.Python.Path) != 4 || len(b.Problems) != 0 {
		t.Errorf("torch %v, path %v, problems %v", b.Torch, b.Python.Path, b.Problems)
	}
}

func TestNoPython(t *testing.T) {
	b := collect(t, map[string]string{"/x/y": ""}, map[string]string{"PATH": "/nowhere"}, Options{})
	if !b.Python.Exe.IsAbsent() {
		t.Errorf("exe %+v", b.Python.Exe)
	}
}

func TestSiteFolder(t *testing.T) {
	b := collect(t, torchAt("/wheel", "2.6.0+cpu", "None", "2.6.0+cpu"), map[string]string{}, Options{Python: "/wheel"})
	if len(b.Torch) != 1 || b.Torch[0].Dist.V.Version != "2.6.0+cpu" {
		t.Errorf("%+v", b.Torch)
	}
}

func TestCustomize(t *testing.T) {
	m := addAll(basePython(), torchAt(site, "2.0", "None", ""))
	m = addAll(m, torchAt("/apps/PyTorch/2.1.2/lib/python3.11/site-packages", "2.1.2", "'12.1'", ""))
	m[site+"/sitecustomize.py"] = ebCustomize
	b := collect(t, m, map[string]string{"EBPYTHONPREFIXES": "/apps/PyTorch/2.1.2", "EBROOTPYTORCH": "/apps/PyTorch/2.1.2", "LOADEDMODULES": "PyTorch/2.1.2-foss"}, Options{})
	if w := b.Winner(); w.Version.Or("") != "2.1.2" || w.Via != "EBPYTHONPREFIXES" || w.Names != "PyTorch/2.1.2-foss" || len(b.Torch) != 2 {
		t.Errorf("%+v", b.Torch)
	}
	m[site+"/sitecustomize.py"] = "import sys\nsys.path.insert(0, x)\n"
	b = collect(t, m, map[string]string{}, Options{})
	if len(b.Problems) != 1 || b.Winner().Version.Or("") != "2.0" {
		t.Errorf("problems %v", b.Problems)
	}
}

func TestModules(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"EasyBuild", map[string]string{"LOADEDMODULES": "GCC/12.3.0:PyTorch-bundle/2.1.2-foss", "EBROOTPYTORCHMINBUNDLE": "/m"}, "PyTorch-bundle/2.1.2-foss"},
		{"set by hand", map[string]string{"LOADEDMODULES": "a/1", "__LMOD_REF_COUNT_PYTHONPATH": "/other:1"}, ""},
		{"only module", map[string]string{"LOADEDMODULES": "a/1", "__LMOD_REF_COUNT_PYTHONPATH": "/other:1;/m/lib:2"}, "a/1"},
		{"modulefile", map[string]string{"LOADEDMODULES": "a/1:b/2", "_LMFILES_": "/mf/a:/mf/b"}, "a/1"},
		{"modshare", map[string]string{"LOADEDMODULES": "a/1", "PYTHONPATH_modshare": "/m/lib:1:/n:1"}, "a/1"},
		{"no modules", map[string]string{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := addAll(basePython(), torchAt("/m/lib", "2.1.2", "None", ""))
			m["/mf/a"] = "#%Module\nprepend-path PYTHONPATH /m/lib\n"
			m["/mf/b"] = "prepend_path(\"PATH\", \"/m/lib\")\n"
			c.env["PYTHONPATH"] = "/m/lib"
			b := collect(t, m, c.env, Options{})
			if got := b.Torch[0].Names; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
