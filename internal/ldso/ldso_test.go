package ldso

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// tree writes libraries into a temporary folder. Paths and values may hold @ for that folder.
func tree(t *testing.T, libs map[string]elftest.Lib, links map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) string { return strings.ReplaceAll(s, "@", dir) }
	for name, l := range libs {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		l.RPath, l.RunPath, l.Interp = at(l.RPath), at(l.RunPath), at(l.Interp)
		if err := os.WriteFile(p, l.Bytes(), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range links {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at(to), p); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hostMachine(t *testing.T) uint16 {
	t.Helper()
	switch runtime.GOARCH {
	case "amd64":
		return elfx.X86_64
	case "arm64":
		return elfx.AArch64
	}
	testenv.Need(t, "x86_64 or aarch64", "run it there")
	return 0
}

func hostLoader(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	testenv.Need(t, "glibc's loader", "run on a glibc system")
	return ""
}

// real asks the real loader what it would load for a program or library.
func real(t *testing.T, file string, env []string) map[string]string {
	t.Helper()
	cmd := exec.Command(hostLoader(t), file)
	cmd.Env = append(env, "LD_TRACE_LOADED_OBJECTS=1") // what ldd does
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\s(\S+) => (not found|\S+)`).FindAllStringSubmatch(string(out), -1) {
		if m[2] == "not found" {
			m[2] = ""
		}
		got[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?m)^\s(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		if !strings.HasPrefix(filepath.Base(m[1]), "ld-linux") { // a preload
			got[m[1]] = m[1]
		}
	}
	if len(got) == 0 {
		t.Fatalf("the loader said: %s", out)
	}
	return got
}

// simulated gives the same of the simulation.
func simulated(t *testing.T, file string, env map[string]string) (map[string]string, *Process) {
	t.Helper()
	m := &source.Machine{FS: os.DirFS("/"), Env: env}
	l, err := New(m, file, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	p, miss := l.Start(false)
	got := make(map[string]string)
	for _, o := range p.Objects {
		for _, n := range o.names {
			got[n] = o.Path
		}
	}
	for _, m := range miss {
		if m.Err != nil {
			t.Errorf("%s: %v", m.Soname, m.Err)
		}
		got[m.Soname] = ""
	}
	return got, p
}

// TestAgainstLoader builds trees and compares with glibc's own loader.
func TestAgainstLoader(t *testing.T) {
	mach := hostMachine(t)
	other := uint16(elfx.AArch64)
	if mach == other {
		other = elfx.X86_64
	}
	lib := func(l elftest.Lib) elftest.Lib {
		if l.Machine == 0 {
			l.Machine = mach
		}
		return l
	}
	nccl := elftest.Lib{Soname: "libnccl.so.2"}
	tests := []struct {
		name  string
		libs  map[string]elftest.Lib
		links map[string]string
		env   map[string]string
	}{
		{name: "RPATH beats LD_LIBRARY_PATH", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/lib", Needed: []string{"libnccl.so.2"}}, "lib/libnccl.so.2": nccl, "module/libnccl.so.2": nccl,
		}, env: map[string]string{"LD_LIBRARY_PATH": "@/module"}},
		{name: "LD_LIBRARY_PATH beats RUNPATH", libs: map[string]elftest.Lib{
			"exe": {RunPath: "$ORIGIN/lib", Needed: []string{"libnccl.so.2"}}, "lib/libnccl.so.2": nccl, "module/libnccl.so.2": nccl,
		}, env: map[string]string{"LD_LIBRARY_PATH": "@/nowhere:@/module"}},
		{name: "RPATH is inherited, RUNPATH is not", libs: map[string]elftest.Lib{
			"exe":       {RPath: "$ORIGIN/a", Needed: []string{"liba.so"}},
			"a/liba.so": {RunPath: "$ORIGIN/../b", Needed: []string{"libb.so"}}, "b/libb.so": {Needed: []string{"libc1.so", "libd.so"}},
			"b/libc1.so": {}, "a/libd.so": {},
		}},
		{name: "RUNPATH of the needing file turns off RPATH of its loaders", libs: map[string]elftest.Lib{
			"exe":       {RPath: "$ORIGIN/a", Needed: []string{"liba.so"}},
			"a/liba.so": {RunPath: "/nowhere", Needed: []string{"libb.so"}}, "a/libb.so": {},
		}},
		{name: "wheel with nvidia folders", libs: map[string]elftest.Lib{
			"exe":                           {Needed: []string{"libtorch_cuda.so"}, RPath: "$ORIGIN/sp/torch/lib"},
			"sp/torch/lib/libtorch_cuda.so": {Soname: "libtorch_cuda.so", RPath: "$ORIGIN/../../nvidia/cusparse/lib:$ORIGIN/../../nvidia/nccl/lib:$ORIGIN", Needed: []string{"libcusparse.so.12", "libnccl.so.2"}},
			"sp/nvidia/cusparse/lib/libcusparse.so.12":   {Soname: "libcusparse.so.12", RunPath: "$ORIGIN:$ORIGIN/../../nvjitlink/lib", Needed: []string{"libnvJitLink.so.12"}},
			"sp/nvidia/nvjitlink/lib/libnvJitLink.so.12": {Soname: "libnvJitLink.so.12"},
			"sp/nvidia/nccl/lib/libnccl.so.2":            nccl,
			"cuda/lib64/libnvJitLink.so.12":              {Soname: "libnvJitLink.so.12"}, "cuda/lib64/libnccl.so.2": nccl,
		}, env: map[string]string{"LD_LIBRARY_PATH": "@/cuda/lib64"}},
		{name: "soname already loaded under another file name", libs: map[string]elftest.Lib{
			"exe":       {RPath: "$ORIGIN/a:$ORIGIN/b", Needed: []string{"liba.so", "libnccl.so.2"}},
			"a/liba.so": {Needed: []string{"libnccl-x.so"}}, "a/libnccl-x.so": nccl, "b/libnccl.so.2": nccl,
		}},
		{name: "other architecture is skipped", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/a:$ORIGIN/b", Needed: []string{"libnccl.so.2"}}, "a/libnccl.so.2": {Soname: "libnccl.so.2", Machine: other}, "b/libnccl.so.2": nccl,
		}},
		{name: "missing", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/a", Needed: []string{"liba.so", "libnope.so.1"}}, "a/liba.so": {Needed: []string{"libnope.so.2"}},
		}},
		{name: "links", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/l/../b", Needed: []string{"liba.so", "libb.so"}}, "real/deep/liba.so": {RPath: "$ORIGIN", Needed: []string{"libc1.so"}}, "real/b/libb.so": {}, "real/deep/libc1.so": {},
		}, links: map[string]string{"l": "real/deep", "real/b/liba.so": "../deep/liba.so", "real/b/libc1.so": "@/real/deep/libc1.so"}},
		{name: "the same file under two names", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/a", Needed: []string{"liba.so", "libb.so"}}, "a/liba.so": {},
		}, links: map[string]string{"a/libb.so": "liba.so"}},
		{name: "preload", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/a", Needed: []string{"libnccl.so.2"}}, "a/libnccl.so.2": nccl, "p/libnccl.so.2.18": nccl,
		}, env: map[string]string{"LD_PRELOAD": "@/p/libnccl.so.2.18"}},
		{name: "system libraries", libs: map[string]elftest.Lib{
			"exe": {Needed: []string{"libc.so.6", "libz.so.1", "libgcc_s.so.1", "libm.so.6"}},
		}},
		{name: "glibc-hwcaps", libs: map[string]elftest.Lib{
			"exe": {RPath: "$ORIGIN/a", Needed: []string{"liba.so"}}, "a/liba.so": {}, "a/glibc-hwcaps/x86-64-v2/liba.so": {},
		}},
		{name: "NODEFLIB", libs: map[string]elftest.Lib{
			"exe": {NoDef: true, Needed: []string{"libz.so.1"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for n, l := range tt.libs {
				l = lib(l)
				if n == "exe" {
					l.Interp = hostLoader(t)
				}
				tt.libs[n] = l
			}
			dir := tree(t, tt.libs, tt.links)
			var env []string
			for k, v := range tt.env {
				tt.env[k] = strings.ReplaceAll(v, "@", dir)
				env = append(env, k+"="+tt.env[k])
			}
			want := real(t, dir+"/exe", env)
			got, _ := simulated(t, dir+"/exe", tt.env)
			for n, w := range want {
				if n == "linux-vdso.so.1" || strings.HasPrefix(filepath.Base(n), "ld-linux") {
					continue
				}
				g := got[n]
				if r, err := filepath.EvalSymlinks(w); err == nil {
					w = r
				}
				if r, err := filepath.EvalSymlinks(g); err == nil {
					g = r
				}
				if g != w {
					t.Errorf("%s: simulation %q, loader %q", n, g, w)
				}
			}
		})
	}
}

// TestRealPrograms compares on the machine's own programs and on Debian's torch.
func TestRealPrograms(t *testing.T) {
	files := []string{"/usr/bin/python3", "/bin/ls", "/usr/bin/git"}
	torch, _ := filepath.Glob("/usr/lib/*-linux-gnu/libtorch_python.so.1.13")
	files = append(files, torch...)
	n := 0
	for _, f := range files {
		p, err := filepath.EvalSymlinks(f)
		if err != nil {
			continue
		}
		n++
		want := real(t, p, nil)
		m := &elfx.Meter{}
		l, err := New(&source.Machine{FS: os.DirFS("/")}, p, p, m)
		if err != nil {
			t.Fatal(err)
		}
		proc, miss := l.Start(false)
		for _, x := range miss {
			t.Errorf("%s: %s is missing: %v", f, x.Soname, x.Err)
		}
		for name, w := range want {
			o := proc.Find(name)
			if o == nil || o.Path != filepath.Clean(w) {
				t.Errorf("%s: %s: simulation %v, loader %q", f, name, o, w)
			}
		}
		if len(proc.Objects) < len(want) {
			t.Errorf("%s: %d objects, loader %d", f, len(proc.Objects), len(want))
		}
		t.Logf("%s: %d objects, %d files, %d bytes", f, len(proc.Objects), m.Files, m.Bytes)
		l.Close()
	}
	if n == 0 {
		testenv.Need(t, "/bin/ls", "run on Linux")
	}
}

func TestCacheOfThisMachine(t *testing.T) {
	b, err := os.ReadFile("/etc/ld.so.cache")
	if err != nil {
		testenv.Need(t, "/etc/ld.so.cache", "run ldconfig")
	}
	c, err := ParseCache(b)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(testenv.Tool(t, "ldconfig"), "-p").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(string(out), " => "); c.Len() != want {
		t.Errorf("%d entries, ldconfig -p shows %d", c.Len(), want)
	}
}

// entry is one of a cache that a test writes.
type entry struct {
	name, path string
	flags      uint32
	hwcaps     string
	legacy     bool
}

// cacheFile writes a cache in the new format.
func cacheFile(entries []entry, caps []string) []byte {
	le := binary.LittleEndian
	var strs bytes.Buffer
	base := uint32(newHeader + newEntry*len(entries))
	put := func(s string) uint32 {
		at := base + uint32(strs.Len())
		strs.WriteString(s + "\x00")
		return at
	}
	var body []byte
	for _, e := range entries {
		body = le.AppendUint32(body, e.flags)
		body = le.AppendUint32(body, put(e.name))
		body = le.AppendUint32(body, put(e.path))
		body = le.AppendUint32(body, 0)
		var hw uint64
		if i := slices.Index(caps, e.hwcaps); i >= 0 {
			hw = hwcapExtFlag | uint64(i)
		}
		if e.legacy {
			hw = 1 << 5
		}
		body = le.AppendUint64(body, hw)
	}
	var idx []byte
	for _, c := range caps {
		idx = le.AppendUint32(idx, put(c))
	}
	for strs.Len()%4 != 0 {
		strs.WriteByte(0)
	}
	capsAt := base + uint32(strs.Len())
	ext := capsAt + uint32(len(idx))
	h := []byte(newMagic)
	h = le.AppendUint32(h, uint32(len(entries)))
	h = le.AppendUint32(h, uint32(strs.Len()))
	h = append(h, 2, 0, 0, 0)
	h = le.AppendUint32(h, ext)
	h = append(h, make([]byte, 12)...)
	out := slices.Concat(h, body, strs.Bytes(), idx)
	out = le.AppendUint32(out, extMagic)
	out = le.AppendUint32(out, 1)
	out = le.AppendUint32(out, extHWCaps)
	out = le.AppendUint32(out, 0)
	out = le.AppendUint32(out, capsAt)
	return le.AppendUint32(out, uint32(len(idx)))
}

func TestCacheLookup(t *testing.T) {
	b := cacheFile([]entry{
		{name: "liba.so.1", path: "/lib32/liba.so.1", flags: 0x0003},
		{name: "liba.so.1", path: "/hw/v3/liba.so.1", flags: 0x0303, hwcaps: "x86-64-v3"},
		{name: "liba.so.1", path: "/hw/v2/liba.so.1", flags: 0x0303, hwcaps: "x86-64-v2"},
		{name: "liba.so.1", path: "/tls/liba.so.1", flags: 0x0303, legacy: true},
		{name: "liba.so.1", path: "/lib64/liba.so.1", flags: 0x0303},
		{name: "liba.so.1", path: "/second/liba.so.1", flags: 0x0303},
		{name: "liba.so.1", path: "/arm/liba.so.1", flags: 0x0a03},
	}, []string{"x86-64-v2", "x86-64-v3"})
	c, err := ParseCache(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		machine uint16
		class64 bool
		levels  []string
		want    string
	}{
		{elfx.X86_64, true, nil, "/lib64/liba.so.1"},
		{elfx.X86_64, true, []string{"x86-64-v2"}, "/hw/v2/liba.so.1"},
		{elfx.X86_64, true, []string{"x86-64-v4", "x86-64-v3", "x86-64-v2"}, "/hw/v3/liba.so.1"},
		{elfx.X86, false, nil, "/lib32/liba.so.1"},
		{elfx.AArch64, true, nil, "/arm/liba.so.1"},
		{elfx.RISCV, true, nil, ""},
	} {
		if got, _ := c.Lookup("liba.so.1", tt.machine, tt.class64, tt.levels); got != tt.want {
			t.Errorf("Lookup(%d, %v) = %q, want %q", tt.machine, tt.levels, got, tt.want)
		}
	}
	// The old format in front of the new one, as glibc before 2.32 wrote it, and alone.
	old := append([]byte(oldMagic), 0)
	old = binary.NativeEndian.AppendUint32(old, 1)
	for _, v := range []uint32{0x0303, 0, 4} {
		old = binary.NativeEndian.AppendUint32(old, v)
	}
	alone := append(slices.Clone(old), "b.1\x00/old/b.1\x00"...)
	if c, err := ParseCache(alone); err != nil {
		t.Error(err)
	} else if got, _ := c.Lookup("b.1", elfx.X86_64, true, nil); got != "/old/b.1" {
		t.Errorf("old format: %q", got)
	}
	for len(old)%8 != 0 {
		old = append(old, 0)
	}
	if c, err := ParseCache(append(old, b...)); err != nil || c.Len() != 7 {
		t.Errorf("both formats: %v, %v", c, err)
	}
}

func TestTriedAndMissing(t *testing.T) {
	fsys := fstest.MapFS{
		"a/lib.so":            {Data: elftest.Lib{Soname: "lib.so", RPath: "$ORIGIN/x", Needed: []string{"libnccl.so.2"}}.Bytes()},
		"a/x/libnccl.so.2":    {Data: elftest.Lib{Machine: elfx.AArch64}.Bytes()},
		"mod/libnccl.so.2":    {Data: elftest.Lib{Class32: true, Machine: elfx.X86}.Bytes()},
		"script/libnccl.so.2": {Data: []byte("/* GNU ld script */")},
	}
	m := &source.Machine{FS: fsys, Env: map[string]string{"LD_LIBRARY_PATH": "/mod:/nowhere"}}
	l, err := New(m, "", "/a/lib.so", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	miss, err := l.Closure("/a/lib.so")
	if err != nil || len(miss) != 1 {
		t.Fatalf("misses %v, %v", miss, err)
	}
	want := []fact.LoadTry{
		{Path: "/a/x/libnccl.so.2", Via: ViaRPath, Result: OtherArch},
		{Path: "/mod/libnccl.so.2", Via: ViaEnv, Result: OtherArch},
		{Path: "/nowhere/libnccl.so.2", Via: ViaEnv, Result: NotThere},
	}
	if d := cmp.Diff(want, miss[0].Tried[:min(3, len(miss[0].Tried))]); d != "" {
		t.Error(d)
	}
	l.EnvPath = []string{"/script"}
	miss, err = l.Closure("/a/lib.so")
	if err != nil || len(miss) != 1 || miss[0].Err == nil {
		t.Fatalf("a text file: %v, %v", miss, err)
	}
}

func TestEndlessLinks(t *testing.T) {
	dir := tree(t, nil, map[string]string{"a": "b/../c/../a", "b": "a/../b", "c": "b/../a", "d": "d"})
	l := &Loader{fs: os.DirFS("/"), links: map[string]string{}}
	for _, n := range []string{"a", "b", "c", "d"} {
		l.Real(dir + "/" + n + "/../x")
	}
}

func TestLevels(t *testing.T) {
	for flags, want := range map[string]int{
		"cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3":                                             1,
		"cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave": 2,
		"sse": 0,
	} {
		fsys := fstest.MapFS{"proc/cpuinfo": {Data: []byte("processor: 0\nflags\t: " + flags + "\n")}}
		if got := x86Levels(fsys); len(got) != want {
			t.Errorf("%q: %q", flags, got)
		}
	}
}

func FuzzParseCache(f *testing.F) {
	f.Add(cacheFile([]entry{{name: "a", path: "/a", flags: 0x303, hwcaps: "v"}}, []string{"v"}))
	f.Add([]byte(oldMagic + "\x00\x01\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00a\x00/a\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := ParseCache(b); err == nil {
			c.Lookup("a", elfx.X86_64, true, []string{"v"})
		}
	})
}

func ExampleCache_Lookup() {
	c, _ := ParseCache(cacheFile([]entry{{name: "libnccl.so.2", path: "/usr/lib/libnccl.so.2", flags: 0x303}}, nil))
	fmt.Println(c.Lookup("libnccl.so.2", elfx.X86_64, true, nil))
	// Output: /usr/lib/libnccl.so.2 true
}
