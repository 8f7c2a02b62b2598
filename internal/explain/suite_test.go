package explain_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/rules"
)

// engine is the knowledge base as the command uses it.
type engine struct {
	set  *diag.Set
	lb   *rules.LogBase
	sigs []logs.Signature
}

func newEngine(t testing.TB) *engine {
	t.Helper()
	base, err := rules.Load(rules.Embedded(), "test", "cause")
	if err != nil {
		t.Fatal(err)
	}
	lb, err := rules.LoadLog(rules.EmbeddedLog())
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{set: base.Set(), lb: lb}
	for i := range lb.Rules {
		r := &lb.Rules[i]
		e.sigs = append(e.sigs, logs.Signature{Rule: r.ID, Sig: r.Sig, Role: r.Role, Literals: r.Literals, Regex: r.Res, Strict: r.RegexRequired})
	}
	return e
}

func (e *engine) info(id string) (explain.RuleInfo, bool) {
	r := e.lb.ByID(id)
	if r == nil {
		return explain.RuleInfo{}, false
	}
	return explain.RuleInfo{Sig: r.Sig, Role: r.Role, Certainty: r.Certainty, Proves: r.Proves, Suggests: r.Suggests}, true
}

type file struct {
	name string
	data []byte
}

func (e *engine) run(t testing.TB, fs []file) diag.Report {
	t.Helper()
	var ins []logs.Input
	for _, f := range fs {
		ins = append(ins, logs.Input{Path: f.name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }})
	}
	l, err := logs.Collect(context.Background(), ins, logs.Options{Signatures: e.sigs, Mask: mask.Text})
	if err != nil && len(l.Files) == 0 {
		t.Fatal(err)
	}
	return explain.Explain(l, e.set, explain.Options{Rules: e.info})
}

// lookup is what a plain message lookup answers: the first cause line.
func (e *engine) lookup(t testing.TB, fs []file) string {
	var ins []logs.Input
	for _, f := range fs {
		ins = append(ins, logs.Input{Path: f.name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }})
	}
	l, err := logs.Collect(context.Background(), ins, logs.Options{Signatures: e.sigs})
	if err != nil {
		return "none"
	}
	for _, want := range []string{"cause", "either"} {
		for _, ev := range l.Events {
			r := e.lb.ByID(ev.Rule)
			if r == nil || r.Role != want {
				continue
			}
			for _, c := range append(append([]string{}, r.Proves...), r.Suggests...) {
				return c
			}
		}
	}
	return "none"
}

type expectation struct {
	Cause      string
	AlsoAccept []string `json:"also_accept"`
	Never      []string
	Rank       *int
	Node       *string
}

type testCase struct {
	id     string
	expect expectation
	files  []file
}

func readCases(t testing.TB) []testCase {
	t.Helper()
	dirs, err := filepath.Glob("../../testdata/cases/*/case.json")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no cases under testdata/cases", err)
	}
	var out []testCase
	for _, p := range dirs {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			ID     string
			Expect expectation
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(p, err)
		}
		dir := filepath.Dir(p)
		tc := testCase{id: filepath.Base(dir), expect: c.Expect}
		ents, _ := os.ReadDir(dir)
		for _, e := range ents {
			if e.Name() == "case.json" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			tc.files = append(tc.files, file{e.Name(), b})
		}
		out = append(out, tc)
	}
	return out
}

func answer(rep *diag.Report) string {
	switch {
	case rep.Cause != nil:
		return *rep.Cause
	case rep.Verdict == diag.Unknown:
		return "unknown"
	}
	return "none"
}

func judge(x expectation, got string) string {
	for _, w := range append([]string{x.Cause}, x.AlsoAccept...) {
		if got == w {
			return "right"
		}
	}
	for _, n := range x.Never {
		if got == n {
			if x.Cause == "none" {
				return "false alarm"
			}
			return "trap"
		}
	}
	switch {
	case got == "none" || got == "unknown":
		return "silent"
	case x.Cause == "none":
		return "false alarm"
	}
	return "wrong"
}

// TestCases holds the suite: how many cases are right, and that none ends in a
// trap or alarms on a healthy job. The plain lookup of messages stands beside
// it, to show what comparing evidence is worth.
func TestCases(t *testing.T) {
	e := newEngine(t)
	var score, plain = map[string]int{}, map[string]int{}
	ranks, named, n := 0, 0, 0
	for _, c := range readCases(t) {
		rep := e.run(t, c.files)
		got := answer(&rep)
		k := judge(c.expect, got)
		score[k]++
		plain[judge(c.expect, e.lookup(t, c.files))]++
		n++
		if k != "right" {
			t.Logf("%s: %s: got %s, want %s", c.id, k, got, c.expect.Cause)
			continue
		}
		if c.expect.Rank != nil {
			ranks++
			if top := rep.Top(); top != nil && namesRank(top, *c.expect.Rank) {
				named++
			} else {
				t.Logf("%s: rank %d is not named", c.id, *c.expect.Rank)
			}
		}
	}
	t.Logf("%-12s %7s %6s %6s %7s %12s %11s", "", "right", "trap", "wrong", "silent", "false alarm", "rank named")
	row := func(name string, s map[string]int, ranked string) {
		t.Logf("%-12s %5.1f %% %6d %6d %7d %12d %11s", name, 100*float64(s["right"])/float64(n), s["trap"], s["wrong"], s["silent"], s["false alarm"], ranked)
	}
	row("explain", score, fmt.Sprintf("%d/%d", named, ranks))
	row("lookup", plain, "")
	if score["right"]*100 < n*97 || score["trap"] > 0 || score["false alarm"] > 0 || named < ranks {
		t.Errorf("below the bar: %d of %d right, %d traps, %d false alarms, %d of %d ranks named", score["right"], n, score["trap"], score["false alarm"], named, ranks)
	}
}

