package plan

import (
	"slices"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/pep440"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// Wheel is a torch wheel by its file name.
type Wheel struct {
	Version string // public version 2.6.0
	Tag     string // local tag, "" when the name has none
	Python  string // 3.11, 3.13t; "" when the tag is none of CPython
	Machine string // x86_64, aarch64
	Glibc   string // least glibc that the platform tag names, "" when it names none
}

// ParseWheel reads the file name of a torch wheel for Linux; %2B stands for +.
func ParseWheel(name string) (Wheel, bool) {
	if i := strings.LastIndexAny(name, "/\\"); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.IndexAny(name, "#?"); i >= 0 {
		name = name[:i]
	}
	name = strings.ReplaceAll(strings.ReplaceAll(name, "%2B", "+"), "%2b", "+")
	stem, ok := strings.CutSuffix(name, ".whl")
	f := strings.Split(stem, "-")
	if !ok || len(f) != 5 && len(f) != 6 || strings.ToLower(f[0]) != "torch" {
		return Wheel{}, false
	}
	py, abi, platform := f[len(f)-3], f[len(f)-2], f[len(f)-1]
	v, err := pep440.Parse(f[1])
	if err != nil || v.IsPre() {
		return Wheel{}, false
	}
	w := Wheel{Version: v.Public(), Tag: v.Local()}
	if n, ok := strings.CutPrefix(py, "cp3"); ok {
		w.Python = tables.PythonMinor("3." + n)
		if w.Python != "" && strings.HasSuffix(abi, "t") {
			w.Python += "t"
		}
	}
	for _, p := range strings.Split(platform, ".") {
		for _, m := range []string{"x86_64", "aarch64"} {
			rest, ok := strings.CutSuffix(p, "_"+m)
			if !ok {
				continue
			}
			g := ""
			switch {
			case rest == "linux":
			case rest == "manylinux1":
				g = "2.5"
			case rest == "manylinux2014":
				g = "2.17"
			case strings.HasPrefix(rest, "manylinux_"):
				g = strings.ReplaceAll(strings.TrimPrefix(rest, "manylinux_"), "_", ".")
			default:
				continue // macosx_…_x86_64
			}
			w.Machine = m
			if w.Glibc == "" || g != "" && tables.Compare(g, w.Glibc) < 0 {
				w.Glibc = g
			}
		}
	}
	return w, w.Machine != "" && w.Python != ""
}

// Index is what a site's mirror has.
type Index struct {
	Name   string // the folder or file
	wheels []Wheel
}

// MaxIndex bounds the wheels of an Index.
const MaxIndex = 100000

// ParseIndex finds names of torch wheels in a text of any form: a listing, a
// page of a simple index, a lock file. It returns nil when there is none.
func ParseIndex(name, text string) *Index {
	ix := &Index{Name: name}
	seen := map[Wheel]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool {
		return r == '"' || r == '\'' || r == '<' || r == '>' || r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == ',' || r == '='
	}) {
		if !strings.Contains(w, ".whl") || len(ix.wheels) >= MaxIndex {
			continue
		}
		if x, ok := ParseWheel(w); ok && !seen[x] {
			seen[x] = true
			ix.wheels = append(ix.wheels, x)
		}
	}
	if len(ix.wheels) == 0 {
		return nil
	}
	return ix
}

// Size is the number of torch wheels in the index.
func (ix *Index) Size() int { return len(ix.wheels) }

func (ix *Index) versions() []string {
	var vs []pep440.Version
	seen := map[string]bool{}
	for _, w := range ix.wheels {
		if v, err := pep440.Parse(w.Version); err == nil && !seen[w.Version] {
			seen[w.Version] = true
			vs = append(vs, v)
		}
	}
	sort.Slice(vs, func(i, j int) bool { return pep440.Compare(vs[i], vs[j]) > 0 })
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = v.Public()
	}
	return out
}

// builds lists the CUDA builds of a release for a Python and a machine, or those
// for ROCm. A wheel
// without a local tag is what the package index has: its CUDA is in the tables.
func (ix *Index) builds(version, python, machine string, amd bool) []build {
	var out []build
	for _, w := range ix.wheels {
		if w.Version != version || machine != "" && w.Machine != machine || python != "" && w.Python != tables.PythonMinor(python) {
			continue
		}
		b := build{torch: version, tag: w.Tag, local: true, listed: true, glibc: w.Glibc}
		if w.Tag == "" {
			cuda := tables.PyPICUDA(version)
			if w.Machine == "aarch64" && tables.PyPIAarch64CPU(version) != tables.No {
				cuda = ""
			}
			if cuda == "" {
				continue
			}
			b.tag, b.local = "cu"+strings.ReplaceAll(cuda, ".", ""), false
		}
		if amd && tables.TagROCm(b.tag) == "" || !amd && tables.TagCUDA(b.tag) == "" {
			continue
		}
		// Of two wheels of one build the one whose name tells is surer.
		if i := slices.IndexFunc(out, func(x build) bool { return x.tag == b.tag }); i < 0 {
			out = append(out, b)
		} else if b.local {
			out[i].local = true
		}
	}
	slices.SortFunc(out, func(a, b build) int { return num(a.tag) - num(b.tag) })
	return out
}
