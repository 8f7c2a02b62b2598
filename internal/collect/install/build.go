package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Limits of the look at what is compiled into a torch: libraries of up to
// 1.5 GB, of which one to three megabytes are read.
const (
	buildFiles  = 20
	buildBytes  = 8 << 20
	maxRodata   = 8 << 20
	maxDynStr   = 8 << 20
	maxFatBins  = 8
	maxArchText = 512
	maxLinkedIn = 96 << 20 // of a compressed library, for the text of an NCCL that is linked in
	maxStaticRo = 24 << 20 // of constants, for the same in a library that can be read at random
)

// Symbols that a build with a backend defines. The names of type information
// are fixed by the C++ ABI, whatever the release of torch or its compiler; the
// destructor is for builds without type information.
//
// Read from the wheels 2.1.2, 2.6.0 and 2.15.0 (x86_64), 2.15.0 (aarch64) and
// Debian's 1.13; 2026-11-30.
var (
	ncclSymbols  = backendSymbols("16ProcessGroupNCCL")
	glooSymbols  = backendSymbols("16ProcessGroupGloo")
	mpiSymbols   = backendSymbols("15ProcessGroupMPI")
	xcclSymbols  = backendSymbols("16ProcessGroupXCCL")
	storeSymbols = []string{"_ZTIN4c10d5StoreE", "_ZTVN4c10d8TCPStoreE"}
)

func backendSymbols(mangled string) []string {
	return []string{"_ZTIN4c10d" + mangled + "E", "_ZTVN4c10d" + mangled + "E", "_ZN4c10d" + mangled + "D1Ev"}
}

// pyInit is the method that torch.distributed.is_available asks for.
const pyInit = "_c10d_init\x00"

// archText is what torch.cuda.get_arch_list splits: "sm_80 sm_90 compute_90",
// for ROCm "gfx90a gfx942", as one string of its own.
var archText = lazyre.New(`^((?:(?:sm|compute)_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,4}(?:[:+a-z-]*)?)(?: (?:(?:sm|compute)_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,4}(?:[:+a-z-]*)?))*)\x00`)

// build is the look at one torch.
type build struct {
	m     *source.Machine
	t     *fact.Torch
	tr    *tree
	meter *elfx.Meter
	dirs  []string
	libs  map[string]*buildLib
	close []func()
	// streamed: the libraries are compressed, so that what stands at the end of a
	// long one is dear. libtorch_python, which binds everything, is asked first.
	streamed bool
}

// buildLib is one library of torch, opened when something of it is asked for.
type buildLib struct {
	path   string
	there  bool // a file, or something that cannot be read
	load   func() (*elfx.File, error)
	loaded bool
	f      *elfx.File
	err    error
}

// elf returns the opened file, nil when it is absent or unreadable.
func (l *buildLib) elf() *elfx.File {
	if l.there && !l.loaded {
		l.loaded = true
		l.f, l.err = l.load()
	}
	return l.f
}

// fail returns why the file cannot be examined; nil when it is absent.
func (l *buildLib) fail() error {
	l.elf()
	return l.err
}

func (l *buildLib) absent() bool { return !l.there }

// collectBuild fills what is compiled into a torch: NCCL, Gloo, MPI, XCCL,
// Distributed, NCCLStatic, Archs, Machine and PyTag. A torch without any
// library, such as a source folder or half a package, keeps the fields as they are,
// but that NCCL could not be looked for.
func collectBuild(ctx context.Context, m *source.Machine, t *fact.Torch, streamed bool) {
	b := &build{
		m: m, streamed: streamed, t: t, tr: newTree(m.FS), libs: make(map[string]*buildLib),
		meter: &elfx.Meter{MaxFiles: buildFiles, MaxBytes: buildBytes},
		// conda-forge keeps the libraries in the prefix and links them into the package.
		dirs: []string{path.Join(t.Dir, "lib"), path.Join(t.Dir, "../../..")},
	}
	defer func() {
		for _, c := range b.close {
			c()
		}
	}()
	ext := b.extension()
	cpu, py := b.lib("libtorch_cpu.so"), b.lib("libtorch_python.so")
	if ext == nil && cpu.absent() && py.absent() {
		if !b.elsewhere() {
			t.NCCL = fact.Fail[bool](NoLibrary, fact.File(t.Dir))
		}
		return
	}
	b.machine(ext, py, cpu)
	if ctx.Err() != nil {
		return
	}
	b.backends(cpu, py)
	if ctx.Err() != nil {
		return
	}
	b.python(py, cpu)
}

