package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// Limits on .pth files. Real ones have a few lines; an easy-install.pth of a
// large site some hundreds.
const (
	maxPth      = 256 << 10 // bytes of one file
	maxPthFiles = 300       // files of one folder
	maxPthLines = 50_000    // lines of all files together
	maxPthDepth = 50        // folders that .pth files of folders add
	maxEntries  = 2000
)

// dialect is how the site.py of an interpreter differs from the plain one.
// Distributions patch it, so the file itself is asked.
type dialect struct {
	debian     bool // dist-packages
	debianVenv bool // old Debian: VIRTUAL_ENV alone brings in site-packages
	usrLocal   bool // Fedora: /usr/local is a prefix too
	skipHidden bool // .pth files that begin with a dot are skipped
	bom        bool // a byte order mark is skipped
}

func (c *collector) dialect(l layout) dialect {
	data, _, err := c.t.read(path.Join(l.stdlib(), "site.py"), 256<<10)
	if err != nil { // a stripped image has site.pyc only
		return dialect{
			debian:     c.t.isDir(path.Join(l.base, "lib/python3/dist-packages")),
			skipHidden: l.ver.atLeast(3, 13),
			bom:        l.ver.atLeast(3, 13),
		}
	}
	has := func(s string) bool { return bytes.Contains(data, []byte(s)) }
	return dialect{
		debian:     has(`"dist-packages"`),
		debianVenv: has(`'VIRTUAL_ENV' in os.environ`),
		usrLocal:   has(`PREFIXES.insert(0, "/usr/local")`) || has(`PREFIXES.insert(0, '/usr/local')`),
		skipHidden: has(`not name.startswith(".")`),
		bom:        has(`utf-8-sig`),
	}
}

// pathBuilder builds sys.path.
type pathBuilder struct {
	c       *collector
	d       dialect
	l       layout
	entries []fact.PathEntry
	known   map[string]bool
	pthDone map[string]bool // folders whose .pth files were processed
	mark    int             // sys.__plen of easy-install.pth
	insert  int             // sys.__egginsert
	finders []finder
	lines   int // of .pth files so far
	depth   int // of siteDir
}

// finder is an import hook of an editable install.
type finder struct {
	module string
	site   string // folder of the .pth file
	via    string
}

func (p *pathBuilder) add(dir, kind, via string) {
	if p.known[dir] || len(p.entries) >= maxEntries {
		return
	}
	p.known[dir] = true
	p.entries = append(p.entries, fact.PathEntry{Dir: dir, Kind: kind, Via: via, Exists: p.c.t.exists(dir)})
}

// searchPath fills Python.Path and UserSite as getpath.py and site.py do, for
// an interpreter that is started without -s, -S, -E and -I.
func (c *collector) searchPath(l layout) {
	p := &pathBuilder{c: c, l: l, d: c.dialect(l), known: map[string]bool{}, pthDone: map[string]bool{}}

	if v := c.m.Env["PYTHONPATH"]; v != "" {
		for _, dir := range strings.Split(v, ":") {
			via := "PYTHONPATH"
			if dir == "" {
				via = "PYTHONPATH (an empty entry is the working directory)"
			}
			p.add(c.absPlain(dir), fact.PathPythonPath, via)
		}
	}
	p.add(path.Join(l.base, l.lib, l.ver.zip()), fact.PathStdlib, "")
	p.add(l.stdlib(), fact.PathStdlib, "")
	p.add(l.dynload, fact.PathStdlib, "")

	user, userAt := c.userSite(l)
	if l.venv != "" { // before the user site
		p.sites(l.venv, fact.PathSite, l.cfg, true)
	}
	if user != "" && c.t.isDir(user) {
		p.siteDir(user, fact.PathUserSite, userVia(c.m.Env))
	}
	if l.venv == "" || l.system {
		kind, via := fact.PathSite, ""
		if p.d.debian {
			kind = fact.PathDist
		}
		if l.venv != "" {
			kind, via = fact.PathSystemSite, l.cfg
		}
		if p.d.usrLocal && user != "" {
			p.sites("/usr/local", kind, via, l.venv != "")
		}
		p.sites(l.base, kind, via, l.venv != "")
		if l.exec != l.base {
			p.sites(l.exec, kind, via, l.venv != "")
		}
	}
	p.customize(user != "")
	c.py.Path = p.entries
	c.nameModules()
	for _, f := range p.finders {
		c.editableFinder(f)
	}
	for _, e := range p.entries {
		if e.Dir == user {
			c.py.UserSite = fact.Of(true, userAt)
			return
		}
	}
	c.py.UserSite = fact.Of(false, userAt)
}

// absPlain is os.path.abspath: no "~" is expanded.
func (c *collector) absPlain(dir string) string {
	if !path.IsAbs(dir) {
		dir = path.Join(c.cwd, dir)
	}
	return path.Clean(dir)
}

func userVia(env map[string]string) string {
	if env["PYTHONUSERBASE"] != "" {
		return "PYTHONUSERBASE"
	}
	return ""
}