func namesRank(f *diag.Finding, rank int) bool {
	for _, w := range f.Where {
		if w.Rank != nil && *w.Rank == rank {
			return true
		}
	}
	return false
}

var (
	isText  = regexp.MustCompile(`(?m)^(?:#!|#SBATCH|import |from \w+ import)`)
	session = regexp.MustCompile(`(?m)^(?:\([\w.+-]+\) )?(?:\[\S+@\S+[^\]]*\][$#]|\S+@\S+:\S*[$#]|\$ |PS [A-Z]:|\+ |>>> |[a-z][\w-]*\$ )`)
	labeled = regexp.MustCompile(`^\s*(\d+): `)
	stamped = regexp.MustCompile(`^(\[rank\d+\]:)?\[([EWIF])\d{3,4} \d\d:\d\d:\d\d\.\d+ `)
)

// loggy reports whether a file is output of a job, and not a listing, a
// session or a script, whose form means something.
func loggy(f file) bool {
	return !isText.Match(f.data) && !session.Match(f.data) && !strings.HasSuffix(f.name, ".sbatch") && !strings.HasSuffix(f.name, ".py") && !strings.HasSuffix(f.name, ".sh") &&
		bytes.Contains(f.data, []byte("\n")) && (bytes.Contains(f.data, []byte("Traceback")) || bytes.Contains(f.data, []byte("NCCL")) || bytes.Contains(f.data, []byte("srun:")) || len(f.data) > 20000)
}

func eachLine(b []byte, fn func(i int, l string) string) []byte {
	ls := strings.Split(string(b), "\n")
	var o strings.Builder
	for i, l := range ls {
		if i == len(ls)-1 && l == "" {
			break
		}
		o.WriteString(fn(i, l))
		o.WriteByte('\n')
	}
	return []byte(o.String())
}

// TestPresentation renders the cases anew: what lines look like must not change the cause.
func TestPresentation(t *testing.T) {
	e := newEngine(t)
	cases := readCases(t)
	forms := []struct {
		name string
		all  bool // applies to every file
		fn   func(c testCase, f file) []byte
	}{
		{"crlf", false, func(c testCase, f file) []byte { return bytes.ReplaceAll(f.data, []byte("\n"), []byte("\r\n")) }},
		{"ansi", false, func(c testCase, f file) []byte {
			return eachLine(f.data, func(i int, l string) string {
				if l == "" {
					return l
				}
				return "\x1b[0m\x1b[38;5;" + fmt.Sprint(i%200) + "m" + l + "\x1b[0m\x1b[K"
			})
		}},
		{"tagged", false, func(c testCase, f file) []byte {
			return eachLine(f.data, func(i int, l string) string { return "[job] " + l })
		}},
		{"noise", false, func(c testCase, f file) []byte {
			return eachLine(f.data, func(i int, l string) string {
				if i%7 == 3 {
					return l + "\nhf_xet: chunk cache at /tmp/xet is cold, fetching"
				}
				return l
			})
		}},
		{"stampless", false, func(c testCase, f file) []byte {
			return eachLine(f.data, func(i int, l string) string { return stamped.ReplaceAllString(l, "${1}[$2 ") })
		}},
		{"interleaved", false, func(c testCase, f file) []byte { return interleave(f.data) }},
		{"gzip", true, func(c testCase, f file) []byte {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(f.data)
			z.Close()
			return b.Bytes()
		}},
		{"utf16", false, func(c testCase, f file) []byte {
			out := []byte{0xff, 0xfe}
			for _, r := range string(f.data) {
				if r > 0xffff {
					r = 0xfffd
				}
				out = append(out, byte(r), byte(r>>8))
			}
			return out
		}},
	}
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			bad := 0
			for _, c := range cases {
				fs := make([]file, len(c.files))
				changed := false
				for i, f := range c.files {
					fs[i] = f
					if form.all || loggy(f) {
						fs[i].data = form.fn(c, f)
						changed = true
					}
				}
				if !changed {
					continue
				}
				rep := e.run(t, fs)
				if got := answer(&rep); judge(c.expect, got) != "right" {
					bad++
					t.Logf("%s: %s: got %s, want %s", c.id, judge(c.expect, got), got, c.expect.Cause)
				}
			}
			if bad > allowed[form.name] {
				t.Errorf("%d cases change their cause", bad)
			}
		})
	}
}

// allowed: without stamps, some merged logs no longer tell what came first.
var allowed = map[string]int{"stampless": 1}

// interleave mixes the lines of srun tasks anew, each task's in its own order.
func interleave(b []byte) []byte {
	ls := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	by := map[string][]int{}
	var pos []int
	for i, l := range ls {
		if m := labeled.FindStringSubmatch(l); m != nil {
			by[m[1]] = append(by[m[1]], i)
			pos = append(pos, i)
		}
	}
	if len(by) < 2 {
		return b
	}
	var keys []string
	for k := range by {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	rng := rand.New(rand.NewSource(7))
	out := append([]string(nil), ls...)
	for _, p := range pos {
		var open []string
		for _, k := range keys {
			if len(by[k]) > 0 {
				open = append(open, k)
			}
		}
		k := open[rng.Intn(len(open))]
		out[p] = ls[by[k][0]]
		by[k] = by[k][1:]
	}
	return []byte(strings.Join(out, "\n") + "\n")
}
