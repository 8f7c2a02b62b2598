// Package ldso says which file glibc's dynamic loader would take for a library
// name, without running anything. It follows elf/dl-load.c and elf/dl-deps.c
// of glibc: LD_PRELOAD, names that are already loaded, DT_RPATH of the file
// and of all that caused it to load and of the program, LD_LIBRARY_PATH,
// DT_RUNPATH of the file alone, /etc/ld.so.cache, the default directories.
//
// Not modelled, because nothing of PyTorch's world uses them: LD_AUDIT,
// namespaces, prelink, and the legacy hardware subdirectories (tls, haswell)
// that glibc dropped in 2.37.
package ldso

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// How a library was found.
const (
	ViaPreload = "preload"         // LD_PRELOAD
	ViaRPath   = "DT_RPATH"        // of the file that needs it, of one that loaded that, or of the program
	ViaEnv     = "LD_LIBRARY_PATH" //
	ViaRunPath = "DT_RUNPATH"      // of the file that needs it
	ViaCache   = "ld.so.cache"     //
	ViaDefault = "default"         // a default directory
	ViaLoaded  = "already-loaded"  // something loaded it before under this name
	ViaPath    = "path"            // named with its path
)

// Results of a LoadTry.
const (
	Found      = "found"
	NotThere   = "absent"
	OtherArch  = "other-arch"
	Unreadable = "unreadable"
)

// Limits of one simulation.
const (
	maxObjects = 1000
	maxTries   = 48 // kept for one library
	maxDirs    = 256
	maxDepth   = 200  // of links and folders in one path
	maxSteps   = 4000 // of one resolution
)

// Loader holds what the searches of one machine and program have in common.
// Close it when done. It is not safe for concurrent use.
type Loader struct {
	fs      fs.FS
	meter   *elfx.Meter
	machine uint16
	class64 bool

	Exe     string   // the program, links resolved; "" when not known
	Levels  []string // glibc-hwcaps subdirectories that the processor can use, best first
	EnvPath []string // LD_LIBRARY_PATH as it is split; "" is the working directory
	Preload []string // LD_PRELOAD
	Dir     string   // working directory, for relative entries; "" when not known
	// Descend tells whether the dependencies of an object are loaded too; nil:
	// always. Debian's torch pulls in 286 libraries, of which few matter.
	Descend func(*Object) bool

	cache    *Cache
	cacheErr error
	prefix   string // of a loader outside of the system, such as Gentoo Prefix in EESSI
	defaults []string
	lib      string // $LIB

	files map[string]*opened
	lists map[[2]string]string // entries of search lists by $ORIGIN, as directories
	dirs  map[string]error     // nil: a folder
	links map[string]string
	steps int
	close []io.Closer
}

type opened struct {
	f   *elfx.File
	err error
}

// New prepares a loader for the program exe (absolute, links resolved), whose
// architecture decides. When exe is "" or no ELF file, like is a library whose
// architecture is taken instead.
func New(m *source.Machine, exe, like string, meter *elfx.Meter) (*Loader, error) {
	l := &Loader{
		fs: m.FS, meter: meter,
		files: make(map[string]*opened), lists: make(map[[2]string]string), dirs: make(map[string]error), links: make(map[string]string),
	}
	var f *elfx.File
	var err error
	if exe != "" {
		l.Exe = l.Real(exe)
		if f, err = l.open(l.Exe); err != nil {
			l.Exe = ""
		}
	}
	if f == nil {
		if like == "" {
			return nil, fmt.Errorf("the interpreter cannot be read as an ELF file: %w", err)
		}
		if f, err = l.open(like); err != nil {
			return nil, err
		}
	}
	l.machine, l.class64 = f.Machine, f.Class64
	if strings.Contains(path.Base(f.Interp), "musl") {
		l.Close()
		return nil, errors.New("the interpreter uses musl's loader, which searches in another way")
	}
	l.prefix = interpPrefix(f.Interp)
	l.EnvPath = splitPath(m.Getenv("LD_LIBRARY_PATH"))
	l.Preload = strings.FieldsFunc(m.Getenv("LD_PRELOAD"), func(r rune) bool { return r == ' ' || r == ':' || r == '\t' || r == '\n' })
	if pwd := m.Getenv("PWD"); path.IsAbs(pwd) {
		l.Dir = pwd
	}
	if l.machine == elfx.X86_64 {
		l.Levels = x86Levels(m.FS)
	}
	l.setDefaults()
	l.readCache()
	return l, nil
}

// Close closes all files.
func (l *Loader) Close() {
	for _, c := range l.close {
		c.Close()
	}
	l.close = nil
}

// Machine returns the architecture of the program as uname -m names it.
func (l *Loader) Machine() string { return elfx.MachineName(l.machine) }

// CacheErr says why /etc/ld.so.cache could not be used; nil also when there is none.
func (l *Loader) CacheErr() error { return l.cacheErr }

