package install

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func TestScriptPython(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"#!/opt/py/bin/python3.11\nimport re", "/opt/py/bin/python3.11"},
		{"#!/opt/py/bin/python3.11 -sP\r\nimport re", "/opt/py/bin/python3.11"},
		{"#! /usr/bin/env python3\n", "python3"},
		{"#!/usr/bin/env -S python3 -u\n", "python3"},
		{"#!/usr/bin/env -Spython3 -u\n", "python3"},
		{"#!/usr/bin/env -S A=1 python\n", "python"},
		{"#!/bin/sh\n'''exec' /long/path/bin/python \"$0\" \"$@\"\n' '''\n", "/long/path/bin/python"},
		{"#!/bin/sh\n'''exec' \"/with blank/bin/python\" \"$0\" \"$@\"\n' '''\n", "/with blank/bin/python"},
		{"#!/bin/sh\n'''exec' '/with blank/bin/python' \"$0\" \"$@\"\n", "/with blank/bin/python"},
		{"#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n", "./python3"},
		{"#!/bin/sh\n'''exec' \"$HOME/x/python\" \"$0\" \"$@\"\n", ""},
		{"#!/bin/bash\nsource x\nexec y\n", ""},
		{"#!/bin/sh\n'''exec' \"/no/end", ""},
		{"\x7fELF", ""},
		{"#!", ""},
		{"", ""},
		{"#!/usr/bin/env", ""},
	} {
		if got, _ := scriptPython(c.in); got != c.want {
			t.Errorf("scriptPython(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

const shim = "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexport PYENV_ROOT=\"/py env\"\nexec \"/py env/libexec/pyenv\" exec \"$program\" \"$@\"\n"

func pyenvTree() map[string]string {
	m := map[string]string{
		"/py env/version": "# comment\n3.10\n", "/work/dir/.python-version": "3.11.7\n",
		"/usr/bin/python3": "->python3.9", "/usr/bin/python3.9": elf, "/usr/lib/python3.9/os.py": "",
	}
	for _, v := range []string{"3.10.2", "3.10.13", "3.11.7"} {
		dir := "/py env/versions/" + v
		mm := v[:4]
		m[dir+"/bin/python"+mm] = elf
		m[dir+"/bin/python3"] = "->python" + mm
		m[dir+"/bin/python"] = "->python" + mm
		m[dir+"/lib/python"+mm+"/os.py"] = ""
	}
	m["/py env/shims/python"] = shim
	m["/py env/shims/python3"] = shim
	m["/py env/shims/torchrun"] = shim
	m["/py env/versions/3.11.7/bin/torchrun"] = "#!/py env/versions/3.11.7/bin/python"
	return m
}

func TestPyenv(t *testing.T) {
	for _, c := range []struct {
		name, want string
		env        map[string]string
		cwd        string
	}{
		{"global, newest of a prefix", "/py env/versions/3.10.13/bin/python", nil, "/"},
		{"local", "/py env/versions/3.11.7/bin/python", nil, "/work/dir/deep/er"},
		{"variable", "/py env/versions/3.10.2/bin/python", map[string]string{"PYENV_VERSION": "3.10.2:3.11.7"}, "/work/dir"},
		{"python- prefix", "/py env/versions/3.11.7/bin/python", map[string]string{"PYENV_VERSION": "python-3.11"}, "/"},
		{"newest of all", "/py env/versions/3.11.7/bin/python", map[string]string{"PYENV_VERSION": "3"}, "/"},
		{"not installed", "/py env/shims/python", map[string]string{"PYENV_VERSION": "3.8"}, "/"},
		{"out of the folder", "/py env/shims/python", map[string]string{"PYENV_VERSION": "../../x"}, "/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"PATH": "/py env/shims:/usr/bin"}
			for k, v := range c.env {
				env[k] = v
			}
			b := collect(t, pyenvTree(), env, Options{Cwd: c.cwd})
			if got := b.Python.Exe.Or(""); got != c.want {
				t.Errorf("exe %q, want %q", got, c.want)
			}
			if strings.Contains(c.want, "shims") != (len(b.Problems) > 0) {
				t.Errorf("problems %v", b.Problems)
			}
		})
	}
}

func TestPyenvSystem(t *testing.T) {
	m := pyenvTree()
	delete(m, "/usr/bin/python3")
	m["/usr/bin/python"] = "->python3.9"
	b := collect(t, m, map[string]string{"PATH": "/py env/shims:/usr/bin", "PYENV_VERSION": "system"}, Options{})
	if got := b.Python.Exe.Or(""); got != "/usr/bin/python" {
		t.Errorf("exe %q", got)
	}
}

func TestPyenvTorchrun(t *testing.T) {
	b := collect(t, pyenvTree(), map[string]string{"PATH": "/py env/shims:/usr/bin", "PYENV_VERSION": "3.11.7"}, Options{})
	want := fact.Torchrun{Path: "/py env/versions/3.11.7/bin/torchrun", Python: "/py env/versions/3.11.7/bin/python"}
	// The path has a blank, so that the kernel would not start it; the line is
	// cut at the blank as the kernel does.
	if got := b.Python.Torchrun; got.V.Path != want.Path {
		t.Errorf("torchrun %+v", got)
	}
}

func envs() map[string]string {
	m := basePython()
	for _, e := range []string{"a", "b"} {
		m["/envs/"+e+"/bin/python"] = "->/opt/py/bin/python3.11"
		m["/envs/"+e+"/bin/python3"] = "->python"
		m["/envs/"+e+"/pyvenv.cfg"] = "home = /opt/py/bin\ninclude-system-site-packages = false\nversion = 3.11.4\n"
		m["/envs/"+e+"/lib/python3.11/site-packages/x"] = ""
	}
	return m
}

func TestChoose(t *testing.T) {
	broken := addAll(envs(), map[string]string{"/envs/gone/bin/python": "->/removed/python3.8"})
	for _, c := range []struct {
		name   string
		env    map[string]string
		opt    Options
		exe    string
		by     string
		others string
	}{
		{name: "activated", env: map[string]string{"PATH": "/envs/a/bin:/opt/py/bin", "VIRTUAL_ENV": "/envs/a"}, exe: "/envs/a/bin/python", by: fact.ByPath},
		{name: "not first on PATH", env: map[string]string{"PATH": "/opt/py/bin:/envs/a/bin", "VIRTUAL_ENV": "/envs/a"}, exe: "/opt/py/bin/python", by: fact.ByPath, others: "VIRTUAL_ENV /envs/a/bin/python"},
		{name: "two variables", env: map[string]string{"PATH": "/envs/b/bin", "VIRTUAL_ENV": "/envs/a", "CONDA_PREFIX": "/opt/py"}, exe: "/envs/b/bin/python", by: fact.ByPath, others: "VIRTUAL_ENV /envs/a/bin/python,CONDA_PREFIX /opt/py/bin/python"},
		{name: "PATH has none", env: map[string]string{"PATH": "/nowhere", "CONDA_PREFIX": "/opt/py"}, exe: "/opt/py/bin/python", by: fact.ByCondaPrefix},
		{name: "gone", env: map[string]string{"PATH": "/envs/gone/bin:/opt/py/bin", "VIRTUAL_ENV": "/envs/gone"}, exe: "/opt/py/bin/python", by: fact.ByPath, others: "VIRTUAL_ENV /envs/gone/bin/python missing"},
		{name: "flag: file", opt: Options{Python: "/envs/a/bin/python3"}, env: map[string]string{}, exe: "/envs/a/bin/python3", by: fact.ByFlag, others: "PATH /opt/py/bin/python"},
		{name: "flag: folder", opt: Options{Python: "/envs/a/"}, env: map[string]string{}, exe: "/envs/a/bin/python", by: fact.ByFlag, others: "PATH /opt/py/bin/python"},
		{name: "flag: relative", opt: Options{Python: "../envs/a", Cwd: "/work"}, env: map[string]string{}, exe: "/envs/a/bin/python", by: fact.ByFlag, others: "PATH /opt/py/bin/python"},
		{name: "flag: name", opt: Options{Python: "python3.11"}, env: map[string]string{}, exe: "/opt/py/bin/python3.11", by: fact.ByFlag},
		{name: "script", opt: Options{Python: "/envs/b/bin/python", By: fact.ByScript}, env: map[string]string{"PATH": "/envs/b/bin"}, exe: "/envs/b/bin/python", by: fact.ByScript},
		{name: "broken environment by flag", opt: Options{Python: "/envs/gone"}, env: map[string]string{}, by: fact.ByFlag, others: "PATH /opt/py/bin/python"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := collect(t, broken, c.env, c.opt)
			if got := b.Python.Exe.Or(""); got != c.exe || b.Python.By != c.by {
				t.Errorf("exe %q by %q, want %q by %q", got, b.Python.By, c.exe, c.by)
			}
			var others []string
			for _, o := range b.Python.Others {
				s := o.By + " " + o.Exe
				if o.Missing {
					s += " missing"
				}
				others = append(others, s)
			}
			if got := strings.Join(others, ","); got != c.others {
				t.Errorf("others %q, want %q", got, c.others)
			}
		})
	}
}

func TestVenvFacts(t *testing.T) {
	b := collect(t, envs(), map[string]string{"PATH": "/envs/a/bin"}, Options{})
	p := b.Python
	if p.Version.Or("") != "3.11.4" || p.Prefix.Or("") != "/envs/a" || p.Base.Or("") != "/opt/py" || p.Real.Or("") != "/opt/py/bin/python3.11" || p.SystemSite.Or(true) || p.UserSite.Or(true) {
		t.Errorf("%+v", p)
	}
	if p.SystemSite.At.Line != 2 || p.UserSite.At.Path != "/envs/a/pyvenv.cfg" {
		t.Errorf("evidence %+v, %+v", p.SystemSite.At, p.UserSite.At)
	}
}

func TestStaleVenv(t *testing.T) {
	m := envs()
	m["/envs/a/pyvenv.cfg"] = "home = /opt/py/bin\nversion = 3.9.1\ninclude-system-site-packages = true\n"
	b := collect(t, m, map[string]string{"PATH": "/envs/a/bin"}, Options{})
	if len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Why, "3.9.1") || b.Python.Version.Or("") != "3.11" {
		t.Errorf("%v, version %+v", b.Problems, b.Python.Version)
	}
}

