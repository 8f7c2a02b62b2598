package install

import (
	"path"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Limits on reading modulefiles, which is done only for PYTHONPATH entries
// that neither variables nor names explain.
const (
	maxModuleFiles = 24
	maxModuleFile  = 64 << 10
)

// nameModules says which environment module put an entry into PYTHONPATH or
// EBPYTHONPREFIXES.
func (c *collector) nameModules() {
	var loaded []string
	for _, m := range strings.Split(c.m.Env["LOADEDMODULES"], ":") {
		if m != "" {
			loaded = append(loaded, m)
		}
	}
	if len(loaded) == 0 {
		return
	}
	for i := range c.py.Path {
		if e := &c.py.Path[i]; e.Kind == fact.PathPythonPath || e.Kind == fact.PathCustomize {
			e.Module = c.moduleOf(e.Dir, e.Kind, loaded)
		}
	}
}

// moduleOf returns the loaded module that put dir on the path, "" when
// that cannot be told.
func (c *collector) moduleOf(dir, kind string, loaded []string) string {
	if m := c.easyBuildModule(dir, loaded); m != "" {
		return m
	}
	// Lmod and Environment Modules count who asked for an entry. What they do
	// not count, a user or a script has set.
	counted, tracked := c.counted(dir)
	if tracked && !counted && kind == fact.PathPythonPath {
		return ""
	}
	// …/pytorch/2.1.0/… for the module pytorch/2.1.0. The last loaded is asked
	// first: it is the one that overrides.
	lower := strings.ToLower(dir) + "/"
	for i := len(loaded) - 1; i >= 0; i-- {
		name, version, ok := strings.Cut(strings.ToLower(loaded[i]), "/")
		if !ok || len(name) < 2 {
			continue
		}
		for _, sep := range []string{"/", "-"} {
			if strings.Contains(lower, "/"+name+sep+version+"/") {
				return loaded[i]
			}
		}
	}
	files := strings.Split(c.m.Env["_LMFILES_"], ":")
	if len(files) == len(loaded) {
		for i := len(files) - 1; i >= max(0, len(files)-maxModuleFiles); i-- {
			data, _, err := c.t.read(files[i], maxModuleFile)
			if err == nil && namesInPythonPath(string(data), dir) {
				return loaded[i]
			}
		}
	}
	if counted && len(loaded) == 1 {
		return loaded[0]
	}
	return ""
}

// namesInPythonPath reports whether a modulefile, Tcl or Lua, has dir and
// PYTHONPATH in one line.
func namesInPythonPath(text, dir string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "PYTHONPATH") && strings.Contains(line, dir) {
			return true
		}
	}
	return false
}

// counted reports whether the module system put dir into PYTHONPATH, and
// whether it keeps such a count at all.
func (c *collector) counted(dir string) (yes, tracked bool) {
	for name, sep := range map[string]string{
		"__LMOD_REF_COUNT_PYTHONPATH": ";", // /dir:1;/dir2:2
		"__MODULES_SHARE_PYTHONPATH":  ":", // /dir:1:/dir2:2
		"PYTHONPATH_modshare":         ":",
	} {
		v, ok := c.m.Env[name]
		if !ok {
			continue
		}
		tracked = true
		for _, p := range strings.Split(v, sep) {
			if sep == ";" {
				if i := strings.LastIndexByte(p, ':'); i >= 0 {
					p = p[:i]
				}
			}
			if path.IsAbs(p) && path.Clean(p) == dir {
				yes = true
			}
		}
	}
	return yes, tracked
}

// easyBuildModule goes by EBROOTPYTORCH=/apps/PyTorch/2.1.2-foss-2023a.
func (c *collector) easyBuildModule(dir string, loaded []string) string {
	var roots []string
	for name, v := range c.m.Env {
		if strings.HasPrefix(name, "EBROOT") && path.IsAbs(v) && under(dir, path.Clean(v)) {
			roots = append(roots, name)
		}
	}
	sort.Slice(roots, func(i, j int) bool { // the deepest root first
		a, b := roots[i], roots[j]
		if la, lb := len(c.m.Env[a]), len(c.m.Env[b]); la != lb {
			return la > lb
		}
		return a < b
	})
	for _, root := range roots {
		for _, m := range loaded {
			name, _, _ := strings.Cut(m, "/")
			if easyBuildName(name) == strings.TrimPrefix(root, "EBROOT") {
				return m
			}
		}
	}
	return ""
}

// easyBuildName is how EasyBuild writes a package in a variable's name.
func easyBuildName(s string) string {
	s = strings.NewReplacer("+", "PLUS", "-", "MIN").Replace(s)
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s))
}

// under reports whether p is dir or lies in it.
func under(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