// NoLibrary is the reason why nothing can be said of a torch that has no library.
const NoLibrary = "there is no library of torch in it"

// elsewhere reports a build for another operating system, or one whose folder
// could not be listed.
func (b *build) elsewhere() bool {
	other := func(n string) bool {
		return strings.HasSuffix(n, ".pyd") || strings.HasSuffix(n, ".dll") || strings.HasSuffix(n, ".dylib") || strings.HasPrefix(n, "_C.")
	}
	for _, dir := range []string{b.t.Dir, b.dirs[0]} {
		if l := b.tr.list(dir); l.cut || l.err != nil && !gone(l.err) || len(l.sorted(other)) > 0 {
			return true
		}
	}
	return false
}

// open prepares to open a file once.
func (b *build) open(p string) *buildLib {
	if l, ok := b.libs[p]; ok {
		return l
	}
	l := &buildLib{path: p}
	b.libs[p] = l
	n := b.tr.at(p)
	if n.err != nil && gone(n.err) {
		return l
	}
	l.there = true
	l.load = func() (*elfx.File, error) {
		if n.err != nil {
			return nil, short(n.err)
		}
		f, c, err := elfx.OpenFS(b.m.FS, source.Rel(n.real), b.meter)
		if err != nil {
			if err = short(err); n.info.Size() == 0 {
				err = errors.New("an empty file")
			}
			return nil, err
		}
		b.close = append(b.close, func() { c.Close() })
		return f, nil
	}
	return l
}

// lib opens a library of torch.
func (b *build) lib(name string) *buildLib {
	var l *buildLib
	for _, d := range b.dirs {
		if l = b.open(path.Join(d, name)); !l.absent() {
			return l
		}
	}
	return &buildLib{path: path.Join(b.dirs[0], name)}
}

// extension opens torch._C, whose name tells the Python it is for.
func (b *build) extension() *buildLib {
	names := b.tr.list(b.t.Dir).sorted(func(n string) bool {
		return strings.HasPrefix(n, "_C.") && strings.HasSuffix(n, ".so")
	})
	if len(names) == 0 {
		return nil
	}
	// _C.cpython-312-x86_64-linux-gnu.so; the first one, in an installation
	// mixed of several.
	p := path.Join(b.t.Dir, names[0])
	tag := strings.TrimSuffix(strings.TrimPrefix(names[0], "_C."), ".so")
	if w := strings.SplitN(tag, "-", 3); len(w) > 1 {
		tag = w[0] + "-" + w[1]
	}
	b.t.PyTag = fact.Of(tag, fact.File(p))
	return b.open(p)
}

func (b *build) machine(libs ...*buildLib) {
	var bad *buildLib
	for _, l := range libs {
		switch {
		case l == nil:
		case l.elf() != nil:
			b.t.Machine = fact.Of(elfx.MachineName(l.elf().Machine), fact.File(l.path))
			return
		case l.fail() != nil && bad == nil:
			bad = l
		}
	}
	if bad != nil {
		b.t.Machine = fact.Fail[string](why(bad.path, bad.fail()), fact.File(bad.path))
	}
}