// interpPrefix returns the folder that holds the whole system of a loader:
// /cvmfs/…/compat/linux/x86_64 of …/lib64/ld-linux-x86-64.so.2.
func interpPrefix(interp string) string {
	dir := path.Dir(interp)
	for _, s := range []string{"/usr/lib64", "/usr/lib", "/lib64", "/lib"} {
		if p, ok := strings.CutSuffix(dir, s); ok {
			return p
		}
	}
	return ""
}

// splitPath splits LD_LIBRARY_PATH as the loader does: at colons and
// semicolons; an empty entry is the working directory, an empty list is none.
func splitPath(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.Split(strings.ReplaceAll(s, ";", ":"), ":")
	return out[:min(len(out), maxDirs)]
}

func (l *Loader) setDefaults() {
	triplet := map[uint16]string{elfx.X86_64: "x86_64-linux-gnu", elfx.AArch64: "aarch64-linux-gnu", elfx.PPC64: "powerpc64le-linux-gnu"}[l.machine]
	if triplet != "" && l.prefix == "" && (l.isDir("/lib/"+triplet) || l.isDir("/usr/lib/"+triplet)) {
		l.lib = "lib/" + triplet
		l.defaults = []string{"/lib/" + triplet, "/usr/lib/" + triplet, "/lib", "/usr/lib"}
		return
	}
	l.lib = "lib"
	if l.class64 {
		l.lib = "lib64"
		l.defaults = []string{l.prefix + "/lib64", l.prefix + "/usr/lib64"}
	}
	if !l.class64 || l.machine == elfx.AArch64 || !l.isDir(l.prefix+"/lib64") || l.prefix != "" {
		l.defaults = append(l.defaults, l.prefix+"/lib", l.prefix+"/usr/lib")
	}
}

func (l *Loader) readCache() {
	p := l.prefix + "/etc/ld.so.cache"
	h, err := l.fs.Open(source.Rel(l.Real(p)))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.cacheErr = err
		}
		return
	}
	defer h.Close()
	size := int64(0)
	if st, err := h.Stat(); err == nil {
		size = st.Size()
	}
	b, err := source.ReadUpTo(h, size, maxCacheSize+1)
	if err == nil {
		err = l.meter.Take(len(b))
	}
	if err == nil {
		l.cache, err = ParseCache(b)
	}
	if err != nil {
		l.cacheErr = fmt.Errorf("%s: %w", p, err)
	}
}

// x86Levels returns the x86-64 micro-architecture levels that /proc/cpuinfo allows.
func x86Levels(fsys fs.FS) []string {
	h, err := fsys.Open("proc/cpuinfo")
	if err != nil {
		return nil
	}
	defer h.Close()
	b, _ := source.ReadUpTo(h, 0, 16<<10)
	_, line, ok := strings.Cut(string(b), "\nflags")
	if !ok {
		return nil
	}
	line, _, _ = strings.Cut(line, "\n")
	have := make(map[string]bool)
	for _, w := range strings.Fields(line) {
		have[w] = true
	}
	var out []string
	for _, lv := range []struct{ name, needs string }{
		{"x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"},
		{"x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"},
		{"x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"},
	} {
		for _, n := range strings.Fields(lv.needs) {
			if !have[n] {
				slices.Reverse(out)
				return out
			}
		}
		out = append(out, lv.name)
	}
	slices.Reverse(out)
	return out
}

// open opens an absolute path as an ELF file, once.
func (l *Loader) open(p string) (*elfx.File, error) {
	if o, ok := l.files[p]; ok {
		return o.f, o.err
	}
	// Links are followed here and not by the file system, so that an absolute
	// link inside of an image stays inside.
	f, c, err := elfx.OpenFS(l.fs, source.Rel(l.Real(p)), l.meter)
	if c != nil {
		l.close = append(l.close, c)
	}
	l.files[p] = &opened{f, err}
	return f, err
}

func (l *Loader) isDir(p string) bool { return l.dirErr(p) == nil }

// dirErr says why a path is no folder that can be searched.
func (l *Loader) dirErr(p string) error {
	if err, seen := l.dirs[p]; seen {
		return err
	}
	st, err := fs.Stat(l.fs, source.Rel(l.Real(p)))
	if err == nil && !st.IsDir() || err != nil && (strings.Contains(err.Error(), "not a directory") || strings.Contains(err.Error(), "levels of symbolic links")) {
		err = fs.ErrNotExist // a file, a file on the way to it, or links in a circle: no library is in it
	}
	l.dirs[p] = err
	return err
}

// Real resolves the links of an absolute path. Parts that cannot be read as
// links stay as they are.
func (l *Loader) Real(p string) string {
	l.steps = 0
	return l.real(path.Clean(p), 0)
}

func (l *Loader) real(p string, depth int) string {
	// Links can form loops, and loops within loops.
	if l.steps++; p == "/" || p == "." || depth > maxDepth || l.steps > maxSteps {
		return p
	}
	if r, ok := l.links[p]; ok {
		return r
	}
	dir := l.real(path.Dir(p), depth+1)
	here := under(dir, path.Base(p))
	out := here
	if t, err := fs.ReadLink(l.fs, source.Rel(here)); err == nil && t != "" && len(t) < 4096 {
		if !path.IsAbs(t) {
			t = dir + "/" + t
		}
		out = l.real(l.physical(t, depth+1), depth+1)
	}
	l.links[p] = out
	return out
}

