package cli

import (
	"archive/zip"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/flate"

	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// formSays is what a form of a wheel must have in common with the wheel.
type formSays struct {
	Verdict, Cause                          string
	Version, CUDA, HIP, NCCL, Accel, Origin string
	Compiled, Distributed, Gloo             string
	Machine, Archs                          string
}

// formOf examines one form of a wheel: its facts into a file, and the verdict on those facts.
func formOf(t *testing.T, p string) (formSays, []string, *fact.Bundle) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "facts.json")
	if code, _, errs := ncclinic(t, nil, "facts", p, "-o", file, "--with-node", "none"); code != exitOK {
		t.Fatalf("facts %s: exit %d: %s", filepath.Base(p), code, errs)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := fact.ReadBundle(f)
	if err != nil {
		t.Fatal(err)
	}
	_, out, errs := ncclinic(t, nil, "check", file, "--format", "json")
	var rep struct {
		Verdict  string
		Cause    *string
		Findings []struct{ ID, Role, Certainty string }
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	s := formSays{Verdict: rep.Verdict}
	if rep.Cause != nil {
		s.Cause = *rep.Cause
	}
	w := b.Winner()
	if w == nil {
		t.Fatalf("%s: no torch; problems %v", filepath.Base(p), b.Problems)
	}
	val := func(v fact.Val[string]) string { return fmt.Sprint(v.State, v.V) }
	flag := func(v fact.Val[bool]) string { return fmt.Sprint(v.State, v.V) }
	s.Version, s.CUDA, s.HIP, s.Accel, s.Origin = val(w.Version), val(w.CUDA), val(w.HIP), fmt.Sprint(w.Accel()), w.Origin.V.Kind
	s.NCCL = w.NCCLVersion.Or("") // an image has the library itself, in its loads
	if l := b.LoadOf("libnccl.so.2"); l != nil && l.Version.IsKnown() {
		s.NCCL = l.Version.V
	}
	s.Compiled, s.Distributed, s.Gloo = flag(w.NCCL), flag(w.Distributed), flag(w.Gloo)
	s.Machine, s.Archs = val(w.Machine), strings.Join(w.Archs.Or(nil), " ")
	var ids []string
	for _, f := range rep.Findings {
		ids = append(ids, f.ID+" "+f.Role+" "+f.Certainty)
	}
	return s, ids, b
}

// The content of each real wheel says the same as the wheel in every form in
// which it may reach a job: a folder of packages, a root file system, squashfs
// by every compressor, SIF, an OCI layer.
func TestRealWheelForms(t *testing.T) {
	all := os.Getenv("NCCLINIC_WHEELS") != ""
	if testing.Short() {
		testenv.Need(t, "time", "run it without -short")
	}
	cuda := testenv.Cache(t, "cuda")
	files, err := filepath.Glob(filepath.Join(filepath.Dir(cuda), "wheels", "torch-*aarch64.whl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if all {
		for _, g := range []string{filepath.Join(testenv.Cache(t, "more-wheels"), "torch-*.whl"), filepath.Join(filepath.Dir(cuda), "wheels", "torch-*x86_64.whl")} {
			more, err := filepath.Glob(g)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, more...)
		}
		if len(files) < 12 {
			t.Errorf("only %d wheels are in the cache", len(files))
		}
	}
	for i, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { realForms(t, f, cuda, i, all) })
	}
}