// defines looks for one of the symbols in libraries. The error says that one
// of the libraries could not be examined.
func defines(symbols []string, libs ...*buildLib) (*buildLib, string, error) {
	var bad error
	for _, l := range libs {
		if err := l.fail(); err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", l.path, err))
		}
		if l.elf() == nil {
			continue
		}
		s, err := l.elf().HasAny(symbols...)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", l.path, err))
		}
		if s != "" {
			return l, s, nil
		}
	}
	return nil, "", bad
}

// backends looks at the libraries that hold the process groups.
func (b *build) backends(cpu, py *buildLib) {
	mono := b.lib("libtorch.so")
	gpu := []*buildLib{b.lib("libtorch_cuda.so"), b.lib("libtorch_cuda_cpp.so"), b.lib("libtorch_hip.so")}
	withPy := func(libs ...*buildLib) []*buildLib { return append(libs, py, mono) }

	b.t.NCCL = b.backend(ncclSymbols, "16ProcessGroupNCCL", py, withPy(gpu...)...)
	b.t.Gloo = b.backend(glooSymbols, "16ProcessGroupGloo", py, withPy(cpu)...)
	b.t.MPI = b.backend(mpiSymbols, "15ProcessGroupMPI", nil, withPy(cpu)...)
	b.t.XCCL = b.backend(xcclSymbols, "16ProcessGroupXCCL", nil, withPy(b.lib("libtorch_xpu.so"))...)
	switch {
	case !b.t.NCCL.Or(false):
	case b.streamed && b.t.NCCL.At.Path == py.path: // only a METADATA that asks for libnccl is as cheap
		for _, r := range b.t.Dist.V.Requires {
			if strings.HasPrefix(r, "nvidia-nccl-") {
				b.t.NCCLStatic = fact.Of(false, fact.FileExcerpt(path.Join(b.t.Dist.V.Dir, "METADATA"), "Requires-Dist: "+r))
			}
		}
		if !b.t.NCCLStatic.Looked() {
			b.linkedIn("libtorch_cuda_cpp.so", "libtorch_cuda.so")
		}
		if !b.t.NCCLStatic.Looked() { // of a layer only parts of a library are kept
			if at := b.staticVersion(gpu); at.Path != "" {
				b.t.NCCLStatic = fact.Of(true, at)
			}
		}
	default:
		b.static(append(gpu, py, mono))
	}
}

// backend decides on one backend. When the symbol tables have none of its
// symbols, the string table of libtorch_python, which binds the class to
// Python, is searched for its name too, before anything is said to be missing.
func (b *build) backend(symbols []string, mangled string, py *buildLib, libs ...*buildLib) fact.Val[bool] {
	if b.streamed {
		if v, ok := b.bound(mangled, py == nil || libs[0].absent()); ok {
			return v
		}
	}
	l, sym, err := defines(symbols, libs...)
	if l != nil {
		return fact.Of(true, fact.FileExcerpt(l.path, sym))
	}
	at := fact.FileExcerpt(libs[0].path, "no symbol of "+mangled[2:])
	if libs[0].absent() {
		at = fact.FileExcerpt(libs[0].path, "no such file")
	}
	if err != nil {
		return fact.Fail[bool](err.Error(), at)
	}
	if py == nil {
		return fact.Of(false, at)
	}
	if py.elf() == nil {
		return fact.Fail[bool]("there is no libtorch_python.so beside it", at)
	}
	s, err := py.elf().DynStr()
	if err == nil {
		var hit string
		if hit, err = py.elf().Contains(s, maxDynStr, mangled); hit != "" {
			return fact.Of(true, fact.FileExcerpt(py.path, mangled))
		}
	}
	if err != nil {
		return fact.Fail[bool](why(py.path, err), at)
	}
	if libs[0].absent() {
		at = fact.FileExcerpt(py.path, "no symbol of "+mangled[2:]+"; no "+path.Base(libs[0].path))
	}
	return fact.Of(false, at)
}

