package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The oracle is a second reading of the sources, written apart from the tables
// and in another form: one line per build with the driver family, what it has
// kernels for, and the Pythons. It knows no ranking: it says for each build
// whether it runs.
//
// Sources: RELEASE.md of pytorch/pytorch (2.14 era): compatibility and CUDA
// support matrices; wheel names on PyPI; CUDA release notes, table 2 and 3;
// read 2026-11-30.
const oracleBuilds = `
2.15.0 13.2 75 80 86 90 100 120 | 311-315
2.14.1 12.6 50 60 70 75 80 86 90 | 310-314
2.14.1 13.0 75 80 86 90 100 120 +120 | 310-314
2.14.1 13.2 75 80 86 90 100 120 +120 | 310-314
2.13.0 12.6 50 60 70 75 80 86 90 | 310-314
2.13.0 13.0 75 80 86 90 100 120 +120 | 310-314
2.13.0 13.2 75 80 86 90 100 120 +120 | 310-314
2.12.1 12.6 50 60 70 75 80 86 90 | 310-314
2.12.1 13.0 75 80 86 90 100 120 +120 | 310-314
2.12.1 13.2 75 80 86 90 100 120 +120 | 310-314
2.11.0 12.6 50 60 70 75 80 86 90 | 310-314
2.11.0 12.8 75 80 86 90 100 120 | 310-314
2.11.0 13.0 75 80 86 90 100 120 | 310-314
2.10.0 12.6 50 60 70 75 80 86 90 | 310-314
2.10.0 12.8 70 75 80 86 90 100 120 | 310-314
2.10.0 13.0 75 80 86 90 100 120 +120 | 310-314
2.9.1 12.6 50 60 70 75 80 86 90 | 310-314
2.9.1 12.8 70 75 80 86 90 100 120 | 310-314
2.9.1 13.0 75 80 86 90 100 120 +120 | 310-314
2.8.0 12.6 50 60 70 75 80 86 90 | 39-313
2.8.0 12.8 70 75 80 86 90 100 120 | 39-313
2.8.0 12.9 70 75 80 86 90 100 120 +120 | 39-313
2.7.1 11.8 37 50 60 70 75 80 86 90 | 39-313
2.7.1 12.6 50 60 70 75 80 86 90 | 39-313
2.7.1 12.8 75 80 86 90 100 120 +120 | 39-313
2.6.0 11.8 37 50 60 70 75 80 86 90 | 39-313
2.6.0 12.4 50 60 70 75 80 86 90 | 39-313
2.6.0 12.6 50 60 70 75 80 86 90 | 39-313
`

type oracleBuild struct {
	torch, cuda string
	sm          []int
	ptx         int
	lo, hi      int
}

func readOracle(t testing.TB) []oracleBuild {
	var out []oracleBuild
	for _, l := range strings.Split(strings.TrimSpace(oracleBuilds), "\n") {
		left, right, ok := strings.Cut(l, " | ")
		if !ok {
			t.Fatalf("line %q", l)
		}
		f := strings.Fields(left)
		b := oracleBuild{torch: f[0], cuda: f[1]}
		for _, x := range f[2:] {
			n, err := strconv.Atoi(strings.TrimPrefix(x, "+"))
			if err != nil {
				t.Fatal(err)
			}
			if x[0] == '+' {
				b.ptx = n
			} else {
				b.sm = append(b.sm, n)
			}
		}
		lo, hi, _ := strings.Cut(right, "-")
		b.lo, _ = strconv.Atoi(lo[1:])
		b.hi, _ = strconv.Atoi(hi[1:])
		out = append(out, b)
	}
	return out
}

// a driver as one number: 535.161.08 is 535161.
func driverNumber(d string) int {
	f := strings.Split(d, ".")
	a, _ := strconv.Atoi(f[0])
	b, _ := strconv.Atoi(f[1])
	return a*1000 + b
}

// runs says whether a build runs, and whether without minor-version compatibility.
func (b *oracleBuild) runs(driver string, cap, py int) (ok, direct bool) {
	d := driverNumber(driver)
	family := map[string]int{"11": 450080, "12": 525060, "13": 580065}[b.cuda[:2]]
	own := map[string]int{"11.8": 520061, "12.4": 550054, "12.6": 560028, "12.8": 570026, "12.9": 575051, "13.0": 580065, "13.2": 595045}[b.cuda]
	if d < family || py < b.lo || py > b.hi {
		return false, false
	}
	direct = d >= own
	native := false
	for _, s := range b.sm {
		native = native || s/10 == cap/10 && s%10 <= cap%10
	}
	jit := b.ptx != 0 && cap > b.ptx
	return native || jit && direct, direct
}

var oracleDrivers = []string{"450.203.03", "470.82.01", "525.60.13", "535.161.08", "550.54.15", "560.35.03", "570.86.15", "575.57.08", "580.65.06", "590.48.01", "595.45.04"}

