package install

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/ldso"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// Limits of the simulation of one import.
const (
	loadFiles  = 120
	loadBytes  = 5 << 20
	maxMissing = 32
	maxNCCLRo  = 4 << 20
)

// loads is the simulation of "import torch" by the dynamic loader.
type loads struct {
	ctx   context.Context
	m     *source.Machine
	b     *fact.Bundle
	t     *fact.Torch
	tr    *tree
	l     *ldso.Loader
	own   *ownerIndex
	pre   preload
	ext   string // torch._C
	cause map[*ldso.Object]string
}

// collectLoads fills Loads, Extensions and Node.LibCUDA for the torch that
// wins: it maps the libraries in the order in which "import torch" does, with
// the rules of glibc and those of torch/__init__.py.
//
// also names libraries that are described even when all is well with them.
func collectLoads(ctx context.Context, m *source.Machine, b *fact.Bundle, also []string) {
	t := b.Winner()
	if t == nil {
		return
	}
	s := &loads{ctx: ctx, m: m, b: b, t: t, tr: newTree(m.FS), cause: make(map[*ldso.Object]string)}
	names := s.tr.list(t.Dir).sorted(func(n string) bool {
		return strings.HasPrefix(n, "_C.") && strings.HasSuffix(n, ".so") && !strings.HasSuffix(n, "-darwin.so") // a build for macOS is no ELF file
	})
	if len(names) == 0 {
		return // a folder of sources, or a torch without its libraries: others say so
	}
	s.ext = path.Join(t.Dir, names[0])
	if v, ok := b.Python.Version.Get(); ok { // of several, the one that this Python imports
		tag := "cpython-" + strings.Replace(firstTwo(v), ".", "", 1) + "-"
		for _, n := range names {
			if strings.Contains(n, tag) {
				s.ext = path.Join(t.Dir, n)
			}
		}
	}
	meter := &elfx.Meter{MaxFiles: loadFiles, MaxBytes: loadBytes}
	l, err := ldso.New(m, b.Python.Real.Or(b.Python.Exe.Or("")), s.ext, meter)
	if err != nil {
		b.AddProblem("dynamic loader", err.Error())
		return
	}
	defer l.Close()
	if err := l.CacheErr(); err != nil {
		b.AddProblem("ld.so.cache", err.Error())
	}
	if mach, ok := t.Machine.Get(); ok && mach != l.Machine() {
		return // built for another architecture: nothing of it can be loaded
	}
	l.Descend = worthIt
	s.l = l
	s.own = &ownerIndex{m: m, tr: s.tr, dists: b.Dists, texts: make(map[string]string), left: 2 << 20}
	src, _, _ := s.tr.read(path.Join(t.Dir, "__init__.py"), maxInit)
	s.pre = parsePreload(string(src))

	p, miss := s.importTorch(false)
	if ctx.Err() != nil {
		return
	}
	for _, name := range p.Ignored {
		b.AddProblem("LD_PRELOAD="+name, "the loader cannot load it and goes on without it")
	}
	s.record(p, miss)
	s.symbols(p)
	if len(l.EnvPath) > 0 || len(l.Preload) > 0 {
		s.shadows()
	}
	s.libcuda(p)
	s.nvml(p)
	for _, name := range also {
		s.ask(p, name)
	}
	if ctx.Err() == nil {
		s.extensions(p)
	}
}

func firstTwo(v string) string {
	p := strings.SplitN(v, ".", 3)
	return strings.Join(p[:min(2, len(p))], ".")
}

// worthIt says whether the dependencies of a library are followed: not those
// of the system's own libraries, which the system keeps together.
func worthIt(o *ldso.Object) bool {
	if o.Via != ldso.ViaCache && o.Via != ldso.ViaDefault {
		return true
	}
	return ours(path.Base(o.Path))
}

// ours reports whether a library belongs to torch, CUDA or ROCm.
func ours(name string) bool {
	return interesting(name) || torchLib(name)
}

// torchLib reports whether a library's name begins as those of torch and Python do.
func torchLib(name string) bool {
	rest, ok := strings.CutPrefix(name, "lib")
	return ok && (strings.HasPrefix(rest, "torch") || strings.HasPrefix(rest, "c10") || strings.HasPrefix(rest, "shm") || strings.HasPrefix(rest, "python"))
}

