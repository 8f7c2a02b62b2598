package target

import (
	"archive/zip"
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// docRow is one line of the table of real wheels in docs/images.md.
type docRow struct {
	file, torch, cuda, nccl, python, platform, driver, kernels, verdict string
}

func docRows(t *testing.T, page string) []docRow {
	t.Helper()
	f, err := os.Open("../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []docRow
	for sc := bufio.NewScanner(f); sc.Scan(); {
		c := strings.Split(sc.Text(), "|")
		if len(c) != 11 || !strings.Contains(c[1], ".whl") {
			continue
		}
		for i := range c {
			c[i] = strings.Trim(strings.TrimSpace(c[i]), "`")
		}
		out = append(out, docRow{c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]})
	}
	return out
}

// inWheel reads text files of a wheel with the standard library.
func inWheel(t *testing.T, file string) (version, metadata string) {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, m := range z.File {
		var to *string
		switch {
		case m.Name == "torch/version.py":
			to = &version
		case strings.Count(m.Name, "/") == 1 && strings.HasSuffix(m.Name, ".dist-info/METADATA"):
			to = &metadata
		default:
			continue
		}
		r, err := m.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		*to = string(b)
	}
	return version, metadata
}

func find(re, s string) string {
	if m := regexp.MustCompile(re).FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// bound asks readelf whether libtorch_python of a wheel binds NCCL.
func bound(t *testing.T, file string) bool {
	t.Helper()
	lib := filepath.Join(t.TempDir(), "libtorch_python.so")
	out, err := os.Create(lib)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.Tool(t, "unzip"), "-p", file, "torch/lib/libtorch_python.so")
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	syms, err := exec.Command(testenv.Tool(t, "readelf"), "--dyn-syms", "-W", lib).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(syms), "16ProcessGroupNCCL")
}

// Facts of real wheels are those of their own texts, of readelf, of the tables and of the page.
func TestRealWheels(t *testing.T) {
	all := os.Getenv("NCCLINIC_WHEELS") != ""
	dirs := []string{filepath.Join(filepath.Dir(testenv.Cache(t, "cuda")), "wheels")}
	if all {
		dirs = append(dirs, testenv.Cache(t, "more-wheels"))
	}
	rows := docRows(t, "images.md")
	if zh := docRows(t, "images.zh-CN.md"); len(rows) < 15 || !slices.EqualFunc(rows, zh, func(a, b docRow) bool {
		return a.file == b.file && a.cuda == b.cuda && a.nccl == b.nccl && a.kernels == b.kernels
	}) {
		t.Errorf("the pages have %d and %d wheels, or differ", len(rows), len(zh))
	}
	seen := 0
	for _, r := range rows {
		file := ""
		for _, d := range dirs {
			if _, err := os.Stat(filepath.Join(d, r.file)); err == nil {
				file = filepath.Join(d, r.file)
			}
		}
		if file == "" {
			if all {
				t.Errorf("%s is on the page and not in the cache", r.file)
			}
			continue
		}
		seen++
		t.Run(r.file, func(t *testing.T) { realWheel(t, file, r) })
	}
	if seen < 2 {
		t.Errorf("%d wheels were examined", seen)
	}
}

func realWheel(t *testing.T, file string, r docRow) {
	b := factsAt(t, file, Options{})
	w := b.Winner()
	text, meta := inWheel(t, file)
	eq := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	cuda := find(`(?m)^cuda(?::[^=]*)? = '([0-9.]+)'`, text)
	eq("version", w.Version.Or(""), find(`(?m)^__version__ = '([^']+)'`, text))
	eq("CUDA", w.CUDA.Or(""), cuda)
	eq("Requires-Python", b.Target.Requires, find(`(?m)^Requires-Python: (.*?)\r?$`, meta))
	pin := find(`(?m)^Requires-Dist: nvidia-nccl-cu[0-9]+[ (]*==([0-9.]+)`, meta)
	if pin != "" && cuda != "" { // a CPU build for aarch64 names it behind a marker
		eq("NCCL asked for", w.NCCLVersion.Or(""), pin)
		if strings.Contains(r.platform, "x86_64") {
			eq("NCCL in the table", tables.WheelNCCL(w.Version.V), pin)
		}
		if w.NCCLStatic.Or(true) {
			t.Errorf("linked in, with a package of its own: %+v", w.NCCLStatic)
		}
	}
	if strings.Contains(r.platform, "linux") {
		if got, want := w.NCCL.Or(false), bound(t, file); got != want || !w.NCCL.IsKnown() {
			t.Errorf("NCCL compiled in: %v, readelf says %v", w.NCCL, want)
		}
		if !w.Distributed.Or(false) || !w.Gloo.Or(false) {
			t.Errorf("distributed %v, gloo %v", w.Distributed, w.Gloo)
		}
	}
	if strings.Contains(r.platform, "x86_64") && cuda != "" {
		eq("CUDA in the table", tables.PyPICUDA(w.Version.V), cuda)
	}
	if cuda != "" {
		if _, local, _ := strings.Cut(w.Version.V, "+"); local != "" {
			eq("architectures in the table", strings.Join(w.Archs.Or(nil), " "), strings.Join(tables.WheelArchs(w.Version.V, local, w.Machine.V), " "))
		}
	}
	// The page.
	eq("page: torch", r.torch, w.Version.Or(""))
	eq("page: CUDA", r.cuda, orCPU(w))
	eq("page: platform", r.platform, b.Target.Platform)
	driver := ""
	if cuda != "" {
		driver = "≥" + tables.FamilyDriver(cuda)
	}
	eq("page: driver", r.driver, driver)
	eq("page: kernels", strings.ReplaceAll(r.kernels, ".", ""), strings.ReplaceAll(strings.Join(w.Archs.Or(nil), " "), "sm_", ""))
	nccl := w.NCCLVersion.Or("")
	switch {
	case w.NCCLStatic.Or(false):
		nccl += " linked in"
	case !w.NCCL.Or(false):
		nccl = "no"
	}
	eq("page: NCCL", r.nccl, nccl)
	if b.Target.Read > b.Target.Size/4 && b.Target.Size > 600<<20 {
		t.Errorf("%d of %d bytes were read", b.Target.Read, b.Target.Size)
	}
}

func orCPU(w *fact.Torch) string {
	if w.Accel() == fact.AccelCPU {
		return "CPU"
	}
	return w.CUDA.Or("")
}