func TestBaseRemoved(t *testing.T) {
	m := map[string]string{
		"/envs/a/bin/python":       elf, // --copies
		"/envs/a/pyvenv.cfg":       "home = /gone/bin\nversion = 3.12.1\n",
		"/envs/a/lib/python3.12/x": "",
		"/envs/a/lib64":            "->lib",
		"/envs/a/lib/python3.12/site-packages/torch/__init__.py": "",
	}
	b := collect(t, m, map[string]string{"PATH": "/envs/a/bin"}, Options{})
	if b.Python.Base.State != fact.Failed || b.Python.Version.Or("") != "3.12.1" || len(b.Torch) != 1 {
		t.Errorf("base %+v, version %+v, torch %v", b.Python.Base, b.Python.Version, b.Torch)
	}
}

func TestWrapper(t *testing.T) {
	m := basePython()
	m["/wrap/bin/python"] = "#!/bin/bash\nmodule load x\nexec /opt/py/bin/python3 \"$@\"\n"
	m["/odd/bin/python"] = "#!/bin/bash\napptainer exec image.sif python \"$@\"\n"
	b := collect(t, m, map[string]string{"PATH": "/wrap/bin"}, Options{})
	if got := b.Python.Exe.Or(""); got != "/opt/py/bin/python3" {
		t.Errorf("exe %q", got)
	}
	b = collect(t, m, map[string]string{"PATH": "/odd/bin"}, Options{})
	if b.Python.Version.IsKnown() || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Why, "is a script") {
		t.Errorf("version %+v, problems %v", b.Python.Version, b.Problems)
	}
}

