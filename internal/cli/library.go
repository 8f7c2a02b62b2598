package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/install"
	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/ldso"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

// library is what one shared library says about itself, and what this machine
// would give it.
type library struct {
	Schema  string   `json:"schema"`
	Tool    string   `json:"tool"`
	Path    string   `json:"path"`
	Soname  string   `json:"soname,omitempty"`
	Machine string   `json:"machine"`
	NCCL    string   `json:"nccl,omitempty"` // release, of libnccl
	CUDA    string   `json:"cuda,omitempty"` // for which that was built
	Needed  []string `json:"needed"`
	RPath   []string `json:"rpath,omitempty"`
	RunPath []string `json:"runpath,omitempty"`
	Missing []string `json:"missing"` // of what it needs, found nowhere on this machine
	Reason  string   `json:"reason,omitempty"`
}

// checkLibrary shows a shared library. Without the program that loads it there
// is no verdict about a job, but what it needs and lacks can be told.
func (a *app) checkLibrary(name, explain string) error {
	abs, err := filepath.Abs(name)
	if err != nil {
		return usageError{err}
	}
	m, err := run.NewMachine()
	if err != nil {
		return err
	}
	f, c, err := elfx.OpenFS(m.FS, source.Rel(abs), &elfx.Meter{MaxBytes: 8 << 20})
	if err != nil {
		return usagef("%s: %v", name, err)
	}
	defer c.Close()
	l := library{Schema: "ncclinic.library/v1", Tool: Version, Path: name, Soname: f.Soname, Machine: elfx.MachineName(f.Machine),
		Needed: append([]string{}, f.Needed...), RPath: f.RPath, RunPath: f.RunPath, Missing: []string{}}
	if strings.HasPrefix(filepath.Base(name), "libnccl") || strings.HasPrefix(f.Soname, "libnccl.") {
		l.NCCL, l.CUDA, _ = install.NCCLText(f)
	}
	ld, err := ldso.New(m, "", abs, &elfx.Meter{MaxFiles: 400, MaxBytes: 16 << 20})
	if err != nil {
		return usagef("%s: %v", name, err)
	}
	defer ld.Close()
	if explain != "" {
		return a.explainOf(ld, abs, explain)
	}
	miss, err := ld.Closure(abs)
	if err != nil {
		l.Reason = err.Error()
	}
	for _, x := range miss {
		l.Missing = append(l.Missing, x.Soname)
	}
	if a.out.format == "json" {
		err = a.writeJSON(l)
	} else {
		err = a.textLibrary(l)
	}
	if err == nil && len(l.Missing) > 0 {
		err = exitError(exitFound)
	}
	return err
}

func (a *app) textLibrary(l library) error {
	st, err := a.style()
	if err != nil {
		return err
	}
	rows := [][]string{{l.Path, strings.TrimSpace(l.Soname + " " + l.Machine)}}
	add := func(k string, v ...string) {
		if len(v) > 0 && v[0] != "" {
			rows = append(rows, []string{"  " + k, strings.Join(v, ", ")})
		}
	}
	if l.NCCL != "" {
		add("NCCL", l.NCCL+"+cuda"+l.CUDA)
	}
	add("NEEDED", l.Needed...)
	add("DT_RPATH", l.RPath...)
	add("DT_RUNPATH", l.RunPath...)
	add(a.tr("not found here", "本机找不到"), l.Missing...)
	add(a.tr("not examined", "未检查"), l.Reason)
	return render.Table(a.Out, rows, st)
}

// explainOf shows where the loader looks for a name that a library needs, or
// that it would open itself.
func (a *app) explainOf(ld *ldso.Loader, lib, soname string) error {
	p, _ := ld.Start(false)
	o, _ := p.Open(lib, nil)
	if o == nil {
		return usagef("%s: %s", lib, a.tr("cannot be opened as a library", "无法作为动态库打开"))
	}
	l := fact.Load{Soname: soname, For: lib, Chain: []string{lib}}
	at := fact.FileExcerpt(lib, "NEEDED "+soname)
	for _, x := range p.Objects {
		for _, n := range x.File.Needed {
			if n == soname && l.For == lib {
				l.For, l.Chain = x.Path, chainOf(x)
			}
		}
	}
	found := p.Find(soname)
	if found == nil {
		var err error
		found, l.Tried, err = p.Resolve(soname, o)
		if err != nil && !errors.Is(err, elfx.ErrBudget) {
			l.Path = fact.Fail[string](err.Error(), at)
		}
	}
	switch {
	case found != nil:
		l.Path, l.Via, l.ViaDir, l.Tried = fact.Of(found.Path, at), found.Via, found.ViaDir, found.Tried
		if found.Real != found.Path {
			l.Real = found.Real
		}
	case !l.Path.Looked():
		l.Path = fact.None[string](at)
	}
	return a.explainLoad(&fact.Bundle{Loads: []fact.Load{l}}, soname)
}

func chainOf(o *ldso.Object) []string {
	var out []string
	for ; o != nil && len(out) < 50; o = o.By {
		out = append([]string{o.Path}, out...)
	}
	return out
}