// physical removes ".." as the kernel does: after links were followed.
func (l *Loader) physical(p string, depth int) string {
	if !strings.Contains(p, "..") {
		return path.Clean(p)
	}
	cur := "/"
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "", ".":
		case "..":
			cur = path.Dir(l.real(cur, depth+1))
		default:
			cur = under(cur, part)
		}
	}
	return cur
}

// expand replaces $ORIGIN, $LIB and $PLATFORM. origin is "" when not known: then
// an entry with $ORIGIN is no directory.
func (l *Loader) expand(s, origin string) (string, bool) {
	if !strings.Contains(s, "$") {
		return s, true
	}
	for _, v := range []struct{ name, val string }{
		{"ORIGIN", origin}, {"LIB", l.lib}, {"PLATFORM", elfx.MachineName(l.machine)},
	} {
		if v.val == "" && strings.Contains(s, v.name) {
			return "", false
		}
		s = strings.ReplaceAll(s, "${"+v.name+"}", v.val)
		s = replaceVar(s, "$"+v.name, v.val)
	}
	return s, true
}

// replaceVar replaces $NAME where NAME ends there: $LIBX is no $LIB.
func replaceVar(s, name, val string) string {
	for from := 0; ; {
		i := strings.Index(s[from:], name)
		if i < 0 {
			return s
		}
		i += from
		end := i + len(name)
		if end < len(s) && (s[end] == '_' || '0' <= s[end] && s[end] <= '9' || 'a' <= s[end]|0x20 && s[end]|0x20 <= 'z') {
			from = end
			continue
		}
		s = s[:i] + val + s[end:]
		from = i + len(val)
	}
}

// dir makes an entry of a search list an absolute directory.
func (l *Loader) dir(entry, origin string) (string, bool) {
	k := [2]string{entry, origin}
	if d, ok := l.lists[k]; ok {
		return d, d != ""
	}
	d, ok := l.makeDir(entry, origin)
	l.lists[k] = d
	return d, ok
}

func (l *Loader) makeDir(entry, origin string) (string, bool) {
	d, ok := l.expand(entry, origin)
	if !ok {
		return "", false
	}
	if !path.IsAbs(d) {
		if l.Dir == "" {
			return "", false
		}
		d = l.Dir + "/" + d
	}
	l.steps = 0
	return l.physical(d, 0), true
}

// under is path.Join of a clean path and a plain name.
func under(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

// hit is a file that a search took.
type hit struct {
	path, via, dir string
	f              *elfx.File
}

// search walks one list of directories. A nil hit without error means: go on with the next list.
func (l *Loader) search(entries []string, origin, via, name string, tried *[]fact.LoadTry) (*hit, error) {
	for _, e := range entries[:min(len(entries), maxDirs)] {
		d, ok := l.dir(e, origin)
		if !ok {
			continue
		}
		if err := l.dirErr(d); errors.Is(err, fs.ErrNotExist) {
			note(tried, under(d, name), via, NotThere)
			continue
		} else if err != nil { // the loader goes on too; what is in it is not known here
			note(tried, under(d, name), via, Unreadable)
			continue
		}
		subs := make([]string, 0, 4)
		if len(l.Levels) > 0 && l.isDir(d+"/glibc-hwcaps") {
			for _, lv := range l.Levels {
				if s := d + "/glibc-hwcaps/" + lv; l.isDir(s) {
					subs = append(subs, s)
				}
			}
		}
		for _, s := range append(subs, d) {
			p := under(s, name)
			f, goOn, err := l.try(p, via, tried)
			if err != nil {
				return nil, err
			}
			if !goOn {
				return &hit{p, via, e, f}, nil
			}
		}
	}
	return nil, nil
}

// try opens one candidate. goOn says that the search continues; an error ends
// it, as the loader ends it for a file that is no ELF file.
func (l *Loader) try(p, via string, tried *[]fact.LoadTry) (f *elfx.File, goOn bool, err error) {
	f, err = l.open(p)
	switch {
	case err == nil && (f.Machine != l.machine || f.Class64 != l.class64):
		note(tried, p, via, OtherArch)
		return nil, true, nil
	case err == nil:
		note(tried, p, via, Found)
		return f, false, nil
	case errors.Is(err, elfx.ErrBudget):
		return nil, false, err
	case errors.Is(err, fs.ErrNotExist):
		note(tried, p, via, NotThere)
		return nil, true, nil
	case errors.Is(err, fs.ErrPermission):
		note(tried, p, via, Unreadable)
		return nil, true, nil
	}
	note(tried, p, via, Unreadable)
	return nil, false, fmt.Errorf("%s: %w", p, err)
}

func note(tried *[]fact.LoadTry, p, via, result string) {
	if len(*tried) < maxTries {
		*tried = append(*tried, fact.LoadTry{Path: p, Via: via, Result: result})
	}
}