func TestNoSuchPython(t *testing.T) {
	for _, arg := range []string{"/no/such", "nosuch", "/opt/py/lib/python3.11/lib-dynload/x/y"} {
		var b fact.Bundle
		err := Collect(context.Background(), &source.Machine{FS: files(basePython()), Env: map[string]string{"PATH": "/opt/py/bin"}}, Options{Python: arg}, &b)
		if err == nil || !strings.Contains(err.Error(), arg) || b.Python.Exe.State != fact.Failed {
			t.Errorf("%s: error %v, exe %+v", arg, err, b.Python.Exe)
		}
	}
}

func TestFedora(t *testing.T) {
	m := map[string]string{
		"/usr/bin/python3":                            "->python3.12",
		"/usr/bin/python3.12":                         elf,
		"/usr/lib64/python3.12/os.py":                 "",
		"/usr/lib64/python3.12/lib-dynload/":          "",
		"/usr/lib64/python3.12/site.py":               "    if ENABLE_USER_SITE and 'RPM_BUILD_ROOT' not in os.environ:\n        PREFIXES.insert(0, \"/usr/local\")\n",
		"/usr/lib64/python3.12/site-packages/x":       "",
		"/usr/lib/python3.12/site-packages/x":         "",
		"/usr/local/lib/python3.12/site-packages/x":   "",
		"/usr/local/lib64/python3.12/site-packages/x": "",
		"/bin":   "->usr/bin",
		"/lib64": "->usr/lib64",
	}
	want := []string{
		"/usr/lib64/python312.zip", "/usr/lib64/python3.12", "/usr/lib64/python3.12/lib-dynload",
		"/usr/local/lib64/python3.12/site-packages", "/usr/local/lib/python3.12/site-packages",
		"/usr/lib64/python3.12/site-packages", "/usr/lib/python3.12/site-packages",
	}
	for _, dir := range []string{"/usr/bin", "/bin"} {
		b := collect(t, m, map[string]string{"PATH": dir}, Options{})
		if d := cmp.Diff(want, paths(b)); d != "" {
			t.Errorf("%s: %s", dir, d)
		}
	}
	b := collect(t, m, map[string]string{"PATH": "/usr/bin", "PYTHONNOUSERSITE": "1"}, Options{})
	if d := cmp.Diff(append(want[:3:3], want[5:]...), paths(b)); d != "" {
		t.Errorf("without user site: %s", d)
	}
}