// userSite returns the user site folder, whether it exists or not, or "" when
// it is switched off, and what says so.
func (c *collector) userSite(l layout) (dir string, at fact.Evidence) {
	if v := c.m.Env["PYTHONNOUSERSITE"]; v != "" {
		return "", envAt("PYTHONNOUSERSITE", v)
	}
	if l.venv != "" && !l.system {
		return "", fact.FileLine(l.cfg, l.sysLine, "include-system-site-packages = false")
	}
	base, at := c.m.Env["PYTHONUSERBASE"], fact.Evidence{}
	if base != "" {
		at = envAt("PYTHONUSERBASE", base)
		base = c.absPlain(base)
	} else {
		base = path.Join(c.home(), ".local")
	}
	dir = c.absPlain(path.Join(base, "lib", l.ver.dir(), "site-packages"))
	if at.IsZero() {
		at = fact.File(dir)
	}
	if n := c.t.at(dir); n.err != nil && !gone(n.err) {
		c.b.AddProblem(dir, short(n.err).Error())
	}
	return dir, at
}

// sites adds the site-packages folders of a prefix, as getsitepackages lists
// them. inVenv: the interpreter runs in a virtual environment, be it this
// prefix or the base's that is seen from it.
func (p *pathBuilder) sites(prefix, kind, via string, inVenv bool) {
	lib := path.Join(prefix, "lib", p.l.ver.dir())
	var dirs []string
	if p.d.debian {
		if _, active := p.c.m.Env["VIRTUAL_ENV"]; inVenv || active && p.d.debianVenv {
			dirs = append(dirs, path.Join(lib, "site-packages"))
		}
		dirs = append(dirs,
			path.Join(prefix, "local/lib", p.l.ver.dir(), "dist-packages"),
			path.Join(prefix, "lib/python3/dist-packages"),
			path.Join(lib, "dist-packages"))
	} else {
		if p.l.lib != "lib" {
			dirs = append(dirs, path.Join(prefix, p.l.lib, p.l.ver.dir(), "site-packages"))
		}
		dirs = append(dirs, path.Join(lib, "site-packages"))
	}
	for _, dir := range dirs {
		if p.c.t.isDir(dir) {
			p.siteDir(dir, kind, via)
		}
	}
}

// siteDir is site.addsitedir.
func (p *pathBuilder) siteDir(dir, kind, via string) {
	p.add(dir, kind, via)
	// Python reads the .pth files again when a folder comes twice; known paths
	// make that harmless.
	if p.pthDone[dir] || p.c.ctx.Err() != nil {
		return
	}
	p.pthDone[dir] = true
	if p.depth++; p.depth > maxPthDepth {
		p.c.b.AddProblem(dir, "too many folders that .pth files add")
		p.depth--
		return
	}
	defer func() { p.depth-- }()
	list := p.c.t.list(dir)
	if list.err != nil {
		p.c.b.AddProblem(dir, list.err.Error())
	}
	if list.cut {
		p.c.b.AddProblem(dir, fmt.Sprintf("more than %d names; the rest was not looked at", maxList))
	}
	names := list.sorted(func(n string) bool { return strings.HasSuffix(n, ".pth") })
	if len(names) > maxPthFiles {
		p.c.b.AddProblem(dir, fmt.Sprintf("more than %d .pth files; the rest was not read", maxPthFiles))
		names = names[:maxPthFiles]
	}
	for _, name := range names {
		if p.d.skipHidden && name[0] == '.' {
			continue
		}
		p.pth(dir, name)
	}
}

// pth is site.addpackage.
func (p *pathBuilder) pth(dir, name string) {
	file := path.Join(dir, name)
	data, whole, err := p.c.t.read(file, maxPth)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.c.b.AddProblem(file, err.Error())
		}
		return
	}
	if !whole {
		p.c.b.AddProblem(file, fmt.Sprintf("longer than %d bytes; the rest was not read", maxPth))
	}
	for _, line := range parsePth(data, p.d.bom) {
		if p.lines++; p.lines > maxPthLines {
			if p.lines == maxPthLines+1 {
				p.c.b.AddProblem(file, "too many lines in .pth files; the rest was not looked at")
			}
			return
		}
		via := fmt.Sprintf("%s:%d", file, line.n)
		if line.code {
			p.run(dir, file, via, line)
			continue
		}
		entry := line.text
		if !path.IsAbs(entry) {
			entry = path.Join(dir, entry)
		}
		if entry = path.Clean(entry); p.c.t.exists(entry) {
			p.add(entry, fact.PathPth, via)
		}
	}
}

// run does what an import line is known to do.
func (p *pathBuilder) run(dir, file, via string, line pthLine) {
	kind, arg := classify(line.text)
	switch kind {
	case codeMark:
		p.mark = len(p.entries)
	case codeMoveFront:
		if p.mark > len(p.entries) || p.insert > p.mark {
			return
		}
		moved := append([]fact.PathEntry(nil), p.entries[p.mark:]...)
		rest := append([]fact.PathEntry(nil), p.entries[p.insert:p.mark]...)
		p.entries = append(append(p.entries[:p.insert:p.insert], moved...), rest...)
		p.insert += len(moved)
	case codeAddDir:
		arg = p.c.absPlain(arg)
		// addsitedir adds a folder that does not exist too; it has no effect then.
		p.siteDir(arg, fact.PathPth, via)
	case codeFinder:
		p.finders = append(p.finders, finder{module: arg, site: dir, via: via})
	case codeUnknown:
		p.c.b.AddProblem(via, "runs code that may change where modules are found: "+fact.Clip(mask.Text(line.text), 160))
	}
}