// importTorch maps what "import torch" maps. With clean, LD_LIBRARY_PATH and
// LD_PRELOAD are taken as unset.
func (s *loads) importTorch(clean bool) (*ldso.Process, []ldso.Miss) {
	// What the interpreter itself misses is no question of torch.
	p, _ := s.l.Start(clean)
	var miss []ldso.Miss
	deps := path.Join(s.t.Dir, "lib", "libtorch_global_deps.so")
	if lookLib(s.tr, deps) {
		mark := p.Mark()
		_, bad := p.Open(deps, p.Main)
		if len(bad) == 0 {
			if s.gateOpen(p) {
				s.preload(p, s.pre.eager)
			}
		} else if s.knows(bad) {
			p.Undo(mark)
			s.preload(p, s.pre.libs)
			_, bad = p.Open(deps, p.Main)
		}
		miss = append(miss, bad...)
	}
	_, bad := p.Open(s.ext, p.Main)
	return p, append(miss, bad...)
}

// gateOpen reports whether the condition of the eager part holds.
func (s *loads) gateOpen(p *ldso.Process) bool {
	if len(s.pre.eager) == 0 {
		return false
	}
	return s.pre.gate == "" || slices.ContainsFunc(p.Objects, func(o *ldso.Object) bool {
		return strings.Contains(o.Path, s.pre.gate) || strings.Contains(o.Real, s.pre.gate)
	})
}

// knows reports whether torch tries to help itself with the library that the
// loader names first.
func (s *loads) knows(miss []ldso.Miss) bool {
	for _, l := range s.pre.libs {
		name, _, _ := strings.Cut(l.glob, ".")
		if strings.Contains(miss[0].Soname, name) {
			return true
		}
	}
	return false
}

// preload loads libraries as torch/__init__.py does.
func (s *loads) preload(p *ldso.Process, libs []preloadLib) {
	major, _, _ := strings.Cut(s.t.CUDA.Or(""), ".")
	for _, l := range libs {
		file, entry := s.pre.find(s.ctx, s.tr, s.b.Python.Path, major, l)
		if file == "" {
			if !l.optional {
				return // ValueError, and torch gives up
			}
			continue
		}
		mark := p.Mark()
		_, miss := p.Open(file, p.Main)
		if len(miss) > 0 {
			p.Undo(mark) // ctypes raises OSError
			if len(s.pre.eager) > 0 {
				return
			}
			continue
		}
		for _, o := range p.Objects[mark:] {
			if o.Path == file {
				s.cause[o] = entry
			}
		}
	}
}

// FromCUDA reports whether a library belongs to CUDA, NCCL or the driver, by its name.
func FromCUDA(soname string) bool { return interesting(soname) }

// interesting reports whether a library has a Load of its own even when all is well.
func interesting(name string) bool {
	stem, _, ok := strings.Cut(name, ".so")
	stem, lib := strings.CutPrefix(stem, "lib")
	if !ok || !lib {
		return false
	}
	switch stem {
	case "nccl", "rccl", "cuda", "cudart", "cublas", "cublasLt", "cudnn", "cufft", "cufftw", "curand", "cusolver", "cusolverMg", "cusparse", "cusparseLt",
		"cupti", "cufile", "cudss", "nvJitLink", "nvrtc", "nvrtc-builtins", "nvToolsExt", "nvshmem_host", "nvidia-ml":
		return true
	}
	return strings.HasPrefix(stem, "cudnn_") // its parts: cudnn_ops, cudnn_cnn …
}

