package install

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
)

func TestParseVersionPy(t *testing.T) {
	show := func(v fact.Val[string]) string {
		if v.IsKnown() {
			return v.V
		}
		return v.State.String()
	}
	for _, c := range []struct{ name, in, want string }{
		{"0.4", "__version__ = '0.4.1'\ndebug = False\ncuda = '9.0.176'\n", "0.4.1 9.0.176 absent absent"},
		{"1.4", "__version__ = '1.4.0+cpu'\ndebug = False\ncuda = None\ngit_version = '7f73f1d591afba823daa4a99a939217fb54d7688'\n", "1.4.0+cpu absent absent absent"},
		{"Debian", "__version__ = '1.13.0a0'\ndebug = False\ncuda = None\ngit_version = 'Unknown'\nhip = None\n", "1.13.0a0 absent absent absent"},
		{"ROCm", "__version__ = '1.10.0+rocm4.2'\ndebug = False\ncuda = None\ngit_version = 'x'\nhip = '4.2.21155-37cb3a34'\n", "1.10.0+rocm4.2 absent 4.2.21155-37cb3a34 absent"},
		{"2.0", "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n__version__ = '2.2.1+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\ngit_version = '6c8c5ad5'\nhip: Optional[str] = None\n", "2.2.1+cu121 12.1 absent absent"},
		{"2.12", "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']\n__version__ = '2.12.1+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\ngit_version = '7269'\nhip: Optional[str] = None\nrocm: Optional[str] = None\nxpu: Optional[str] = None\n", "2.12.1+cu130 13.0 absent absent"},
		{"union", "__version__ = \"2.15.0\"  # release\r\ncuda: str | None = None\r\nhip: str | None = None\r\nxpu: str | None = '20250301'\r\n", "2.15.0 absent absent 20250301"},
		{"docstring", "'''\n__version__ = 'no'\n'''\n__version__ = 'yes'\ncuda = None", "yes absent absent absent"},
		{"computed", "__version__ = torch_version()\ncuda = _cuda()\n", "failed failed absent absent"},
		{"in a block", "if x:\n    cuda = '12.1'\n__version__ = '2.0'\n", "2.0 failed absent absent"},
		{"last wins", "cuda = None\ncuda = '12.1'\n__version__ = '2.0'\n", "2.0 12.1 absent absent"},
		{"comparison is no assignment", "__version__ = '2.0'\ncuda == '1'\n", "2.0 failed absent absent"},
		{"two strings", "__version__ = '2.0' '.1'\ncuda = ''\n", "failed absent absent absent"},
		{"empty", "", "failed failed absent absent"},
		{"BOM", "\ufeff__version__ = '2.0'\ncuda = None", "2.0 absent absent absent"},
	} {
		f := parseVersionPy("version.py", []byte(c.in))
		if got := strings.Join([]string{show(f.version), show(f.cuda), show(f.hip), show(f.xpu)}, " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestParsePyver(t *testing.T) {
	for in, want := range map[string]string{
		"3.11": "3.11", "3.11.7": "3.11.7", "3.11.7.final.0": "3.11.7", "3.12.0rc1": "3.12.0", "3.13.0+": "3.13.0",
		"3": "", "": "", "a.b": "", "33.1": "", "-3.1": "", "3.x": "", "3.99999": "",
	} {
		v, ok := parsePyver(in)
		got := ""
		if ok {
			got = v.String()
		}
		if got != want {
			t.Errorf("parsePyver(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"python3.11": "python3.11", "python3.13t": "python3.13t", "python3.7m": "python3.7", "python3.11d": "python3.11", "python3": "", "python": "", "python3.11-config": "", "pypy3.10": ""} {
		v, ok := pyverOfName(in)
		got := ""
		if ok {
			got = v.dir()
		}
		if got != want {
			t.Errorf("pyverOfName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		line string
		kind pthCode
		arg  string
	}{
		{"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled and __import__('_distutils_hack').add_shim(); ", codeHarmless, ""},
		{"import _virtualenv", codeHarmless, ""},
		{"import a1_coverage", codeHarmless, ""},
		{"import sys; exec('try: import coverage\\nexcept ImportError: pass')", codeHarmless, ""},
		{"import sys, types, os;has_mfs = sys.version_info > (3, 5);p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('google',));importlib = has_mfs and __import__('importlib.util');m = has_mfs and sys.modules.setdefault('google', importlib.util.module_from_spec(importlib.machinery.PathFinder.find_spec('google', [os.path.dirname(p)])));m = m or sys.modules.setdefault('google', types.ModuleType('google'))", codeHarmless, ""},
		{"import __editable___torch_2_7_0_finder; __editable___torch_2_7_0_finder.install()", codeFinder, "__editable___torch_2_7_0_finder"},
		{"import __editable__../../x; y", codeUnknown, ""},
		{"import site; site.addsitedir('/envs/base/lib')", codeAddDir, "/envs/base/lib"},
		{"import sys, site; site.addsitedir(r\"/envs/base/lib\");", codeAddDir, "/envs/base/lib"},
		{"import site; site.addsitedir('/a' + x)", codeUnknown, ""},
		{"import evil, site; site.addsitedir('/a')", codeUnknown, ""},
		{"import sys; sys.path.insert(0, '/x')", codeUnknown, ""},
		{"import torch_hook", codeUnknown, ""},
		{"import sys; sys.__plen = len(sys.path)", codeMark, ""},
	} {
		if kind, arg := classify(c.line); kind != c.kind || arg != c.arg {
			t.Errorf("classify(%q) = %v, %q, want %v, %q", c.line, kind, arg, c.kind, c.arg)
		}
	}
}

func TestDirectURL(t *testing.T) {
	for in, want := range map[string]directURL{
		`{"url": "https://u:p@h/x.whl", "archive_info": {}}`:                              {url: "https://***@h/x.whl"},
		`{"url": "file:///src", "dir_info": {"editable": true}}`:                          {url: "file:///src", dir: true, editable: true},
		`{"url": "file:///src", "dir_info": {}}`:                                          {url: "file:///src", dir: true},
		`{"url": "https://github.com/x", "vcs_info": {"vcs": "git", "commit_id": "123"}}`: {url: "https://github.com/x", vcs: true},
		`[]`: {}, `{`: {}, `{"url": 3}`: {},
	} {
		if d := cmp.Diff(want, parseDirectURL([]byte(in)), cmp.AllowUnexported(directURL{})); d != "" {
			t.Errorf("%s: %s", in, d)
		}
	}
}

func TestLeftover(t *testing.T) {
	for name, want := range map[string]bool{
		"~orch": true, "~-rch": true, "~%=ch": true, "-orch": true, "~orch-2.1.0.dist-info": true, "~orch.libs": true,
		"torch": false, "~orchvision": false, "~": false, "~~~~~": false, "~umpy": false, "": false, ".orch": false,
	} {
		if got := isLeftover(name); got != want {
			t.Errorf("isLeftover(%q) = %v", name, got)
		}
	}
}

// TestDpkgVersion: the paragraph of a package is found wherever it stands, also
// across the pieces in which the file is read.
func TestDpkgVersion(t *testing.T) {
	const wanted = "Package: python3-torch\nStatus: install ok installed\nDescription: x\n Version: 7\nVersion: 1.13.1+dfsg-4\nDepends: y\n\n"
	other := "Package: python3-torchvision\nVersion: 0.14\n\nPackage: libx\nDepends: " + strings.Repeat("y, ", 40<<10) + "\nVersion: 9\n\n"
	for pad := range 120 {
		s := "Package: a\nDescription: " + strings.Repeat("x", 64<<10-80+pad) + "\n\n" + wanted + other
		if v := dpkgVersion(strings.NewReader(s), "python3-torch"); v != "1.13.1+dfsg-4" {
			t.Errorf("%d bytes before it: %q", pad, v)
		}
	}
	for s, want := range map[string]string{wanted: "1.13.1+dfsg-4", other + wanted: "1.13.1+dfsg-4", other: "", "": "", "Package: python3-torch": "",
		"Package: python3-torch\nStatus: x\n\nPackage: b\nVersion: 2\n": ""} {
		if v := dpkgVersion(strings.NewReader(s), "python3-torch"); v != want {
			t.Errorf("%.80q: %q, want %q", s, v, want)
		}
	}
}

func FuzzVersionPy(f *testing.F) {
	f.Add([]byte("__version__ = '2.12.1+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n\"\"\"x\n\"\"\"'''"))
	f.Add([]byte("cuda:=\n cuda = 'a\\'\n\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := parseVersionPy("f", data)
		for _, x := range []fact.Val[string]{v.version, v.cuda, v.hip, v.xpu, v.git} {
			if !x.Looked() || len(x.V) > 210 || len(x.At.Excerpt) > 210 {
				t.Errorf("%+v", x)
			}
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\nRequires-Dist: a; extra == 'b'\n\nx"), "torch-2.5.1+cu121.dist-info")
	f.Add([]byte("Tag: x\n:\n"), "torch-1.8.0-py3.8.egg-info")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if m := parseMetadata(data); len(m.requires) > maxRequires || len(m.version) > 310 {
			t.Errorf("%+v", m)
		}
		parseWheel(data)
		parseDirectURL(data)
		scanRecord(strings.NewReader(string(data)))
		dpkgVersion(strings.NewReader(string(data)), "python3-torch")
		splitDistName(name)
		isLeftover(name)
		if a := NormalName(name); NormalName(a) != a {
			t.Errorf("%q is not stable", a)
		}
	})
}

func FuzzPyvenv(f *testing.F) {
	f.Add([]byte("home = /usr/bin\nInclude-System-Site-Packages=TRUE\nversion = 3.11.7\nversion_info = 3.11.7.final.0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c := parsePyvenv(data); c.version.minor < 0 || c.version.minor > 9999 {
			t.Errorf("%+v", c)
		}
		scriptPython(string(data))
		execLine(string(data))
	})
}

func FuzzPth(f *testing.F) {
	f.Add([]byte("import site; site.addsitedir('/x')\n# c\n../a\r\n\rb\n"), true)
	f.Add([]byte("\ufeffimport __editable___a_finder; x\nimport sys; new=sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0)"), false)
	f.Fuzz(func(t *testing.T, data []byte, bom bool) {
		lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
		for _, l := range parsePth(data, bom) {
			if l.n < 1 || l.n > lines || strings.ContainsAny(l.text, "\r\n") {
				t.Errorf("%+v", l)
			}
			if l.code {
				classify(l.text)
			}
		}
		finderMapping(string(data), "torch")
	})
}

func FuzzCondaMeta(f *testing.F) {
	f.Add([]byte(`{"build": "cuda120", "channel": "https://conda.anaconda.org/conda-forge/linux-64", "files": ["a", {"b": [1]}], "url": "x"}`), "pytorch-2.4.0-cuda120_mkl_py311_300.json")
	f.Add([]byte(`{"a": {`), "a-b.json")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		channel, url := parseCondaMeta(data)
		if s := channelName(channel); utf8.ValidString(channel) && !utf8.ValidString(s) || len(s) > 110 {
			t.Errorf("channelName(%q) = %q", channel, s)
		}
		maskCondaToken(url)
		if p, ok := splitCondaName(name); ok && p.name+"-"+p.version+"-"+p.build+".json" != name {
			t.Errorf("%q: %+v", name, p)
		}
	})
}
