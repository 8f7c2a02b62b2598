package elfx_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

func open(t testing.TB, b []byte) *elfx.File {
	t.Helper()
	f, err := elfx.Open(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("sym_%d", i)
	}
	return out
}

func undefined(t testing.TB, f *elfx.File) []string {
	t.Helper()
	var out []string
	if err := f.Undefined(func(s elfx.Symbol) bool {
		n := s.Name
		if s.Version != "" {
			n += "@" + s.Version + "/" + s.File
		}
		out = append(out, n)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestBuiltLibraries(t *testing.T) {
	variants := map[string]elftest.Lib{
		"64 both hashes": {},
		"64 gnu":         {NoSysVHash: true},
		"64 gnu bare":    {NoSysVHash: true, NoSections: true},
		"64 sysv":        {NoGNUHash: true},
		"32":             {Class32: true, Machine: elfx.X86},
		"32 gnu bare":    {Class32: true, Machine: elfx.X86, NoSysVHash: true, NoSections: true},
		"64 big endian":  {BigEndian: true, Machine: elfx.PPC64},
		"aarch64":        {Machine: elfx.AArch64, NoSysVHash: true},
	}
	for name, l := range variants {
		t.Run(name, func(t *testing.T) {
			l.Soname = "libtest.so.1"
			l.Needed = []string{"libnccl.so.2", "libc.so.6"}
			l.RunPath = "$ORIGIN/../lib:/opt/x"
			l.Defined = append(names(50), "ncclSend@TEST_1")
			l.Versions = []string{"TEST_2"}
			l.Undefined = []string{"ncclRecv", "memcpy@GLIBC_2.14/libc.so.6", "open@GLIBC_2.17/libc.so.6"}
			l.Sections = []elftest.Section{{Name: ".rodata", Data: []byte("\x00sm_80 sm_90\x00")}}
			f := open(t, l.Bytes())
			if f.Soname != l.Soname || !slices.Equal(f.Needed, l.Needed) || f.Class64 == l.Class32 {
				t.Errorf("soname %q, needed %q, 64-bit %v", f.Soname, f.Needed, f.Class64)
			}
			if want := []string{"$ORIGIN/../lib", "/opt/x"}; !slices.Equal(f.RunPath, want) || f.RPath != nil {
				t.Errorf("RUNPATH %q, RPATH %q", f.RunPath, f.RPath)
			}
			for _, n := range names(50) {
				if _, ok, err := f.Lookup(n); !ok || err != nil {
					t.Errorf("Lookup(%s) = %v, %v", n, ok, err)
				}
			}
			for _, n := range []string{"sym_", "sym_50", "ncclRecv", "", "nccl"} {
				if _, ok, err := f.Lookup(n); ok || err != nil {
					t.Errorf("Lookup(%s) = %v, %v, want no", n, ok, err)
				}
			}
			if s, _, _ := f.Lookup("ncclSend"); s.Version != "TEST_1" {
				t.Errorf("version of ncclSend: %q", s.Version)
			}
			wantU := []string{"memcpy@GLIBC_2.14/libc.so.6", "ncclRecv", "open@GLIBC_2.17/libc.so.6"}
			if got := undefined(t, f); !slices.Equal(got, wantU) {
				t.Errorf("undefined: %q", got)
			}
			n, err := f.SymbolCount()
			if err != nil || n != 55 {
				t.Errorf("SymbolCount = %d, %v", n, err)
			}
			count := 0
			if err := f.Exported(func(elfx.Symbol) bool { count++; return true }); err != nil || count != 51 {
				t.Errorf("%d exported, %v", count, err)
			}
			needs, err := f.Needs()
			if d := cmp.Diff([]elfx.Need{{File: "libc.so.6", Versions: []string{"GLIBC_2.14", "GLIBC_2.17"}}}, needs); d != "" || err != nil {
				t.Errorf("Needs: %v\n%s", err, d)
			}
			defs, err := f.Defines()
			if d := cmp.Diff([]string{"libtest.so.1", "TEST_1", "TEST_2"}, defs); d != "" || err != nil {
				t.Errorf("Defines: %v\n%s", err, d)
			}
			sec, ok, err := f.Section(".rodata")
			if err != nil || ok == l.NoSections {
				t.Fatalf("Section(.rodata) = %v, %v", ok, err)
			}
			if ok {
				hit, err := f.Contains(sec, 1<<20, "sm_90")
				if hit != "sm_90" || err != nil {
					t.Errorf("Contains = %q, %v", hit, err)
				}
			}
		})
	}
}

func TestRPathIsIgnoredWithRunPath(t *testing.T) {
	f := open(t, elftest.Lib{RPath: "/a:/b"}.Bytes())
	if !slices.Equal(f.RPath, []string{"/a", "/b"}) {
		t.Errorf("RPath = %q", f.RPath)
	}
	f = open(t, elftest.Lib{RPath: "/a", RunPath: "/b"}.Bytes())
	if f.RPath != nil || !slices.Equal(f.RunPath, []string{"/b"}) {
		t.Errorf("RPath = %q, RunPath = %q", f.RPath, f.RunPath)
	}
}

func TestFatArchs(t *testing.T) {
	data := append(elftest.FatBin("sm_90"), elftest.FatBin("sm_80", "sm_100", "compute_100")...)
	f := open(t, elftest.Lib{Sections: []elftest.Section{{Name: ".nv_fatbin", Data: data}}}.Bytes())
	s, ok, err := f.Section(".nv_fatbin")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	got, err := f.FatArchs(s, 8)
	if want := []string{"sm_80", "sm_90", "sm_100", "compute_100"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("FatArchs = %q, %v, want %q", got, err, want)
	}
}

func TestScanFindsAcrossChunks(t *testing.T) {
	data := bytes.Repeat([]byte{'.'}, 600<<10)
	for _, at := range []int{128<<10 - 3, 256<<10 - 1, 512 << 10} {
		copy(data[at:], "needle")
	}
	f := open(t, elftest.Lib{Sections: []elftest.Section{{Name: ".rodata", Data: data}}}.Bytes())
	s, _, err := f.Section(".rodata")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	if err := f.Scan(s, 1<<20, 5, func(b []byte) bool { seen += bytes.Count(b, []byte("needle")); return true }); err != nil || seen != 3 {
		t.Errorf("%d needles, %v, want 3", seen, err)
	}
	if _, err := f.Contains(s, 64<<10, "needle"); !errors.Is(err, elfx.ErrBudget) {
		t.Errorf("a scan cut by its limit says %v, want ErrBudget", err)
	}
}

func TestMeterRefuses(t *testing.T) {
	b := elftest.Lib{Defined: names(10)}.Bytes()
	m := &elfx.Meter{MaxFiles: 1, MaxBytes: 1 << 20}
	if _, err := elfx.Open(bytes.NewReader(b), int64(len(b)), m); err != nil {
		t.Fatal(err)
	}
	if _, err := elfx.Open(bytes.NewReader(b), int64(len(b)), m); !errors.Is(err, elfx.ErrBudget) {
		t.Errorf("second file: %v", err)
	}
	m = &elfx.Meter{MaxBytes: 10}
	if _, err := elfx.Open(bytes.NewReader(b), int64(len(b)), m); !errors.Is(err, elfx.ErrBudget) {
		t.Errorf("ten bytes: %v", err)
	}
}

func TestNotELF(t *testing.T) {
	for _, s := range []string{"", "x", "#!/bin/sh\n", "\x7fELF", "/* GNU ld script */ GROUP ( libc.so.6 )"} {
		if _, err := elfx.Open(strings.NewReader(s), int64(len(s)), nil); err == nil {
			t.Errorf("%q was opened", s)
		}
	}
}

// TestAgainstNm compares with binutils on real libraries of the machine.
func TestAgainstNm(t *testing.T) {
	nm := testenv.Tool(t, "nm")
	libs := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13"}
	tested := 0
	for _, path := range libs {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		tested++
		h, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		st, err := h.Stat()
		if err != nil {
			t.Fatal(err)
		}
		m := &elfx.Meter{}
		f, err := elfx.Open(h, st.Size(), m)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(nm, "-D", "--without-symbol-versions", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		var def, undef []string
		for line := range strings.Lines(string(out)) {
			w := strings.Fields(line)
			switch kind := w[len(w)-2]; {
			case strings.Contains("UvwU", kind) && len(w) == 2:
				undef = append(undef, w[len(w)-1])
			default:
				def = append(def, w[len(w)-1])
			}
		}
		for i := 0; i < len(def); i += 7 {
			if s, ok, err := f.Lookup(def[i]); !ok || err != nil {
				t.Errorf("%s: Lookup(%s) = %v, %v, %v", path, def[i], s, ok, err)
			}
		}
		var got []string
		if err := f.Undefined(func(s elfx.Symbol) bool { got = append(got, s.Name); return true }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(undef)
		if d := cmp.Diff(slices.Compact(undef), slices.Compact(got)); d != "" {
			t.Errorf("%s: undefined symbols (-nm +got):\n%s", path, d)
		}
		for _, n := range []string{"_ZTIN4c10d16ProcessGroupNCCLE", "no_such_symbol"} {
			if _, ok, err := f.Lookup(n); ok || err != nil {
				t.Errorf("%s: Lookup(%s) = %v, %v", path, n, ok, err)
			}
		}
		t.Logf("%s: %d undefined, %d defined; read %d bytes of %d in %d reads", path, len(undef), len(def), m.Bytes, st.Size(), m.Reads)
	}
	if tested == 0 {
		testenv.Need(t, "libc.so.6 of glibc", "run on a glibc system")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(elftest.Lib{Soname: "a", Needed: []string{"b"}, RPath: "/x", Defined: []string{"d", "e@V_1"}, Undefined: []string{"u@W/x.so"}}.Bytes())
	f.Add(elftest.Lib{Class32: true, NoGNUHash: true, Defined: []string{"d"}, Interp: "/lib/ld.so"}.Bytes())
	f.Add(elftest.Lib{BigEndian: true, NoSysVHash: true, NoSections: true, Defined: []string{"d"}}.Bytes())
	f.Add(elftest.Lib{Sections: []elftest.Section{{Name: ".nv_fatbin", Data: elftest.FatBin("sm_80", "compute_90")}}}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &elfx.Meter{MaxBytes: 16 << 20}
		e, err := elfx.Open(bytes.NewReader(b), int64(len(b)), m)
		if err != nil {
			return
		}
		for _, n := range []string{"d", "e", "u", ""} {
			_, _, _ = e.Lookup(n)
		}
		_ = e.Undefined(func(elfx.Symbol) bool { return true })
		_ = e.Exported(func(elfx.Symbol) bool { return true })
		_, _ = e.Needs()
		_, _ = e.Defines()
		for _, n := range []string{".rodata", ".nv_fatbin"} {
			if s, ok, err := e.Section(n); ok && err == nil {
				_, _ = e.FatArchs(s, 4)
				_, _ = e.Contains(s, 1<<16, "sm_")
			}
		}
	})
}
