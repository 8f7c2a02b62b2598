package ldso

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Object is a file that the process has mapped.
type Object struct {
	Path   string // as it was opened
	Real   string // links resolved
	Via    string // how it was found, see the Via… constants
	ViaDir string // the entry of the list that had it, as written there
	Tried  []fact.LoadTry
	By     *Object // what caused it to load; nil for the program and for preloads
	File   *elfx.File

	names []string // names that it answers to
	done  bool     // its dependencies were loaded
}

// Miss is a library that nothing on the search path provides.
type Miss struct {
	Soname string
	For    *Object
	Tried  []fact.LoadTry
	Err    error // why the search ended early: a damaged file, a limit; nil: it is nowhere
}

// Process is the state of a simulated process.
type Process struct {
	l       *Loader
	Objects []*Object // in load order
	Main    *Object   // the program; nil when not known
	Ignored []string  // LD_PRELOAD entries that could not be loaded; the loader warns and goes on

	env     []string
	preload []string
}

// Start maps the program, LD_PRELOAD and their dependencies. With clean the
// variables LD_LIBRARY_PATH and LD_PRELOAD are taken as unset, which tells
// what they changed. Misses of the program itself are returned.
func (l *Loader) Start(clean bool) (*Process, []Miss) {
	p := &Process{l: l}
	if !clean {
		p.env, p.preload = l.EnvPath, l.Preload
	}
	if l.Exe != "" {
		if f, err := l.open(l.Exe); err == nil {
			p.Main = &Object{Path: l.Exe, Real: l.Exe, Via: ViaPath, File: f}
			p.Objects = append(p.Objects, p.Main)
		}
	}
	for _, name := range p.preload {
		o, _, err := p.mapName(name, p.Main)
		if err != nil || o == nil {
			p.Ignored = append(p.Ignored, name)
			continue
		}
		o.Via, o.ViaDir, o.By = ViaPreload, name, nil
	}
	return p, p.deps(0)
}

// Open does what dlopen does for a file or a name that caller asks for: maps
// it and all that it needs. An object is returned even when something that it
// needs is missing; the real call would then fail and unmap all of it, which
// Undo does.
func (p *Process) Open(name string, caller *Object) (*Object, []Miss) {
	from := len(p.Objects)
	o, tried, err := p.mapName(name, caller)
	if o == nil {
		return nil, []Miss{{Soname: name, For: caller, Tried: tried, Err: err}}
	}
	return o, p.deps(from)
}

// Mark and Undo take back what was mapped after the mark.
func (p *Process) Mark() int { return len(p.Objects) }

// Undo unmaps everything that was mapped after the mark.
func (p *Process) Undo(mark int) { p.Objects = p.Objects[:mark] }

// Resolve returns the object that a name would give, without mapping it or
// its dependencies.
func (p *Process) Resolve(name string, caller *Object) (*Object, []fact.LoadTry, error) {
	mark := p.Mark()
	defer p.Undo(mark)
	return p.mapName(name, caller)
}

// Find returns the mapped object that answers to a soname, or nil.
func (p *Process) Find(soname string) *Object {
	for _, o := range p.Objects {
		if o.answers(soname) {
			return o
		}
	}
	return nil
}

func (o *Object) answers(name string) bool {
	return slices.Contains(o.names, name) || o.File.Soname == name && name != ""
}

// deps maps what the objects from index from on need, breadth first.
func (p *Process) deps(from int) []Miss {
	var out []Miss
	for i := from; i < len(p.Objects); i++ {
		o := p.Objects[i]
		if o.done {
			continue
		}
		o.done = true
		if p.l.Descend != nil && !p.l.Descend(o) {
			continue
		}
		for _, n := range o.File.Needed {
			got, tried, err := p.mapName(n, o)
			if got == nil {
				out = append(out, Miss{Soname: n, For: o, Tried: tried, Err: err})
			}
			if errors.Is(err, elfx.ErrBudget) {
				return out
			}
		}
	}
	return out
}

// mapName maps one name for a caller, as _dl_map_object of glibc.
func (p *Process) mapName(name string, caller *Object) (*Object, []fact.LoadTry, error) {
	if o := p.Find(name); o != nil {
		return o, nil, nil
	}
	if len(p.Objects) >= maxObjects {
		return nil, nil, fmt.Errorf("more than %d libraries: %w", maxObjects, elfx.ErrBudget)
	}
	var tried []fact.LoadTry
	h, err := p.find(name, caller, &tried)
	if err != nil || h == nil {
		return nil, tried, err
	}
	real := p.l.Real(h.path)
	for _, o := range p.Objects {
		if o.Real == real { // the same file under another name
			o.names = append(o.names, name)
			return o, tried, nil
		}
	}
	o := &Object{Path: h.path, Real: real, Via: h.via, ViaDir: h.dir, Tried: tried, By: caller, File: h.f, names: []string{name}}
	p.Objects = append(p.Objects, o)
	return o, tried, nil
}

func (p *Process) find(name string, caller *Object, tried *[]fact.LoadTry) (*hit, error) {
	l := p.l
	if strings.Contains(name, "/") {
		full, ok := l.dir(name, originOf(caller))
		if !ok {
			return nil, nil
		}
		f, goOn, err := l.try(full, ViaPath, tried)
		if err != nil || goOn {
			return nil, err
		}
		return &hit{full, ViaPath, "", f}, nil
	}
	// A file with DT_RUNPATH uses no DT_RPATH at all, not even that of others.
	if caller == nil || caller.File.RunPath == nil {
		sawMain := false
		for o := caller; o != nil; o = o.By {
			sawMain = sawMain || o == p.Main
			if h, err := l.search(o.File.RPath, originOf(o), ViaRPath, name, tried); h != nil || err != nil {
				return h, err
			}
		}
		if !sawMain && p.Main != nil {
			if h, err := l.search(p.Main.File.RPath, originOf(p.Main), ViaRPath, name, tried); h != nil || err != nil {
				return h, err
			}
		}
	}
	if h, err := l.search(p.env, originOf(p.Main), ViaEnv, name, tried); h != nil || err != nil {
		return h, err
	}
	noDef := false
	if caller != nil {
		noDef = caller.File.NoDef
		if h, err := l.search(caller.File.RunPath, originOf(caller), ViaRunPath, name, tried); h != nil || err != nil {
			return h, err
		}
	}
	if l.cache != nil {
		if c, ok := l.cache.Lookup(name, l.machine, l.class64, l.Levels); ok && !(noDef && slices.Contains(l.defaults, path.Dir(c))) {
			f, goOn, err := l.try(c, ViaCache, tried)
			if err != nil {
				return nil, err
			}
			if !goOn {
				return &hit{c, ViaCache, path.Dir(c), f}, nil
			}
		}
	}
	if noDef {
		return nil, nil
	}
	return l.search(l.defaults, "", ViaDefault, name, tried)
}

// originOf returns $ORIGIN of an object: the folder by which it was opened,
// whose own links are not resolved (but those of the program are).
func originOf(o *Object) string {
	if o == nil {
		return ""
	}
	return path.Dir(o.Path)
}

// Closure lists what the NEEDED entries of a library and of all that it pulls
// in miss: what "ldd file | grep 'not found'" would show. Nothing else is
// taken to be loaded.
func (l *Loader) Closure(file string) ([]Miss, error) {
	p := &Process{l: l, env: l.EnvPath}
	o, miss := p.Open(file, nil)
	if o == nil {
		if len(miss) > 0 && miss[0].Err != nil {
			return nil, miss[0].Err
		}
		return nil, fmt.Errorf("%s cannot be opened", file)
	}
	return miss, nil
}