// linkedIn looks for NCCL's own text in the beginning of libraries that may have it linked in.
func (b *build) linkedIn(names ...string) {
	for _, name := range names {
		l := b.lib(name)
		n := b.tr.at(l.path)
		if l.absent() || n.err != nil {
			continue
		}
		f, err := b.m.FS.Open(source.Rel(n.real))
		if err != nil {
			continue
		}
		v, c := findNCCL(io.LimitReader(f, maxLinkedIn))
		f.Close()
		if v != "" {
			at := fact.FileExcerpt(l.path, "NCCL version "+v+"+cuda"+c)
			b.t.NCCLStatic, b.t.NCCLVersion = fact.Of(true, at), fact.Of(v, at)
			return
		}
	}
}

// findNCCL looks for the text that NCCL prints.
func findNCCL(r io.Reader) (version, cuda string) {
	const lap = 64
	lit := []byte("NCCL version ")
	buf := make([]byte, 0, 256<<10)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		for from := 0; ; {
			i := bytes.Index(buf[from:], lit)
			if i < 0 {
				break
			}
			i += from
			if m := ncclVersion.FindSubmatch(buf[i:min(len(buf), i+lap)]); m != nil {
				return string(m[1]), string(m[2])
			}
			from = i + len(lit)
		}
		if err != nil {
			return "", ""
		}
		if len(buf) > cap(buf)/2 {
			buf = append(buf[:0], buf[len(buf)-lap:]...)
		}
	}
}

// bound looks only at whether libtorch_python binds the class, which it does in
// every build that has it. A no is believed where sure says so: a CUDA build
// without NCCL is worth reading the library itself.
func (b *build) bound(mangled string, sure bool) (v fact.Val[bool], ok bool) {
	py := b.lib("libtorch_python.so")
	if py.elf() == nil {
		return v, false
	}
	s, err := py.elf().DynStr()
	if err != nil {
		return v, false
	}
	hit, err := py.elf().Contains(s, maxDynStr, mangled)
	switch {
	case err != nil:
		return v, false
	case hit != "":
		return fact.Of(true, fact.FileExcerpt(py.path, mangled)), true
	case !sure:
		return v, false
	}
	return fact.Of(false, fact.FileExcerpt(py.path, "no symbol of "+mangled[2:])), true
}

// static tells whether NCCL is linked into torch itself.
func (b *build) static(libs []*buildLib) {
	l, sym, err := defines([]string{"ncclCommInitRank", "ncclGetVersion"}, libs...)
	if l != nil {
		b.t.NCCLStatic = fact.Of(true, fact.FileExcerpt(l.path, sym))
		b.staticVersion(libs)
		return
	}
	for _, l := range libs {
		if l.elf() == nil {
			continue
		}
		for _, n := range l.elf().Needed {
			if strings.HasPrefix(n, "libnccl.so") || strings.HasPrefix(n, "librccl.so") {
				b.t.NCCLStatic = fact.Of(false, fact.FileExcerpt(l.path, "NEEDED "+n))
				return
			}
		}
	}
	at := fact.FileExcerpt(b.t.NCCL.At.Path, "NEEDED without libnccl")
	if err != nil {
		b.t.NCCLStatic = fact.Fail[bool](err.Error(), at)
		return
	}
	b.t.NCCLStatic = fact.Of(true, at)
	b.staticVersion(libs)
}

// staticVersion reads the text of an NCCL that is linked in where constants
// stand, and says where it is; without a path when there is none.
func (b *build) staticVersion(libs []*buildLib) fact.Evidence {
	for _, l := range libs {
		n := b.tr.at(l.path)
		if l.elf() == nil || n.err != nil {
			continue
		}
		sec, ok, err := l.elf().Section(".rodata")
		if err != nil || !ok {
			continue
		}
		f, err := b.m.FS.Open(source.Rel(n.real))
		if err != nil {
			continue
		}
		v, c := "", ""
		if r, ok := f.(io.ReaderAt); ok {
			v, c = findNCCL(io.NewSectionReader(r, sec.Off, min(sec.Size, maxStaticRo)))
		}
		f.Close()
		if v != "" {
			at := fact.FileExcerpt(l.path, "NCCL version "+v+"+cuda"+c)
			b.t.NCCLVersion = fact.Of(v, at)
			return at
		}
	}
	return fact.Evidence{}
}