// record writes a Load for each library of interest and for each that is missing.
func (s *loads) record(p *ldso.Process, miss []ldso.Miss) {
	type need struct {
		name string
		by   *ldso.Object
	}
	var needs []need
	seen := make(map[string]bool)
	for _, o := range p.Objects {
		for _, n := range o.File.Needed {
			if !seen[n] && interesting(n) && worthIt(o) {
				seen[n] = true
				needs = append(needs, need{n, o})
			}
		}
	}
	// NCCL first: it is what people came for.
	slices.SortStableFunc(needs, func(a, b need) int { return loadRank(a.name) - loadRank(b.name) })
	for _, n := range needs {
		if o := p.Find(n.name); o != nil {
			s.b.Loads = append(s.b.Loads, s.load(n.name, n.by, o))
		}
	}
	// What torch loads by itself counts even when nothing names it, such as libnvrtc.
	for _, o := range p.Objects {
		if n := path.Base(o.Path); s.cause[o] != "" && !seen[n] && !seen[o.File.Soname] && interesting(n) {
			l := s.load(cmp.Or(o.File.Soname, n), o, o)
			l.For = path.Join(s.t.Dir, "__init__.py")
			l.Path.At = fact.FileExcerpt(l.For, "ctypes.CDLL "+n)
			s.b.Loads = append(s.b.Loads, l)
		}
	}
	done := make(map[string]bool)
	for _, x := range miss {
		if done[x.Soname] {
			continue
		}
		done[x.Soname] = true
		if strings.Contains(x.Soname, "/") { // a library of torch itself
			if x.Err != nil {
				s.b.AddProblem(x.Soname, x.Err.Error())
			}
			continue
		}
		l := fact.Load{Soname: x.Soname, Tried: x.Tried}
		if x.For != nil {
			l.For = x.For.Path
		}
		at := fact.FileExcerpt(l.For, "NEEDED "+x.Soname)
		switch {
		case x.Err != nil:
			l.Path = fact.Fail[string](x.Err.Error(), at)
		case p.Find(x.Soname) != nil:
			continue // loaded by something later
		case s.b.Target.Kind != "" && barredTry(x.Tried) != "": // the job's user may be another
			l.Path = fact.Fail[string](barredTry(x.Tried)+": cannot be read", at)
		default:
			l.Path = fact.None[string](at)
		}
		s.b.Loads = append(s.b.Loads, l)
	}
	slices.SortStableFunc(s.b.Loads, func(a, b fact.Load) int { return loadRank(a.Soname) - loadRank(b.Soname) })
}

// barredTry names the first place of a search that could not be looked at.
func barredTry(tried []fact.LoadTry) string {
	for _, t := range tried {
		if t.Result == ldso.Unreadable {
			return t.Path
		}
	}
	return ""
}

// ask describes the search for a library that somebody asks about, with the files that led to it.
func (s *loads) ask(p *ldso.Process, name string) {
	l := s.b.LoadOf(name)
	if l == nil {
		var found *ldso.Object
		by := p.Main
		for _, o := range p.Objects {
			if slices.Contains(o.File.Needed, name) {
				by = o
				break
			}
		}
		if by == nil {
			return
		}
		if found = p.Find(name); found != nil {
			s.b.Loads = append(s.b.Loads, s.load(name, by, found))
		} else {
			o, tried, err := p.Resolve(name, by)
			x := fact.Load{Soname: name, For: by.Path, Tried: tried}
			at := fact.FileExcerpt(by.Path, "dlopen "+name)
			switch {
			case o != nil:
				x = s.load(name, by, o)
			case err != nil:
				x.Path = fact.Fail[string](err.Error(), at)
			default:
				x.Path = fact.None[string](at)
			}
			s.b.Loads = append(s.b.Loads, x)
		}
		l = &s.b.Loads[len(s.b.Loads)-1]
	}
	for _, o := range p.Objects {
		if o.Path != l.For {
			continue
		}
		for ; o != nil && len(l.Chain) < 50; o = o.By {
			l.Chain = append(l.Chain, o.Path)
		}
		slices.Reverse(l.Chain)
		return
	}
}

func loadRank(soname string) int {
	if strings.HasPrefix(soname, "libnccl") || strings.HasPrefix(soname, "librccl") {
		return 0
	}
	return 1
}

// load describes the object that answers to a name.
func (s *loads) load(name string, by, o *ldso.Object) fact.Load {
	l := fact.Load{
		Soname: name, For: by.Path, Via: o.Via, ViaDir: o.ViaDir, Tried: o.Tried,
		Path: fact.Of(o.Path, fact.FileExcerpt(by.Path, "NEEDED "+name)),
	}
	if o.Real != o.Path {
		l.Real = o.Real
	}
	if entry, ok := s.cause[o]; ok {
		l.Via, l.ViaDir, l.Tried = ldso.ViaLoaded, entry, nil
	} else if o.Via == ldso.ViaPath {
		l.Via, l.ViaDir = ldso.ViaLoaded, ""
	}
	names, d := s.own.owners(o.Path)
	if len(names) > 0 {
		l.Owner = names[0]
	}
	if len(names) > 1 {
		l.Owners = names
	}
	l.Version, l.CUDA = s.version(name, o, names, d)
	return l
}

var (
	soVersion   = lazyre.New(`\.so\.(\d+\.\d+(?:\.\d+)*)$`)
	ncclVersion = lazyre.New(`NCCL version (\d+\.\d+\.\d+)(?:\+cuda| compiled with CUDA )(\d+\.\d+)`)
)

