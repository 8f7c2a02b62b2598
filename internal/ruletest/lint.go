package ruletest

import (
	"sort"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/rules"
	"github.com/ncclinic/ncclinic/rules/lint"
)

// lintWant is what hit/NAME.want.yaml expects of a lint rule.
type lintWant struct {
	Line     int               `yaml:"line"`
	Col      int               `yaml:"col"`
	Severity string            `yaml:"severity"`
	Certain  string            `yaml:"certainty"` // "": not looked at
	Args     map[string]string `yaml:"args"`
	Also     []string          `yaml:"also"` // other rules of level error that the sample hits too
}

// Lint checks the lint family: the files, and hit, miss and fixed samples. ␍ in
// a sample stands for a carriage return. The base must hold cause and lint.
func Lint(t *testing.T, base *rules.Base) {
	set := base.Set()
	for _, r := range set.Rules {
		if r.Family != "lint" {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			f := base.Files[r.ID]
			header(t, base, f)
			prose(t, base, f)
			if r.Cause != "" && (base.Files[r.Cause] == nil || base.Files[r.Cause].Family() != "cause") {
				t.Errorf("cause %s is no cause file", r.Cause)
			}
			if x, ok := f.Text("en"); !ok || x.Title == "" {
				t.Error("a lint rule needs a title")
			}
			if lint.Checks[r.ID] == nil {
				t.Fatal("no check stands beside the file")
			}
			lintSamples(t, base, r)
		})
	}
	for id := range lint.Checks {
		if f := base.Files[id]; f == nil || f.Family() != "lint" {
			t.Errorf("rules/lint: the check %s has no file", id)
		}
	}
}

// LintSamples returns the samples of a lint rule by kind and name.
func LintSamples(f *rules.File, kind string) map[string]string {
	out := map[string]string{}
	for name, data := range f.Sections(kind + "/") {
		if n, ok := strings.CutSuffix(name, ".sbatch"); ok {
			out[n] = strings.ReplaceAll(string(data), "␍", "\r")
		}
	}
	return out
}

func lintRun(base *rules.Base, name, src, only string) []lint.Result {
	s := script.Parse(name, []byte(src), script.Options{})
	var cl *lint.Cluster // a rule about the cluster brings one
	if raw, ok := base.Files[only].Section("cluster.yaml"); ok {
		cl = &lint.Cluster{}
		if err := strictYAML(raw, cl); err != nil {
			panic(err) // a sample of ours that cannot be read
		}
	}
	return lint.Run(base.Set(), s, lint.Options{Cluster: cl,
		Enable:  func(id string) bool { return id == only },
		Disable: func(id string) bool { return only != "" && id != only },
	})
}

func lintSamples(t *testing.T, base *rules.Base, r *diag.Rule) {
	f := base.Files[r.ID]
	hits, misses, fixed := LintSamples(f, "hit"), LintSamples(f, "miss"), LintSamples(f, "fixed")
	if len(hits) < 1 || len(misses) < minSamples {
		t.Errorf("%d hits and %d misses, wants at least 1 and %d", len(hits), len(misses), minSamples)
	}
	for name, src := range hits {
		t.Run("hit/"+name, func(t *testing.T) {
			var w lintWant
			raw, ok := f.Section("hit/" + name + ".want.yaml")
			if !ok {
				t.Fatal("no want.yaml")
			}
			if err := strictYAML(raw, &w); err != nil {
				t.Fatal(err)
			}
			rs := lintRun(base, name, src, r.ID)
			if len(rs) == 0 {
				t.Fatal("must hit")
			}
			at := rs[0].Where[0]
			if at.Line != w.Line || at.Col != w.Col {
				t.Errorf("is at %d:%d, want %d:%d", at.Line, at.Col, w.Line, w.Col)
			}
			sev := w.Severity
			if sev == "" {
				sev = string(r.Severity)
			}
			if string(rs[0].Severity) != sev {
				t.Errorf("severity is %s, want %s", rs[0].Severity, sev)
			}
			if w.Certain != "" && string(rs[0].Certainty) != w.Certain {
				t.Errorf("certainty is %s, want %s", rs[0].Certainty, w.Certain)
			}
			for k, v := range w.Args {
				if rs[0].Args[k] != v {
					t.Errorf("argument %s is %q, want %q", k, rs[0].Args[k], v)
				}
			}
			rep := diag.Report{}
			var es []lint.Edit
			for i := range rs {
				rep.Findings = append(rep.Findings, rs[i].Finding)
				es = append(es, rs[i].Edits...)
			}
			lintTexts(t, base, &rep)
			fix, ok := fixed[name]
			if !ok {
				t.Fatalf("no fixed/%s.sbatch", name)
			}
			if len(es) > 0 {
				if got := string(lint.Apply([]byte(src), es)); got != fix {
					t.Errorf("the edits make\n%s\nwant\n%s", got, fix)
				}
			}
			for _, x := range lintRun(base, name, fix, r.ID) {
				t.Errorf("the fixed script still hits at line %d: %v", x.Where[0].Line, x.Args)
			}
		})
	}
	for name, src := range misses {
		t.Run("miss/"+name, func(t *testing.T) {
			for _, x := range lintRun(base, name, src, r.ID) {
				t.Errorf("must not hit, but does at line %d: %v", x.Where[0].Line, x.Args)
			}
			s := script.Parse(name, []byte(src), script.Options{})
			for _, x := range lint.Run(base.Set(), s, lint.Options{}) {
				if x.Severity == diag.Error && r.Severity == diag.Error {
					t.Logf("%s hits at line %d", x.ID, x.Where[0].Line)
				}
			}
		})
	}
	for name, src := range fixed {
		for _, x := range lintRun(base, name, src, r.ID) {
			t.Errorf("fixed/%s hits at line %d", name, x.Where[0].Line)
		}
	}
}

// lintTexts shows all that a person could see and fails on gaps.
func lintTexts(t *testing.T, base *rules.Base, rep *diag.Report) {
	t.Helper()
	for i := range rep.Findings {
		f := &rep.Findings[i]
		for _, lang := range rules.Languages {
			texts := map[string]string{"title": diag.Title(base, f, lang), "message": diag.Message(base, f, lang), "why": diag.Section(base, f, "why", lang)}
			for _, fx := range f.Fixes {
				texts["fix:"+fx.ID] = diag.Section(base, f, "fix:"+fx.ID, lang)
			}
			var ks []string
			for k := range texts {
				ks = append(ks, k)
			}
			sort.Strings(ks)
			for _, k := range ks {
				if strings.TrimSpace(texts[k]) == "" {
					t.Errorf("%s %s %s: empty", f.ID, lang, k)
				}
				if ph := diag.Placeholders(texts[k]); len(ph) > 0 {
					t.Errorf("%s %s %s: nothing fills {%s}: %s", f.ID, lang, k, strings.Join(ph, "}, {"), texts[k])
				}
			}
		}
	}
}
