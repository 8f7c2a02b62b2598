package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// findTorch fills Torch in the order in which "import torch" looks: ordinary
// packages and modules along the search path, then folders without
// __init__.py, then what import hooks map.
func (c *collector) findTorch() {
	var namespaces []fact.Torch
	seen := map[string]bool{}
	for i, e := range c.py.Path {
		if !e.Exists || c.ctx.Err() != nil {
			continue
		}
		p, form := c.torchIn(e)
		if p == "" {
			continue
		}
		if real := c.t.at(p).real; seen[real] {
			continue
		} else {
			seen[real] = true
		}
		t := fact.Torch{Dir: p, Entry: i, Kind: e.Kind, Via: e.Via, Names: e.Module, Form: form}
		if form == fact.FormNamespace {
			namespaces = append(namespaces, t)
			continue
		}
		c.b.Torch = append(c.b.Torch, t)
	}
	c.b.Torch = append(c.b.Torch, namespaces...)
	for _, f := range c.mapped {
		if !seen[f.Dir] && len(c.b.Torch) < maxDists {
			seen[f.Dir] = true
			c.b.Torch = append(c.b.Torch, f)
		}
	}
	for i := range c.b.Torch {
		c.describe(&c.b.Torch[i], i == 0)
	}
	c.local()
}

// torchIn returns what the entry has of torch: a package, else a module, else
// a bare folder, in the order of importlib's FileFinder.
func (c *collector) torchIn(e fact.PathEntry) (p, form string) {
	if e.Kind == fact.PathStdlib || !c.t.isDir(e.Dir) {
		return "", ""
	}
	list := c.t.list(e.Dir)
	if list.err != nil && len(list.names) == 0 {
		return "", "" // Python cannot list it either, and finds nothing in it
	}
	dir := path.Join(e.Dir, "torch")
	_, there := list.names["torch"]
	isDir := (there || list.cut) && c.t.isDir(dir)
	if isDir && c.hasInit(dir) {
		return dir, ""
	}
	var modules []string
	for name := range list.names {
		if isTorchModule(name) && c.t.isFile(path.Join(e.Dir, name)) {
			modules = append(modules, name)
		}
	}
	if len(modules) > 0 {
		best := modules[0]
		for _, m := range modules[1:] {
			if suffixOrder(m) < suffixOrder(best) || suffixOrder(m) == suffixOrder(best) && m < best {
				best = m
			}
		}
		return path.Join(e.Dir, best), fact.FormModule
	}
	if isDir {
		return dir, fact.FormNamespace
	}
	return "", ""
}

// hasInit reports whether a folder is an ordinary package. One that this user
// may not enter is none for Python either, which is worth telling.
func (c *collector) hasInit(dir string) bool {
	if n := c.t.at(path.Join(dir, "__init__.py")); n.err != nil && !gone(n.err) {
		c.b.AddProblem(n.real, short(n.err).Error())
	}
	return c.t.isFile(path.Join(dir, "__init__.py")) || c.t.isFile(path.Join(dir, "__init__.pyc"))
}

// isTorchModule reports whether a file name is importable as torch: torch.py,
// torch.pyc, torch.so, torch.abi3.so, torch.cpython-311-x86_64-linux-gnu.so.
func isTorchModule(name string) bool {
	rest, ok := strings.CutPrefix(name, "torch.")
	if !ok {
		return false
	}
	switch rest {
	case "py", "pyc", "so", "abi3.so":
		return true
	}
	return strings.HasPrefix(rest, "cpython-") && strings.HasSuffix(rest, ".so")
}

// suffixOrder orders modules as FileFinder's suffixes: extensions, source, byte code.
func suffixOrder(name string) int {
	switch {
	case strings.HasSuffix(name, ".so"):
		return 0
	case strings.HasSuffix(name, ".py"):
		return 1
	}
	return 2
}

// describe fills version, distribution, origin and damage of a torch.
func (c *collector) describe(t *fact.Torch, wins bool) {
	if t.Form != "" {
		return
	}
	f := c.versionPy(path.Join(t.Dir, "version.py"))
	t.Version, t.CUDA, t.Git, t.HIP, t.XPU = f.version, f.cuda, f.git, f.hip, f.xpu

	dists := c.torchDists(t)
	d, ok := pickDist(dists, t.Version.Or(""))
	if ok {
		t.Dist = fact.Of(d, fact.File(d.Dir))
	} else {
		t.Dist = fact.None[fact.Dist](fact.File(path.Dir(t.Dir)))
	}
	c.damage(t, dists, d, ok)
	c.origin(t, d, ok)
	if wins && ok {
		c.checkRecord(t, d)
	}
}

func (c *collector) versionPy(file string) versionFacts {
	n := c.t.at(file)
	if n.err == nil && n.info.Mode().IsRegular() && n.info.Size() > maxVersionPy {
		return failVersion("version.py is far too large to be one", fact.File(file))
	}
	data, whole, err := c.t.read(file, maxVersionPy)
	if err != nil {
		return failVersion(why("version.py", err), fact.File(file))
	}
	if !whole {
		return failVersion("version.py is far too large to be one", fact.File(file))
	}
	return parseVersionPy(file, data)
}

// torchDists returns the torch distributions that may own a package: those
// beside it, and for an editable install those that point to it.
func (c *collector) torchDists(t *fact.Torch) []fact.Dist {
	var beside, linked []fact.Dist
	for _, d := range c.b.Dists {
		if d.Name != "torch" || d.Entry < 0 {
			continue
		}
		switch {
		case path.Dir(d.Dir) == path.Dir(t.Dir):
			beside = append(beside, d)
		case d.URL == "file://"+path.Dir(t.Dir):
			linked = append(linked, d)
		}
	}
	if len(beside) > 0 {
		return beside
	}
	return linked
}