// version tells the version of a library by what is in it: NCCL's own text,
// else the name of the file; the distribution only when it alone claims the file.
func (s *loads) version(name string, o *ldso.Object, owners []string, d fact.Dist) (version, cuda fact.Val[string]) {
	switch {
	case strings.HasPrefix(name, "libnccl.so"):
		if v, c, err := ncclText(o.File); err == nil && v != "" {
			at := fact.FileExcerpt(o.Path, "NCCL version "+v+"+cuda"+c)
			return fact.Of(v, at), fact.Of(c, at)
		} else if err != nil && soVersion.FindString(o.Real) == "" {
			return fact.Fail[string](why(o.Path, err), fact.File(o.Path)), cuda
		}
	case strings.HasPrefix(name, "libnvJitLink.so"):
		if v, sym := jitLinkVersion(o.File); v != "" {
			version = fact.Of(v, fact.FileExcerpt(o.Path, sym))
			return version, version
		}
	}
	if m := soVersion.FindStringSubmatch(o.Real); m != nil {
		return fact.Of(m[1], fact.File(o.Real)), cuda
	}
	if len(owners) == 1 && strings.HasPrefix(owners[0], "nvidia-") {
		return fact.Of(d.Version, fact.File(d.Dir)), cuda
	}
	return version, cuda
}

// NCCLText returns the release of a libnccl and the CUDA that it was built for, by its own text.
func NCCLText(f *elfx.File) (version, cuda string, err error) { return ncclText(f) }

// ncclText finds the text that NCCL prints, in its read-only data of about 200 KB.
func ncclText(f *elfx.File) (version, cuda string, err error) {
	sec, ok, err := f.Section(".rodata")
	if err != nil || !ok {
		return "", "", err
	}
	err = f.Scan(sec, maxNCCLRo, 64, func(b []byte) bool {
		if m := ncclVersion.FindSubmatch(b); m != nil {
			version, cuda = string(m[1]), string(m[2])
			return false
		}
		return true
	})
	return version, cuda, err
}

// jitLinkVersion finds the newest of the symbols that each CUDA release adds.
func jitLinkVersion(f *elfx.File) (version, symbol string) {
	for major := 12; major <= 14; major++ {
		for minor := range 12 {
			sym := fmt.Sprintf("__nvJitLinkComplete_%d_%d", major, minor)
			_, ok, err := f.Lookup(sym)
			if err != nil {
				return version, symbol
			}
			if ok {
				version, symbol = fmt.Sprintf("%d.%d", major, minor), sym
			}
		}
	}
	return version, symbol
}

