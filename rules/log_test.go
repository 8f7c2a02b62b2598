package rules_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/rules"
)

// minLiteral is the shortest literal that may count by itself; a shorter one
// needs a regular expression that holds its context.
const minLiteral = 6

// sampleName is hit/NAME.log, hit/NAME.want.yaml or miss/NAME.log.
var sampleName = regexp.MustCompile(`^(?:hit/([a-z0-9-]+)\.(?:log|want\.yaml)|miss/[a-z0-9-]+\.log)$`)

// TestLogFiles checks every file of the log family by itself and against its
// own samples, and that the causes it names exist.
func TestLogFiles(t *testing.T) {
	base := loadLog(t)
	causes := causeIDs(t)
	sigs := map[string]string{}
	for i := range base.Rules {
		r := &base.Rules[i]
		if sigs[r.Sig] != "" {
			t.Errorf("%s: sig %s is also that of %s", r.Name, r.Sig, sigs[r.Sig])
		}
		sigs[r.Sig] = r.ID
		t.Run(r.ID, func(t *testing.T) {
			raw, err := fs.ReadFile(rules.EmbeddedLog(), r.Name)
			if err != nil {
				t.Fatal(err)
			}
			logHeader(t, r, causes)
			ar := txtar.Parse(raw)
			used := logProse(t, base, r.ID)
			logSamples(t, r, ar, used)
		})
	}
}

// TestLogSamples runs all samples through the engine with all signatures: what
// a file claims of its own lines must survive prefixes and the other rules.
func TestLogSamples(t *testing.T) {
	base := loadLog(t)
	opts := logs.Options{}
	for _, r := range base.Rules {
		opts.Signatures = append(opts.Signatures, logs.Signature{Rule: r.ID, Sig: r.Sig, Role: r.Role,
			Literals: r.Literals, Regex: r.Res, Strict: r.RegexRequired})
	}
	type sample struct {
		rule, name string
		data       []byte
	}
	var all []sample
	var ins []logs.Input
	for _, r := range base.Rules {
		if r.ID == "log-rank-prefix" {
			continue // the engine takes this prefix for the rank of the line; no event is left of it
		}
		raw, err := fs.ReadFile(rules.EmbeddedLog(), r.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(raw).Files {
			if strings.HasSuffix(f.Name, ".log") {
				all = append(all, sample{r.ID, f.Name, f.Data})
				ins = append(ins, logs.Input{Path: fmt.Sprintf("job-%d.out", len(all)), Open: open(f.Data)})
			}
		}
	}
	out, err := logs.Collect(context.Background(), ins, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Problems {
		t.Errorf("%s: %s", p.What, p.Why)
	}
	for i, s := range all {
		got := counted(out, i, s.rule)
		switch hit := strings.HasPrefix(s.name, "hit/"); {
		case hit && !got:
			t.Errorf("%s: %s: the engine finds nothing in\n%s", s.rule, s.name, s.data)
		case !hit && got:
			t.Errorf("%s: %s: the engine counts\n%s", s.rule, s.name, s.data)
		}
	}
}

func open(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(b))), nil }
}

func counted(l *fact.Logs, file int, id string) bool {
	for _, e := range l.Events {
		if e.File == file && e.Rule == id && (!e.Quoted || e.Role == "context" || e.Role == "noise") {
			return true
		}
	}
	return false
}