// pickDist chooses the distribution whose version is that of version.py, else the last.
func pickDist(dists []fact.Dist, version string) (fact.Dist, bool) {
	for _, d := range dists {
		if sameRelease(d.Version, version) {
			return d, true
		}
	}
	if len(dists) == 0 {
		return fact.Dist{}, false
	}
	return dists[len(dists)-1], true
}

// damage looks for what an interrupted or doubled installation leaves.
func (c *collector) damage(t *fact.Torch, dists []fact.Dist, d fact.Dist, ok bool) {
	site := path.Dir(t.Dir)
	for _, name := range c.t.list(site).sorted(isLeftover) {
		p := path.Join(site, name)
		t.Damage = append(t.Damage, fact.Damage{Kind: fact.DamageLeftover, What: p, At: fact.File(p)})
	}
	if len(dists) > 1 {
		var names []string
		for _, d := range dists {
			names = append(names, path.Base(d.Dir))
		}
		t.Damage = append(t.Damage, fact.Damage{Kind: fact.DamageTwoDists, What: strings.Join(names, ", "), At: fact.File(dists[0].Dir)})
	}
	if v, known := t.Version.Get(); known && ok && d.Version != "" && !sameRelease(v, d.Version) {
		t.Damage = append(t.Damage, fact.Damage{Kind: fact.DamageVersionMismatch,
			What: "version.py says " + v + ", " + path.Base(d.Dir) + " says " + d.Version, At: t.Version.At})
	}
	if n := c.t.at(path.Join(t.Dir, "version.py")); n.err != nil && gone(n.err) {
		p := path.Join(t.Dir, "version.py")
		t.Damage = append(t.Damage, fact.Damage{Kind: fact.DamageMissingFile, What: p, At: fact.File(t.Dir)})
	}
}

// isLeftover recognises the names that pip gives to what it is about to
// remove: ~orch, ~-rch, ~orch-2.1.0.dist-info; older releases began with "-".
func isLeftover(name string) bool {
	n := 0
	for n < len(name) && strings.IndexByte("~-.=%0123456789", name[n]) >= 0 {
		n++
	}
	if n == 0 || n >= len("torch") || name[0] != '~' && name[0] != '-' {
		return false
	}
	stem := name[n:]
	if i := strings.IndexAny(stem, "-."); i >= 0 {
		stem = stem[:i]
	}
	return strings.EqualFold(stem, "torch"[n:])
}

// sameRelease reports whether two version strings can be those of one build:
// the public parts are equal, and so are the local parts where both have one.
// PyPI's CUDA wheels say 2.5.1 in METADATA and 2.5.1+cu124 in version.py.
func sameRelease(a, b string) bool {
	ap, al, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(a, "v")), "+")
	bp, bl, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(b, "v")), "+")
	if publicKey(ap) != publicKey(bp) {
		return false
	}
	sep := strings.NewReplacer("-", ".", "_", ".")
	return al == "" || bl == "" || sep.Replace(al) == sep.Replace(bl)
}

// publicKey undoes the spellings of one version that METADATA normalises:
// 2.1.0-rc1 and 2.1.0rc1, 2.1.0.post1 and 2.1.0-1, 2.1 and 2.1.0.
func publicKey(s string) string {
	s = strings.NewReplacer("-", "", "_", "", "alpha", "a", "beta", "b").Replace(s)
	for strings.HasSuffix(s, ".0") {
		s = strings.TrimSuffix(s, ".0")
	}
	return s
}

// local records a torch in the working directory, which is not on the path.
func (c *collector) local() {
	for _, e := range c.py.Path {
		if e.Dir == c.cwd {
			return
		}
	}
	if dir := path.Join(c.cwd, "torch"); c.t.isDir(dir) && c.hasInit(dir) && !c.isFound(dir) {
		c.py.LocalTorch = append(c.py.LocalTorch, dir)
	}
	if file := path.Join(c.cwd, "torch.py"); c.t.isFile(file) {
		c.py.LocalTorch = append(c.py.LocalTorch, file)
	}
}

func (c *collector) isFound(dir string) bool {
	for _, t := range c.b.Torch {
		if t.Dir == dir {
			return true
		}
	}
	return false
}

// editableFinder reads where the import hook of an editable install finds
// torch. setuptools writes MAPPING: dict[str, str] = {'torch': '/src/torch', …}.
func (c *collector) editableFinder(f finder) {
	file := path.Join(f.site, f.module+".py")
	data, _, err := c.t.read(file, 256<<10)
	if err != nil {
		c.b.AddProblem(file, err.Error())
		return
	}
	if dir, ok := finderMapping(string(data), "torch"); ok && c.t.isDir(dir) {
		c.mapped = append(c.mapped, fact.Torch{Dir: path.Clean(dir), Entry: -1, Kind: fact.PathFinder, Via: mask.Text(f.via)})
	}
}

func finderMapping(text, pkg string) (string, bool) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "MAPPING") {
			continue
		}
		_, rest, ok := strings.Cut(line, "'"+pkg+"': '")
		if !ok {
			return "", false
		}
		dir, _, ok := strings.Cut(rest, "'")
		return dir, ok && path.IsAbs(dir) && !strings.Contains(dir, `\`)
	}
	return "", false
}