// needers are the libraries whose needs are checked symbol by symbol: those
// for which a mix of versions is known to fail.
func needer(name string) bool {
	for _, p := range []string{"libtorch_cuda.so", "libtorch_cuda_cpp.so", "libtorch_hip.so", "libcusparse.so", "libcusolver.so", "libcublas.so"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// symbols fills Missing: what libraries need of others and those do not export.
func (s *loads) symbols(p *ldso.Process) {
	missing := make(map[string][]string)
	for _, o := range p.Objects {
		if s.ctx.Err() != nil {
			return
		}
		if !needer(path.Base(o.Path)) {
			continue
		}
		err := o.File.Undefined(func(sym elfx.Symbol) bool {
			file := sym.File
			if file == "" {
				if strings.HasPrefix(sym.Name, "nccl") || strings.HasPrefix(sym.Name, "pnccl") {
					file = ncclSoname
				} else {
					return true
				}
			}
			if sym.Weak || !interesting(file) || len(missing[file]) >= maxMissing || slices.Contains(missing[file], sym.Name) {
				return true
			}
			if lib := p.Find(file); lib != nil && !s.exported(p, lib, sym.Name) {
				missing[file] = append(missing[file], sym.Name)
			}
			return true
		})
		if err != nil {
			s.b.AddProblem(o.Path, "its symbols: "+err.Error())
		}
	}
	s.versionsMissing(p, missing)
	for i := range s.b.Loads {
		l := &s.b.Loads[i]
		l.Missing = missing[l.Soname]
		slices.Sort(l.Missing)
		if len(l.Missing) > 0 && strings.HasPrefix(l.Soname, "libnccl") {
			l.MissingSince = tables.NCCLSince(l.Missing)
		}
	}
}

const ncclSoname = "libnccl.so.2"

// exported reports whether a library, or one that is preloaded, defines a
// symbol. What cannot be examined counts as exported.
func (s *loads) exported(p *ldso.Process, lib *ldso.Object, name string) bool {
	for _, o := range p.Objects {
		if o != lib && o.Via != ldso.ViaPreload {
			continue
		}
		if _, ok, err := o.File.Lookup(name); ok || err != nil {
			return true
		}
	}
	return false
}

// versionsMissing looks for versions of the C and C++ libraries that torch's
// own libraries need and those of the system do not define (GLIBC_2.28, GLIBCXX_3.4.29).
func (s *loads) versionsMissing(p *ldso.Process, missing map[string][]string) {
	defs := make(map[string][]string)
	for _, o := range p.Objects {
		if o.Via == ldso.ViaCache || o.Via == ldso.ViaDefault || !ours(path.Base(o.Path)) && o.Path != s.ext {
			continue
		}
		needs, err := o.File.Needs()
		if err != nil {
			continue
		}
		for _, n := range needs {
			switch n.File {
			case "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1":
			default:
				continue
			}
			lib := p.Find(n.File)
			if lib == nil {
				continue
			}
			if _, ok := defs[n.File]; !ok {
				defs[n.File], _ = lib.File.Defines()
			}
			if len(defs[n.File]) == 0 {
				continue
			}
			for _, v := range n.Versions {
				if slices.Contains(defs[n.File], v) || slices.Contains(missing[n.File], v) || len(missing[n.File]) >= maxMissing {
					continue
				}
				if len(missing[n.File]) == 0 {
					s.b.Loads = append(s.b.Loads, s.load(n.File, o, lib))
				}
				missing[n.File] = append(missing[n.File], v)
			}
		}
	}
}

// shadows compares with the import as it would be without the variables.
func (s *loads) shadows() {
	p, _ := s.importTorch(true)
	for i := range s.b.Loads {
		l := &s.b.Loads[i]
		o := p.Find(l.Soname)
		if o == nil || !l.Path.IsKnown() || o.Path == l.Path.V || o.Real == l.Real || o.Real == l.Path.V {
			continue
		}
		l.Shadows = o.Path
		names, d := s.own.owners(o.Path)
		v, _ := s.version(l.Soname, o, names, d)
		l.ShadowsVer = v.Or("")
	}
}

// libcuda says which user-mode driver library the process would load when it
// first uses a GPU: libcudart and NCCL open it by its name.
func (s *loads) libcuda(p *ldso.Process) {
	const name = "libcuda.so.1"
	if s.b.Node.LibCUDA.Looked() || s.t.Accel() == fact.AccelCPU || s.t.Accel() == fact.AccelROCm {
		return
	}
	caller := p.Main
	for _, o := range p.Objects {
		if strings.HasPrefix(path.Base(o.Path), "libcudart.so") {
			caller = o
		}
	}
	o, tried, err := p.Resolve(name, caller)
	by := s.ext
	if caller != nil {
		by = caller.Path
	}
	at := fact.FileExcerpt(by, "dlopen "+name)
	switch {
	case err != nil:
		s.b.Node.LibCUDA = fact.Fail[fact.LibCUDA](err.Error(), at)
		return
	case o == nil:
		if t := barredTry(tried); t != "" {
			s.b.Node.LibCUDA = fact.Fail[fact.LibCUDA](t+": cannot be read", at)
			return
		}
		s.b.Node.LibCUDA = fact.None[fact.LibCUDA](at)
		return
	}
	lc := fact.LibCUDA{Path: o.Path, Via: o.Via}
	if o.Real != o.Path {
		lc.Real = o.Real
	}
	if m := soVersion.FindStringSubmatch(o.Real); m != nil {
		lc.Version = m[1]
	}
	for _, f := range []string{o.Path, o.Real} {
		lc.Stub = lc.Stub || path.Base(path.Dir(f)) == "stubs"
		lc.Compat = lc.Compat || path.Base(path.Dir(f)) == "compat" || strings.Contains(f, "/compat/")
	}
	s.b.Node.LibCUDA = fact.Of(lc, fact.FileExcerpt(o.Path, "dlopen "+name))
	if s.b.LoadOf(name) == nil {
		l := fact.Load{Soname: name, For: by, Path: fact.Of(o.Path, at), Via: o.Via, ViaDir: o.ViaDir, Tried: o.Tried, Real: lc.Real}
		if lc.Version != "" {
			l.Version = fact.Of(lc.Version, fact.File(o.Real))
		}
		s.b.Loads = append(s.b.Loads, l)
	}
}