func loadLog(t *testing.T) *rules.LogBase {
	t.Helper()
	base, err := rules.LoadLog(rules.EmbeddedLog())
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func causeIDs(t *testing.T) map[string]bool {
	t.Helper()
	ents, err := fs.ReadDir(rules.Embedded(), "cause")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, e := range ents {
		ids[strings.TrimSuffix(e.Name(), path.Ext(e.Name()))] = true
	}
	return ids
}

func logHeader(t *testing.T, r *rules.LogRule, causes map[string]bool) {
	if !strings.HasPrefix(r.ID, "log-") {
		t.Errorf("id %s: wants log-…", r.ID)
	}
	if r.Since == "" || !regexp.MustCompile(`^S\d{3}$`).MatchString(r.Sig) {
		t.Errorf("since %q, sig %q", r.Since, r.Sig)
	}
	if !oneOf(r.Role, "cause", "consequence", "either", "context", "noise") {
		t.Errorf("role %q", r.Role)
	}
	if !oneOf(r.Certainty, "high", "low") {
		t.Errorf("certainty %q", r.Certainty)
	}
	if !oneOf(r.Source, "P", "N", "S", "T", "K") {
		t.Errorf("source %q", r.Source)
	}
	for _, re := range r.Res {
		if err := re.Check(); err != nil {
			t.Error(err)
		}
	}
	if r.RegexRequired && len(r.Res) == 0 {
		t.Error("regex_required without a regex")
	}
	seen := map[string]bool{}
	for _, l := range r.Literals {
		if seen[l] {
			t.Errorf("literal %q stands twice", l)
		}
		seen[l] = true
		if len(l) < minLiteral && !r.RegexRequired {
			t.Errorf("literal %q is too short to count without a regex", l)
		}
		if strings.ContainsAny(l, "\n\r\x1b") {
			t.Errorf("literal %q spans lines", l)
		}
	}
	for _, id := range append(append([]string{}, r.Proves...), r.Suggests...) {
		if !causes[id] {
			t.Errorf("names the cause %s, which has no file", id)
		}
	}
	if (r.Role == "noise" || r.Role == "consequence") && len(r.Proves) > 0 {
		t.Errorf("role %s, yet it proves %v", r.Role, r.Proves)
	}
	for _, x := range r.Refs {
		if _, err := time.Parse("2006-01-02", x.Date); err != nil || x.What == "" {
			t.Errorf("ref %q of %q: wants what and a date YYYY-MM-DD", x.What, x.Date)
		}
	}
}

func oneOf(s string, of ...string) bool {
	for _, x := range of {
		if s == x {
			return true
		}
	}
	return false
}

// logProse checks both languages and returns the placeholders of the text.
func logProse(t *testing.T, base *rules.LogBase, id string) map[string]bool {
	sets := map[string]map[string]bool{}
	for _, lang := range rules.Languages {
		x, ok := base.Text(id, lang)
		if !ok || x.Title == "" || x.Message == "" {
			t.Errorf("%s.md: wants # title and a message", lang)
			continue
		}
		han := strings.ContainsFunc(x.Title, func(c rune) bool { return unicode.Is(unicode.Han, c) })
		if han != (lang == "zh") {
			t.Errorf("%s.md is not in that language: %s", lang, x.Title)
		}
		set := map[string]bool{}
		for _, p := range diag.Placeholders(x.Title + "\n" + x.Message) {
			set[p] = true
		}
		sets[lang] = set
	}
	if d := cmp.Diff(sets["en"], sets["zh"]); d != "" {
		t.Errorf("placeholders differ between en.md and zh.md:\n%s", d)
	}
	return sets["en"]
}

func logSamples(t *testing.T, r *rules.LogRule, ar *txtar.Archive, used map[string]bool) {
	files := map[string][]byte{}
	for _, f := range ar.Files {
		if _, dup := files[f.Name]; dup {
			t.Errorf("%s stands twice", f.Name)
		}
		if f.Name != "en.md" && f.Name != "zh.md" && !sampleName.MatchString(f.Name) {
			t.Errorf("unknown file %s", f.Name)
		}
		files[f.Name] = f.Data
	}
	shown := map[string]bool{}
	hits, misses := 0, 0
	for name, data := range files {
		dir, file, _ := strings.Cut(name, "/")
		sample, isLog := strings.CutSuffix(file, ".log")
		if !isLog {
			if s, ok := strings.CutSuffix(file, ".want.yaml"); ok && files[dir+"/"+s+".log"] == nil {
				t.Errorf("%s has no log beside it", name)
			}
			continue
		}
		got, n := match(r, data, shown)
		if dir == "miss" {
			misses++
			if n > 0 {
				t.Errorf("%s counts", name)
			}
			continue
		}
		hits++
		if n == 0 {
			t.Errorf("%s does not count", name)
			continue
		}
		want := map[string]string{}
		if raw := files["hit/"+sample+".want.yaml"]; raw != nil {
			if err := yaml.Unmarshal(raw, &want); err != nil {
				t.Errorf("%s: %v", sample, err)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: args (-want +got):\n%s", name, d)
		}
		for p := range used {
			if got[p] == "" {
				t.Errorf("%s: the text uses {%s}, which this line does not give", name, p)
			}
		}
	}
	if hits == 0 || misses == 0 {
		t.Errorf("%d hit and %d miss samples, wants one of each", hits, misses)
	}
	for _, l := range r.Literals {
		if !shown[l] {
			t.Errorf("no hit sample holds the literal %q", l)
		}
	}
}

// match says what the signature by itself sees in a text: the arguments of the
// first line that gives each, and how many lines count.
func match(r *rules.LogRule, data []byte, shown map[string]bool) (map[string]string, int) {
	args, n := map[string]string{}, 0
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		has := false
		for _, l := range r.Literals {
			if strings.Contains(line, l) {
				has, shown[l] = true, true
			}
		}
		if !has {
			continue
		}
		ok := !r.RegexRequired
		for _, re := range r.Res {
			m := re.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			ok = true
			for i, name := range re.SubexpNames() {
				if name != "" && m[i] != "" && args[name] == "" {
					args[name] = m[i]
				}
			}
			break
		}
		if ok {
			n++
		}
	}
	return args, n
}
