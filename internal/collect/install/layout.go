package install

import (
	"fmt"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// libdirs are the values of sys.platlibdir: lib, and lib64 on Fedora and SUSE.
var libdirs = []string{"lib", "lib64"}

// layout is where an interpreter finds its parts, as getpath.py computes it.
type layout struct {
	ver     pyver
	lib     string // sys.platlibdir
	base    string // sys.base_prefix
	dynload string // lib-dynload, which may lie under another prefix
	exec    string // sys.base_exec_prefix
	venv    string // prefix of the virtual environment; empty: none
	system  bool   // the virtual environment sees the base's site-packages
	cfg     string // path of pyvenv.cfg
	sysLine int    // line of include-system-site-packages
}

// stdlib is the folder of the standard library.
func (l layout) stdlib() string { return path.Join(l.base, l.lib, l.ver.dir()) }

// prefix is sys.prefix.
func (l layout) prefix() string {
	if l.venv != "" {
		return l.venv
	}
	return l.base
}

// layout finds version, prefixes and virtual environment of an interpreter and
// records them.
func (c *collector) layout(it interp) layout {
	l := layout{lib: "lib"}
	exeDir := path.Dir(it.exe)
	realDir := path.Dir(it.real)
	at := fact.File(it.real)
	l.ver, _ = pyverOfName(path.Base(it.real))

	// getpath.py looks for pyvenv.cfg above the program as it was called, not
	// as links resolve: that is what makes a virtual environment.
	var cfg venvConfig
	for _, dir := range []string{path.Dir(exeDir), exeDir} {
		file := path.Join(dir, "pyvenv.cfg")
		if !c.t.exists(file) {
			continue
		}
		data, _, err := c.t.read(file, 64<<10)
		if err != nil {
			c.b.AddProblem(file, err.Error())
			continue
		}
		cfg = parsePyvenv(data)
		// site.py takes the folder above the program's as the prefix, wherever the file is.
		l.venv, l.cfg, l.system, l.sysLine = path.Dir(exeDir), file, cfg.system, cfg.systemLine
		if cfg.home != "" {
			realDir = c.abs(cfg.home)
		}
		break
	}
	if !l.ver.known() {
		l.ver = cfg.version
	}
	if !l.ver.known() {
		for _, dir := range upwards(realDir) {
			if l.ver, _ = c.t.pyverOfLib(dir); l.ver.known() {
				break
			}
		}
	}
	if !l.ver.known() && l.venv != "" {
		l.ver, _ = c.t.pyverOfLib(l.venv)
	}
	if !l.ver.known() {
		c.py.Version = fact.Fail[string]("neither the name of the program nor a lib/python3.X folder beside it says which version it is", at)
		return l
	}

	c.prefixes(&l, realDir, at)

	// The third number: from what was installed beside it.
	if l.ver.micro < 0 {
		if cfg.version.same(l.ver) && cfg.version.micro >= 0 {
			l.ver.micro, at = cfg.version.micro, fact.File(l.cfg)
		} else if v, file, ok := c.condaPython(l.base); ok && v.same(l.ver) {
			l.ver.micro, at = v.micro, fact.File(file)
		} else if v, ok := c.t.patchlevel(l.base, l.ver); ok && v.same(l.ver) {
			l.ver.micro, at = v.micro, fact.File(path.Join(l.base, "include", l.ver.dir(), "patchlevel.h"))
		}
	}
	if cfg.version.known() && !cfg.version.same(l.ver) {
		c.b.AddProblem(l.cfg, fmt.Sprintf("the environment was made for Python %v, and %s is Python %v now: its packages are not seen", cfg.version, it.exe, l.ver))
	}

	c.py.Version = fact.Of(l.ver.String(), at)
	c.py.Prefix = fact.Of(l.prefix(), fact.File(it.exe))
	if l.venv != "" {
		c.py.Venv = fact.Of(true, fact.File(l.cfg))
		if cfg.uv != "" {
			c.py.UV = fact.Of(fact.Clip(cfg.uv, 40), fact.FileExcerpt(l.cfg, "uv = "+fact.Clip(cfg.uv, 40)))
		}
		sysAt := fact.File(l.cfg)
		if l.sysLine > 0 {
			sysAt = fact.FileLine(l.cfg, l.sysLine, "include-system-site-packages = "+fmt.Sprint(l.system))
		}
		c.py.SystemSite = fact.Of(l.system, sysAt)
	} else {
		c.py.Venv = fact.Of(false, fact.File(it.exe))
	}
	c.conda(l)
	return l
}

// prefixes searches upwards from dir for the standard library, as getpath.py
// does, unless PYTHONHOME says where it is.
func (c *collector) prefixes(l *layout, dir string, at fact.Evidence) {
	if home := c.m.Env["PYTHONHOME"]; home != "" {
		base, exec, two := strings.Cut(home, ":")
		if !two {
			exec = base
		}
		l.base, l.exec = c.abs(base), c.abs(exec)
		for _, lib := range libdirs {
			if c.hasStdlib(l.base, lib, l.ver) {
				l.lib = lib
				break
			}
		}
		l.dynload = path.Join(l.exec, l.lib, l.ver.dir(), "lib-dynload")
		c.py.Base = fact.Of(l.base, envAt("PYTHONHOME", home))
		return
	}
	found := c.searchUp(l, dir)
	if !found {
		// A copied program outside of its environment: Python falls back to the
		// prefix that was compiled in, which only the program knows. Where the
		// environment says what it was made from, that is it; else /usr and
		// /usr/local are what it nearly always is.
		var hints []string
		for _, file := range []string{path.Join(path.Dir(dir), "pyvenv.cfg"), path.Join(dir, "pyvenv.cfg")} {
			if data, _, err := c.t.read(file, 64<<10); err == nil {
				hints = append(hints, parsePyvenv(data).home)
			}
		}
		for _, hint := range append(hints, "/usr/bin", "/usr/local/bin") {
			found = found || path.IsAbs(hint) && c.searchUp(l, hint)
		}
	}
	if !found {
		l.base = path.Dir(dir)
		reason := fmt.Sprintf("no %s/os.py above %s: the base installation was moved or removed", l.ver.dir(), dir)
		if why := c.barred(dir, l.ver); why != "" {
			reason = why
		}
		c.py.Base = fact.Fail[string](reason, fact.File(dir))
		c.b.AddProblem(dir, reason)
	} else {
		c.py.Base = fact.Of(l.base, at)
	}
	l.exec = l.base
	l.dynload = path.Join(l.stdlib(), "lib-dynload")
	if !c.t.isDir(l.dynload) {
		for _, d := range upwards(dir) {
			for _, lib := range libdirs {
				if p := path.Join(d, lib, l.ver.dir(), "lib-dynload"); c.t.isDir(p) {
					l.exec, l.dynload = d, p
					return
				}
			}
		}
	}
}

// barred says what keeps this user from the standard library above a folder, "" when
// it is only not there.
func (c *collector) barred(dir string, ver pyver) string {
	for _, d := range upwards(dir) {
		for _, lib := range libdirs {
			p := path.Join(d, lib, ver.dir(), "os.py")
			if n := c.t.at(p); n.err != nil && !gone(n.err) {
				return why(p, short(n.err))
			}
		}
	}
	return ""
}

// searchUp looks for the standard library in dir and the folders above it.
func (c *collector) searchUp(l *layout, dir string) bool {
	if l.ver.atLeast(3, 11) { // since 3.11 the archive is looked for first
		for _, d := range upwards(dir) {
			for _, lib := range libdirs {
				if c.t.isFile(path.Join(d, lib, l.ver.zip())) {
					l.base, l.lib = d, lib
					return true
				}
			}
		}
	}
	for _, d := range upwards(dir) {
		for _, lib := range libdirs {
			if c.hasStdlib(d, lib, l.ver) {
				l.base, l.lib = d, lib
				return true
			}
		}
	}
	return false
}

// upwards lists dir and the folders above it. The root is left out, as in
// getpath.py: with /lib a link to /usr/lib it would look like a prefix.
func upwards(dir string) []string {
	var out []string
	for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}

func (c *collector) hasStdlib(prefix, lib string, v pyver) bool {
	dir := path.Join(prefix, lib, v.dir())
	return c.t.isFile(path.Join(dir, "os.py")) || c.t.isFile(path.Join(dir, "os.pyc"))
}
