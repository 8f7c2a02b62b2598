// Package install reads, without running it, which Python a job would start,
// the search path that this Python would build, every torch on it, and what
// the winning torch was built from.
package install

import (
	"context"
	"path"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Options say what to look at.
type Options struct {
	// Python is the interpreter: a path, a name on PATH, the folder of an
	// environment, or a folder of packages. Empty: what "python" would run.
	Python string
	// By says who named Python, one of the fact.By… constants. Empty: a flag.
	By string
	// Cwd is the working directory, absolute. Empty: PWD of the machine, else /.
	Cwd string
	// NoLoads leaves out what the dynamic loader would do: in a package alone most
	// libraries are missing by design.
	NoLoads bool
	// Also are names of libraries of which the loader's search is told in any case.
	Also []string
	// Streamed says that reading far into a long file is dear, because it is compressed.
	Streamed bool
}

// collector is the state of one Collect.
type collector struct {
	ctx context.Context
	m   *source.Machine
	o   Options
	b   *fact.Bundle
	py  *fact.Python
	t   *tree
	cwd string
	// heads are the first bytes of scripts and programs, by resolved path.
	heads map[string]string
	// mapped are torches that import hooks of editable installs find.
	mapped []fact.Torch
}

// Collect fills Python, Torch, Dists, Loads and Problems of b from m.FS and
// m.Env; nothing is run. What cannot be read is recorded and the rest is still
// collected. The error says that the interpreter of o does not exist, or that
// ctx ended.
func Collect(ctx context.Context, m *source.Machine, o Options, b *fact.Bundle) error {
	c := &collector{ctx: ctx, m: m, o: o, b: b, py: &b.Python, t: newTree(m.FS), heads: map[string]string{}}
	switch {
	case path.IsAbs(o.Cwd):
		c.cwd = path.Clean(o.Cwd)
	case path.IsAbs(m.Env["PWD"]):
		c.cwd = path.Clean(m.Env["PWD"])
	default:
		c.cwd = "/"
	}
	if dir := c.siteFolder(); dir != "" {
		c.bareSite(dir)
	} else {
		it, err := c.choose()
		if err != nil {
			return err
		}
		if it.exe == "" {
			return ctx.Err()
		}
		lay := c.layout(it)
		if !lay.ver.known() {
			return ctx.Err() // Python.Version says why
		}
		c.searchPath(lay)
		c.pip()
	}
	c.distributions()
	c.findTorch()
	c.othersTorch()
	if err := ctx.Err(); err != nil {
		// A search that was cut short found nothing yet, which must not read as
		// "no torch": without an interpreter nobody judges it.
		if len(b.Torch) == 0 {
			c.py.Exe = fact.Fail[string]("the time limit was hit before its search path was read", c.py.Exe.At)
		}
		return err
	}
	if t := b.Winner(); t != nil && t.Form == "" {
		collectBuild(ctx, m, t, o.Streamed)
	}
	if !o.NoLoads {
		collectLoads(ctx, m, b, o.Also)
	}
	return ctx.Err()
}

// pip tells whether the interpreter has pip: uv makes environments without, and
// so does venv --without-pip.
func (c *collector) pip() {
	for _, p := range c.py.Path {
		if file := path.Join(p.Dir, "pip", "__init__.py"); p.Exists && c.t.exists(file) {
			c.py.Pip = fact.Of(true, fact.File(file))
			return
		}
	}
	c.py.Pip = fact.Of(false, fact.FileExcerpt(c.py.Exe.Or(""), "no module pip on its search path"))
}

// siteFolder returns Options.Python when it is a folder of packages and no
// environment: an unpacked wheel, or what pip install --target wrote.
func (c *collector) siteFolder() string {
	if c.o.Python == "" {
		return ""
	}
	dir := c.abs(c.o.Python)
	if !c.t.isDir(dir) {
		return ""
	}
	for _, p := range []string{"pyvenv.cfg", "conda-meta", "bin/python", "bin/python3", "python3"} {
		if c.t.exists(path.Join(dir, p)) {
			return ""
		}
	}
	if c.t.isDir(path.Join(dir, "torch")) {
		return dir
	}
	return ""
}

// bareSite makes one folder the whole search path.
func (c *collector) bareSite(dir string) {
	at := fact.Evidence{Source: fact.SrcFlag, Path: "--python", Excerpt: dir}
	c.py.Exe = fact.None[string](at)
	c.py.By = fact.ByFlag
	c.py.Path = []fact.PathEntry{{Dir: dir, Kind: fact.PathSite, Via: "--python", Exists: true}}
}
