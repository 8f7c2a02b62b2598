package node

import (
	"bytes"
	"io"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

func (r *reader) host() {
	h := &r.b.Host
	h.OS = r.osName()
	h.Name = r.hostName()
	h.Distro = r.distro()
	if r.m.OS != nil {
		if rel, arch, err := r.m.OS.Uname(); err == nil {
			at := fact.Command("uname -rm", rel+" "+arch)
			if rel != "" {
				h.Kernel = fact.Of(rel, at)
			}
			if arch != "" {
				h.Arch = fact.Of(arch, at)
			}
		}
	}
	if !h.Kernel.Looked() {
		const p = "/proc/sys/kernel/osrelease"
		if s, err := r.text(p); err == nil && s != "" {
			h.Kernel = fact.Of(s, fact.File(p))
		}
	}
	if !h.Arch.Looked() {
		for _, a := range [][2]string{{"/lib64/ld-linux-x86-64.so.2", "x86_64"}, {"/lib/ld-linux-aarch64.so.1", "aarch64"}} {
			if r.exists(a[0]) {
				h.Arch = fact.Of(a[1], fact.File(a[0]))
				break
			}
		}
	}
	h.Glibc = r.glibc()
	h.Board = r.board()
	h.L4T = r.l4t()
}

func (r *reader) osName() fact.Val[string] {
	for _, p := range []string{"/proc/version", "/etc/os-release", "/usr/lib/os-release", "/proc/driver/nvidia"} {
		if r.exists(p) {
			return fact.Of("linux", fact.File(p))
		}
	}
	if r.m.OS != nil {
		return fact.Of(runtime.GOOS, fact.Evidence{})
	}
	return fact.Val[string]{}
}

func (r *reader) hostName() fact.Val[string] {
	const p = "/proc/sys/kernel/hostname"
	if s, err := r.text(p); err == nil && s != "" && s != "(none)" {
		return fact.Of(s, fact.FileExcerpt(p, s))
	}
	const q = "/etc/hostname"
	if s, err := r.text(q); err == nil && s != "" {
		return fact.Of(firstLine(s), fact.FileExcerpt(q, firstLine(s)))
	}
	return fact.Val[string]{}
}

func (r *reader) distro() fact.Val[string] {
	var last error
	for _, p := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		s, err := r.text(p)
		if err != nil {
			last = err
			continue
		}
		for i, l := range strings.Split(s, "\n") {
			if v, ok := strings.CutPrefix(l, "PRETTY_NAME="); ok {
				return fact.Of(strings.Trim(strings.TrimSpace(v), `"'`), fact.FileLine(p, i+1, fact.Clip(l, 200)))
			}
		}
	}
	if last == nil || missing(last) {
		return fact.Val[string]{}
	}
	return fact.Fail[string](last.Error(), fact.File("/etc/os-release"))
}

// board is the model of a Jetson; other boards with a device tree do not matter here.
func (r *reader) board() fact.Val[string] {
	for _, p := range []string{"/proc/device-tree/model", "/sys/firmware/devicetree/base/model"} {
		s, err := r.text(p)
		if err != nil {
			continue
		}
		s = printable(s)
		if strings.Contains(s, "Jetson") || strings.Contains(s, "Tegra") || strings.HasPrefix(strings.ToLower(s), "nvidia") {
			return fact.Of(s, fact.FileExcerpt(p, s))
		}
	}
	return fact.None[string](fact.File("/proc/device-tree/model"))
}

var l4tLine = lazyre.New(`^# R(\d+) \(release\), REVISION: ([\d.]+)`)

// l4t is the release of Jetson Linux, such as 35.4.1.
func (r *reader) l4t() fact.Val[string] {
	const p = "/etc/nv_tegra_release"
	s, err := r.text(p)
	if err != nil {
		return orAbsent[string](err, fact.File(p))
	}
	l := firstLine(s)
	if m := l4tLine.FindStringSubmatch(l); m != nil {
		return fact.Of(m[1]+"."+m[2], fact.FileLine(p, 1, l))
	}
	return fact.Fail[string]("no release in its first line", fact.FileLine(p, 1, l))
}

var libcPaths = []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
	"/usr/lib64/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/aarch64-linux-gnu/libc.so.6", "/usr/lib/libc.so.6", "/lib/libc.so.6"}

// glibc finds the version of the C library: in the name behind the link of
// older ones, else in the banner that the library prints when it is run. It is
// not run; of the file the last third is searched first, where the banner lies.
func (r *reader) glibc() fact.Val[string] {
	for _, p := range libcPaths {
		if !r.exists(p) {
			continue
		}
		file := path.Base(r.link(p))
		if rest, ok := strings.CutPrefix(file, "libc-"); ok {
			if v, ok := strings.CutSuffix(rest, ".so"); ok && majorMinor(v) == v && v != "" {
				return fact.Of(v, fact.FileExcerpt(p, "-> "+r.link(p)))
			}
		}
		v, banner, err := r.banner(p)
		if err != nil {
			return fact.Fail[string](err.Error(), fact.File(p))
		}
		if v != "" {
			return fact.Of(v, fact.FileExcerpt(p, banner))
		}
	}
	for _, p := range []string{"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"} {
		if r.exists(p) {
			return fact.None[string](fact.FileExcerpt(p, "musl"))
		}
	}
	return fact.Val[string]{}
}

const (
	maxLibc   = 16 << 20
	maxBanner = 200 // bytes of the banner's first line
)

func (r *reader) banner(p string) (version, line string, err error) {
	f, err := r.m.FS.Open(source.Rel(p))
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	at, ok := f.(io.ReaderAt)
	if !ok {
		b, err := io.ReadAll(io.LimitReader(f, maxLibc))
		version, line = findBanner(b)
		return version, line, err
	}
	st, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	const chunk, lap = 128 << 10, 512
	size := min(st.Size(), maxLibc)
	buf := make([]byte, chunk+lap)
	scan := func(from, to int64) (string, string) {
		for off := from; off < to; off += chunk {
			n, _ := at.ReadAt(buf, off)
			if v, l := findBanner(buf[:n]); v != "" {
				return v, l
			}
			if n == 0 {
				break
			}
		}
		return "", ""
	}
	start := size * 2 / 3
	if version, line = scan(start, size); version == "" {
		version, line = scan(0, start)
	}
	return version, line, nil
}

// findBanner reads "GNU C Library (Debian GLIBC 2.36-9) stable release version
// 2.36." out of the library's data.
func findBanner(b []byte) (version, line string) {
	i := bytes.Index(b, []byte("GNU C Library "))
	if i < 0 {
		return "", ""
	}
	b = b[i:]
	b = b[:min(len(b), maxBanner)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	const word = " version "
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(word))
		if i < 0 {
			return "", ""
		}
		from += i + len(word)
		if v := majorMinor(string(b[from:])); v != "" {
			return v, firstLine(string(b[:from+len(v)]))
		}
	}
}

// majorMinor returns the two numbers with which a text starts, 2.36 of "2.36.", "" for none.
func majorMinor(s string) string {
	digits := func(from int) int {
		i := from
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			i++
		}
		return i
	}
	dot := digits(0)
	if dot == 0 || dot == len(s) || s[dot] != '.' {
		return ""
	}
	end := digits(dot + 1)
	if end == dot+1 {
		return ""
	}
	return s[:end]
}

// number reads a decimal number, -1 when it is none.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return -1
	}
	return n
}