// python reads the constants of libtorch_python: whether torch.distributed is
// there, and the architectures that torch.cuda.get_arch_list returns.
func (b *build) python(py, cpu *buildLib) {
	a := b.t.Accel()
	wantArchs := a != fact.AccelCPU && a != fact.AccelXPU
	dist, archs, err := false, "", error(nil)
	switch {
	case py.elf() != nil:
		dist, archs, err = constants(py.elf(), wantArchs)
	case py.fail() != nil:
		err = py.fail()
	default:
		return
	}
	switch {
	case dist:
		b.t.Distributed = fact.Of(true, fact.FileExcerpt(py.path, strings.TrimSuffix(pyInit, "\x00")))
	case err == nil:
		b.t.Distributed = fact.Of(false, fact.FileExcerpt(py.path, "no "+strings.TrimSuffix(pyInit, "\x00")))
	default:
		// Without section headers: the classes behind it say the same.
		if l, sym, _ := defines(storeSymbols, cpu); l != nil {
			b.t.Distributed = fact.Of(true, fact.FileExcerpt(l.path, sym))
		} else {
			b.t.Distributed = fact.Fail[bool](why(py.path, err), fact.File(py.path))
		}
	}
	switch {
	case !wantArchs:
	case archs != "":
		b.t.Archs = fact.Of(strings.Fields(archs), fact.FileExcerpt(py.path, archs))
	default:
		b.fatArchs()
	}
}

// constants scans the read-only data, about a megabyte.
func constants(f *elfx.File, wantArchs bool) (dist bool, archs string, err error) {
	s, ok, err := f.Section(".rodata")
	if err != nil {
		return false, "", err
	}
	if !ok {
		return false, "", errors.New("no section headers")
	}
	err = f.Scan(s, maxRodata, maxArchText, func(b []byte) bool {
		dist = dist || bytes.Contains(b, []byte(pyInit))
		// The pattern is slow; its literals are rare.
		if !wantArchs {
			return !dist
		}
		for _, lit := range []string{"sm_", "compute_", "gfx"} {
			for from := 0; ; {
				i := bytes.Index(b[from:], []byte(lit))
				if i < 0 {
					break
				}
				i += from
				from = i + len(lit)
				// A list may stand right behind constants that do not end with a zero
				// byte, as in 2.9 for x86_64; a single name there could be a part of any text.
				if m := archText.FindSubmatchIndex(b[i:min(len(b), i+maxArchText)]); m != nil && m[3]-m[2] > len(archs) {
					text := string(b[i+m[2] : i+m[3]])
					if i > 0 && b[i-1] == 0 || strings.Contains(text, " ") {
						archs = text
					}
				}
			}
		}
		// A single architecture may also be some other text: look for a longer one.
		return !dist || !strings.Contains(archs, " ")
	})
	return dist, archs, err
}

// fatArchs takes the architectures from the headers of the kernels themselves.
func (b *build) fatArchs() {
	for _, name := range []string{"libtorch_cuda.so", "libtorch_cuda_cu.so"} {
		l := b.lib(name)
		if l.elf() == nil {
			continue
		}
		at := fact.FileExcerpt(l.path, ".nv_fatbin")
		s, ok, err := l.elf().Section(".nv_fatbin")
		if err == nil && !ok {
			continue
		}
		var archs []string
		if err == nil {
			archs, err = l.elf().FatArchs(s, maxFatBins)
		}
		switch {
		case len(archs) > 0:
			at.Excerpt = ".nv_fatbin: " + strings.Join(archs, " ")
			b.t.Archs = fact.Of(archs, at)
		case err != nil:
			b.t.Archs = fact.Fail[[]string](why(l.path, err), at)
		}
		return
	}
}