func realForms(t *testing.T, wheel, cuda string, turn int, all bool) {
	begin := time.Now()
	want, _, b := formOf(t, wheel)
	windows, mac := strings.Contains(wheel, "win_"), strings.Contains(wheel, "macosx")
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	py := pythonOfWheel(t, wheel)
	lib := filepath.Join(root, "opt/env/lib", py)
	site := filepath.Join(lib, "site-packages")
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	unzip(t, wheel, site)
	var failed int
	check := func(form, p string, image bool) []string {
		t.Helper()
		got, ids, g := formOf(t, p)
		if d := cmp.Diff(want, got); d != "" {
			failed++
			t.Errorf("%s (-wheel +%s):\n%s%v", form, form, d, ids)
		}
		if len(g.Problems) > 0 {
			t.Errorf("%s: problems %v", form, g.Problems)
		}
		t.Logf("%s: %d of %d MB read, %s", form, g.Target.Read>>20, g.Target.Size>>20, strings.Join(ids, ", "))
		return ids
	}
	check("folder of packages", site, false)

	// The system around it. The system's and NVIDIA's libraries are stand-ins
	// with the right names and machine; for 2.6.0 NVIDIA's are the real ones.
	arch, machine, sifArch := "amd64", uint16(elf.EM_X86_64), "02"
	if strings.Contains(wheel, "aarch64") || strings.Contains(wheel, "arm64") {
		arch, machine, sifArch = "arm64", uint16(elf.EM_AARCH64), "04"
	}
	if strings.Contains(wheel, "torch-2.6.0") && arch == "amd64" {
		for _, n := range globs(t, filepath.Join(cuda, "lib/python3.11/site-packages"), "nvidia", "nvidia_*") {
			command(t, "cp", "-al", n, site)
		}
	}
	around(t, root, lib, machine, want.NCCL, windows || mac)
	ids := check("root file system", root, true)
	image := func(form, p string) {
		t.Helper()
		if more := check(form, p, true); !slices.Equal(more, ids) {
			failed++
			t.Errorf("%s: %v, the folder has %v", form, more, ids)
		}
	}
	layer := filepath.Join(dir, "layer")
	command(t, "/bin/sh", "-euc", `tar -C "$1" -cf - . | zstd -1 -q -T2 -o "$2"`, "sh", root, layer)
	oci := packtest.OCIDir(t, filepath.Join(dir, "oci"), packtest.Config{Arch: arch, Env: []string{"PATH=/opt/env/bin:/usr/bin"}}, layer)
	image("OCI layer", oci)
	os.RemoveAll(oci)

	// The quickest level of each; xz, which packs 3 MB a second, leaves files of
	// more than 16 MB as they are. The small wheels and one of the large ones are
	// packed by every compressor, the others by zstd and one more in turn.
	zstd, lz4, lzo, gzip := []string{"zstd", "-Xcompression-level", "1"}, []string{"lz4"}, []string{"lzo", "-noD"}, []string{"gzip", "-Xcompression-level", "1"}
	xz := []string{"xz", "-action", "uncompressed@type(f) && size(+16M)"}
	more := [][]string{lz4, lzo, gzip, xz}
	comps := [][]string{zstd}
	switch {
	case !all:
	case b.Target.Size < 300e6, strings.Contains(wheel, "torch-2.15.0"):
		comps = append(append(comps, more...), []string{"lzo", "-Xalgorithm", "lzo1x_1"})
	default:
		comps = append(comps, more[turn%len(more)])
	}
	for i, c := range comps {
		sq := filepath.Join(dir, "image.sqsh")
		command(t, "mksquashfs", append([]string{root, sq, "-quiet", "-no-progress", "-all-root", "-noappend", "-comp"}, c...)...)
		image("squashfs "+strings.Join(c, " "), sq)
		if i == 0 {
			st, err := os.Stat(sq)
			if err != nil {
				t.Fatal(err)
			}
			image("SIF", sifOf(t, sq, packtest.SIFHead(st.Size(), sifArch)))
		}
		os.Remove(sq)
	}
	t.Logf("%d forms besides the wheel: %s %s, %d differ; %.0f s", 4+len(comps), want.Verdict, want.Cause, failed, time.Since(begin).Seconds())
}

// unzip unpacks a wheel.
func unzip(t *testing.T, wheel, dir string) {
	t.Helper()
	z, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	z.RegisterDecompressor(zip.Deflate, flate.NewReader)
	for _, m := range z.File {
		p := filepath.Join(dir, filepath.FromSlash(m.Name))
		if !filepath.IsLocal(m.Name) || strings.HasSuffix(m.Name, "/") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		in, err := m.Open()
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, in)
		in.Close()
		if err = errors.Join(err, out.Close()); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
	}
}

