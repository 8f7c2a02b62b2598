package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// maxCustomize bounds what is read of a sitecustomize.py.
const maxCustomize = 64 << 10

// customize does what sitecustomize.py and usercustomize.py, which site.py
// imports last, are known to do to the search path: EasyBuild's adds the
// prefixes of loaded modules from EBPYTHONPREFIXES. That any other one may
// change the path is recorded.
func (p *pathBuilder) customize(user bool) {
	if file, text, ok := p.importable("sitecustomize.py"); ok {
		switch {
		case strings.Contains(text, "EBPYTHONPREFIXES"):
			p.easyBuild(file, text)
		case touchesPath(text):
			p.c.b.AddProblem(file, "is run when Python starts and may change where modules are found")
		}
	}
	if !user {
		return
	}
	if file, text, ok := p.importable("usercustomize.py"); ok && touchesPath(text) {
		p.c.b.AddProblem(file, "is run when Python starts and may change where modules are found")
	}
}

// importable finds a module that is one file along the search path.
func (p *pathBuilder) importable(name string) (file, text string, ok bool) {
	for _, e := range p.entries {
		if !e.Exists {
			continue
		}
		if file = path.Join(e.Dir, name); !p.c.t.isFile(file) {
			continue
		}
		data, _, err := p.c.t.read(file, maxCustomize)
		if err != nil {
			p.c.b.AddProblem(file, err.Error())
			return "", "", false
		}
		return file, string(data), true
	}
	return "", "", false
}

func touchesPath(text string) bool {
	for _, s := range []string{"sys.path", "addsitedir", "meta_path", "path_hooks"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// easyBuild does what the sitecustomize.py of EasyBuild's Python does: every
// prefix's site-packages comes behind those of a virtual environment and, in
// newer versions, before those of the Python itself.
func (p *pathBuilder) easyBuild(file, text string) {
	prefixes := p.c.m.Env["EBPYTHONPREFIXES"]
	if prefixes == "" {
		return
	}
	if p.c.m.Env["EBPYTHONPREFIXES_PRIORITY"] != "" {
		p.c.b.AddProblem(file, "EBPYTHONPREFIXES_PRIORITY may change the order of the search path")
	}
	move := strings.Contains(text, "base_paths")
	n := len(p.entries)
	for _, prefix := range strings.Split(prefixes, ":") {
		dir := p.c.absPlain(path.Join(prefix, "lib", strings.TrimSuffix(p.l.ver.dir(), p.l.ver.abi), "site-packages"))
		if prefix != "" && p.c.t.isDir(dir) {
			p.siteDir(dir, fact.PathCustomize, "EBPYTHONPREFIXES")
		}
	}
	if !move {
		return
	}
	var kept, base []fact.PathEntry
	for i, e := range p.entries {
		if i < n && strings.HasPrefix(e.Dir, p.l.base) {
			base = append(base, e)
		} else {
			kept = append(kept, e)
		}
	}
	p.entries = append(kept, base...)
}