// since and last are the first and the last driver branch that supports the GPU,
// 0 for none: NVIDIA's Unix graphics feature deprecation schedule, the CUDA
// toolkit that brought the architecture, read 2026-11-30.
var oracleGPUs = []struct {
	name        string
	cap         int
	since, last int
}{{"Tesla K80", 37, 0, 470}, {"Tesla M60", 52, 0, 580}, {"Tesla P100", 60, 0, 580}, {"Tesla V100-SXM2-32GB", 70, 0, 580}, {"Tesla T4", 75, 0, 0}, {"NVIDIA A100-SXM4-80GB", 80, 0, 0}, {"NVIDIA A40", 86, 455, 0},
	{"NVIDIA L40S", 89, 520, 0}, {"NVIDIA H100 80GB HBM3", 90, 520, 0}, {"NVIDIA B200", 100, 570, 0}, {"NVIDIA B300", 103, 575, 0}, {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, 570, 0}}

// branchStart is the first driver of the branches that were somebody's last.
var branchStart = map[int]string{470: "470.42.01", 580: "580.65.06"}

// TestOracle compares every answer of the planner with the oracle: driver ×
// GPU × Python × wish.
func TestOracle(t *testing.T) {
	bs := readOracle(t)
	n := 0
	for _, given := range oracleDrivers {
		for _, g := range oracleGPUs {
			driver, dropped, early := given, false, driverNumber(given)/1000 < g.since
			if g.last != 0 && driverNumber(given)/1000 > g.last {
				// Not both can be true: the nearest is the last branch for the GPU.
				driver, dropped = branchStart[g.last], true
			}
			for _, py := range []int{9, 11, 14} {
				var newest *oracleBuild
				byTorch := map[string][]*oracleBuild{}
				for i := range bs {
					b := &bs[i]
					if ok, _ := b.runs(driver, g.cap, py); ok {
						byTorch[b.torch] = append(byTorch[b.torch], b)
						if newest == nil {
							newest = b
						}
					}
				}
				in := Input{OS: "linux", Machine: "x86_64", Glibc: "2.35", Python: "3." + strconv.Itoa(py), Nodes: []Node{{Driver: given, GPUs: []GPU{{Name: g.name}}}}}
				label := fmt.Sprintf("%s %s 3.%d", given, g.name, py)
				certain := proven
				if dropped || early {
					certain = possible
				}
				// The wish for nothing: the newest that works.
				n++
				p := mustMake(t, in)
				if got := slices.ContainsFunc(p.Impossible, func(r Reason) bool { return r.ID == "driver-dropped-gpu" }); got != dropped {
					t.Errorf("%s: driver too new for the GPU: %v, the oracle says %v", label, got, dropped)
				}
				checkAnswer(t, label, p, newest, byTorch, OptNewest, driver, certain)
				// The wish to keep a release.
				for _, v := range []string{"2.6.0", "2.9.1", "2.14.1"} {
					n++
					in.Wish = v
					p := mustMake(t, in)
					if len(byTorch[v]) == 0 {
						if len(p.Impossible) == 0 {
							t.Errorf("%s torch %s: offered %s+%s, the oracle knows none", label, v, p.Options[0].Torch, p.Options[0].Tag)
						}
						if len(byTorch) > 0 && len(p.Options) == 0 {
							t.Errorf("%s torch %s: no nearest, the oracle knows %d releases", label, v, len(byTorch))
						}
						for _, o := range p.Options {
							inOracle(t, label, &o, byTorch)
						}
						continue
					}
					checkAnswer(t, label+" torch "+v, p, byTorch[v][0], byTorch, OptKeep, driver, certain)
				}
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d questions", n)
	}
	t.Logf("%d questions", n)
}

func mustMake(t *testing.T, in Input) *Plan {
	t.Helper()
	p, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func inOracle(t *testing.T, label string, o *Option, byTorch map[string][]*oracleBuild) {
	t.Helper()
	// Other patch releases of a series have the builds of the last.
	for v, bs := range byTorch {
		if minorOf(v) == minorOf(o.Torch) && slices.ContainsFunc(bs, func(b *oracleBuild) bool { return b.cuda == o.CUDA }) {
			return
		}
	}
	if minorOf(o.Torch) < "2.6" || strings.HasPrefix(o.Torch, "2.5") {
		return // before the oracle
	}
	t.Errorf("%s: %s+%s is not in the oracle", label, o.Torch, o.Tag)
}

func minorOf(v string) string { f := strings.Split(v, "."); return f[0] + "." + f[1] }

// checkAnswer holds an option against the oracle: the release, and that no build
// of it would have been better by the rule that docs/fix.md states.
func checkAnswer(t *testing.T, label string, p *Plan, want *oracleBuild, byTorch map[string][]*oracleBuild, id, driver, certain string) {
	t.Helper()
	if want == nil {
		if len(p.Options) > 0 && minorOf(p.Options[0].Torch) >= "2.6" {
			t.Errorf("%s: offered %s+%s, the oracle knows none", label, p.Options[0].Torch, p.Options[0].Tag)
		}
		return
	}
	i := slices.IndexFunc(p.Options, func(o Option) bool { return o.ID == id })
	if i < 0 {
		t.Errorf("%s: no option %s (%v)", label, id, p.Impossible)
		return
	}
	o := &p.Options[i]
	if o.Torch != want.torch {
		t.Errorf("%s: %s is %s, the oracle says %s", label, id, o.Torch, want.torch)
		return
	}
	if o.Certainty != certain {
		t.Errorf("%s: certainty %s", label, o.Certainty)
	}
	inOracle(t, label, o, byTorch)
	// The newest family, in it the newest direct build, else the oldest.
	best := ""
	for _, b := range byTorch[want.torch] {
		if best == "" || b.cuda[:2] > best[:2] {
			best = b.cuda
		}
	}
	fam := best[:2]
	best = ""
	var least string
	for _, b := range byTorch[want.torch] {
		if b.cuda[:2] != fam {
			continue
		}
		if least == "" || b.cuda < least {
			least = b.cuda
		}
		if _, direct := b.runs(driver, b.sm[len(b.sm)-1], b.lo); direct && b.cuda > best {
			best = b.cuda
		}
	}
	if best == "" {
		best = least
	}
	if o.CUDA != best {
		t.Errorf("%s: torch %s with CUDA %s, the oracle says %s", label, o.Torch, o.CUDA, best)
	}
}

// oracleROCm is a second reading for AMD: releases by the ROCm of their wheels,
// from pytorch.org's page of previous versions and the wheels' own version, with
// the Pythons of the release; and the first ROCm whose wheels have kernels for a
// GPU, from PYTORCH_ROCM_ARCH in pytorch's .ci/docker/manywheel/build.sh and its
// history; read 2026-11-30.
const oracleROCm = `
2.14.1 7.2 10 14
2.14.0 7.2 10 14
2.13.0 7.2 10 14
2.12.1 7.2 10 14
2.12.0 7.2 10 14
2.11.0 7.2 10 14
2.10.0 7.1 10 14
2.9.1 6.4 10 14
2.9.0 6.4 10 14
2.8.0 6.4 9 13
2.7.1 6.3 9 13
2.7.0 6.3 9 13
2.6.0 6.24 9 13
`

var oracleAMD = []struct {
	name  string
	since float64 // ROCm
}{{"MI50", 0}, {"MI100", 0}, {"MI210", 0}, {"amd_instinct_mi250x", 0}, {"MI300X", 0}, {"gfx942", 0}, {"MI355X", 7.0}, {"gfx950", 7.0}, {"RX 7900 XTX", 0}, {"gfx1151", 7.2}}

// TestOracleROCm: AMD GPU × Python × wish.
func TestOracleROCm(t *testing.T) {
	n := 0
	for _, g := range oracleAMD {
		for _, py := range []int{9, 11, 13, 14} {
			fits := map[string]string{}
			newest := ""
			for _, l := range strings.Split(strings.TrimSpace(oracleROCm), "\n") {
				var v string
				var rocm float64
				var lo, hi int
				if _, err := fmt.Sscan(l, &v, &rocm, &lo, &hi); err != nil {
					t.Fatal(err)
				}
				if rocm >= g.since && py >= lo && py <= hi {
					fits[v] = strings.Replace(strconv.FormatFloat(rocm, 'f', -1, 64), "6.24", "6.2.4", 1)
					if newest == "" {
						newest = v
					}
				}
			}
			for _, wish := range []string{"", "2.6.0", "2.7.1", "2.9.1", "2.10.0", "2.14.1", "2.15.0"} {
				n++
				label := fmt.Sprintf("%s 3.%d %s", g.name, py, wish)
				p := mustMake(t, Input{OS: "linux", Machine: "x86_64", Glibc: "2.35", Python: "3." + strconv.Itoa(py), Wish: wish, Nodes: []Node{{GPUs: []GPU{{Name: g.name}}}}})
				want := wish
				if wish == "" {
					want = newest
				}
				if fits[want] == "" {
					if len(p.Impossible) == 0 {
						t.Errorf("%s: offered %s, the oracle knows none", label, one(p))
					}
					for _, o := range p.Options {
						if fits[o.Torch] != o.ROCm && minorOf(o.Torch) >= "2.6" {
							t.Errorf("%s: nearest %s+%s is not in the oracle", label, o.Torch, o.Tag)
						}
					}
					continue
				}
				if len(p.Options) == 0 || p.Options[0].Torch != want || p.Options[0].ROCm != fits[want] {
					t.Errorf("%s: %s, the oracle says %s+rocm%s", label, one(p), want, fits[want])
				}
			}
		}
	}
	t.Logf("%d questions", n)
}