// pythonOfWheel returns the interpreter that a wheel is for: python3.12.
func pythonOfWheel(t *testing.T, wheel string) string {
	t.Helper()
	for _, f := range strings.Split(filepath.Base(wheel), "-") {
		if v, ok := strings.CutPrefix(f, "cp3"); ok {
			return "python3." + v
		}
	}
	t.Fatalf("%s: for which Python?", wheel)
	return ""
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(testenv.Tool(t, name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func globs(t *testing.T, dir string, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, names...)
	}
	return out
}

// sifOf moves a squashfs image behind the head of a SIF: in place of the image, to spare the disk.
func sifOf(t *testing.T, squash string, head []byte) string {
	t.Helper()
	p := strings.TrimSuffix(squash, ".sqsh") + ".sif"
	out, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := os.Open(squash)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	t.Cleanup(func() { os.Remove(p) })
	if _, err := out.Write(head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	return p
}

// around makes a root file system of a folder with an environment: an
// interpreter, and a stand-in for each library that torch needs and has not.
func around(t *testing.T, root, lib string, machine uint16, nccl string, foreign bool) {
	t.Helper()
	py := filepath.Base(lib)
	loader := map[uint16]string{uint16(elf.EM_X86_64): "ld-linux-x86-64.so.2", uint16(elf.EM_AARCH64): "ld-linux-aarch64.so.1"}[machine]
	packtest.Tree{
		"opt/env/bin/" + py: string(elftest.Lib{Machine: machine, Interp: "/lib64/" + loader}.Bytes()), "opt/env/bin/python": "->" + py, "opt/env/bin/python3": "->" + py,
		"opt/env/lib/" + py + "/os.py": "", "opt/env/lib/" + py + "/site.py": "", "opt/env/lib/" + py + "/lib-dynload/": "",
		"etc/os-release": "PRETTY_NAME=\"Test Linux 1\"\n", "etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/environment": "PATH=/opt/env/bin:/usr/bin\nNVIDIA_VISIBLE_DEVICES=all\nNVIDIA_DRIVER_CAPABILITIES=compute,utility\n", "lib64": "->usr/lib64", "bin": "->usr/bin", "usr/bin/": "", "root/": "", "tmp/": "",
		"usr/lib64/" + loader: string(elftest.Lib{Machine: machine, Soname: loader}.Bytes()),
	}.Write(t, root)
	if foreign {
		return
	}
	have, need := map[string]bool{}, map[string]bool{}
	var symbols []string
	site := filepath.Join(lib, "site-packages")
	for _, p := range globs(t, site, "*/lib/*.so*", "torch/_C.*.so", "*/*/lib/*.so*", "*.libs/*.so*") {
		f, err := elf.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		have[filepath.Base(p)] = true
		libs, _ := f.ImportedLibraries()
		for _, l := range libs {
			need[l] = true
		}
		syms, _ := f.ImportedSymbols()
		for _, s := range syms {
			if strings.HasPrefix(s.Name, "nccl") && !slices.Contains(symbols, s.Name) {
				symbols = append(symbols, s.Name)
			}
		}
		f.Close()
	}
	stand := packtest.Tree{}
	for l := range need {
		if have[l] || l == "libcuda.so.1" || l == "libnvidia-ml.so.1" || l == loader {
			continue
		}
		e := elftest.Lib{Machine: machine, Soname: l}
		if l == "libnccl.so.2" {
			e.Defined, e.Sections = symbols, []elftest.Section{{Name: ".rodata", Data: []byte("x\x00NCCL version " + nccl + "+cuda12.4\x00")}}
		}
		stand["usr/lib64/"+l] = string(e.Bytes())
	}
	stand.Write(t, root)
}
