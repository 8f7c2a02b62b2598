// Package ruletest runs the samples that stand inside rule files through the
// real engine with the whole knowledge base, renders everything that a person
// could see in every language, and checks that the files hang together.
package ruletest

import (
	"sort"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/rules"
)

// Run checks the knowledge base as subtests: structure/ID for what the files
// say, samples/ID/hit/NAME and samples/ID/miss/NAME for what the rules do. The
// base must hold the families of rules.Environment.
func Run(t *testing.T, base *rules.Base) {
	t.Run("structure", func(t *testing.T) { structure(t, base) })
	t.Run("samples", func(t *testing.T) {
		for _, r := range base.Set().Rules {
			if r.Check == nil {
				continue
			}
			t.Run(r.ID, func(t *testing.T) { samples(t, base, r) })
		}
	})
}

// minSamples is how many samples of each kind a check needs: one that hits for
// one reason only, or one look-alike only, proves little.
const minSamples = 2

func samples(t *testing.T, base *rules.Base, r *diag.Rule) {
	all, err := Samples(base.Files[r.ID])
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	found := map[string]bool{}
	for _, s := range all {
		count[s.Kind]++
		t.Run(s.Kind+"/"+s.Name, func(t *testing.T) {
			for _, id := range runSample(t, base, r, s) {
				found[id] = true
			}
		})
	}
	for _, kind := range []string{"hit", "miss"} {
		if count[kind] < minSamples {
			t.Errorf("%s has %d %s samples, wants at least %d", r.ID, count[kind], kind, minSamples)
		}
	}
	if t.Failed() {
		return
	}
	for _, id := range r.Proves {
		if !found[id] && len(found) > 0 && !filtered() {
			t.Errorf("%s says that it proves %s, but no hit sample shows it", r.ID, id)
		}
	}
	for id := range found {
		if !contains(r.Proves, id) && !(id == r.ID && r.Role == diag.Context) {
			t.Errorf("%s found %s, which is not in its proves list", r.ID, id)
		}
	}
}

// filtered reports whether -run names single samples, so that what the others
// would have found is not known.
func filtered() bool { return strings.Count(runFlag(), "/") >= 3 }

// runSample runs one sample and returns the ids that the rule under test found.
func runSample(t *testing.T, base *rules.Base, r *diag.Rule, s Sample) []string {
	b, err := s.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	alone := diag.Run(only(base, r), b)
	whole := diag.Run(base.Set(), b)
	for _, ran := range whole.Ran {
		if ran.Status == diag.RFailed {
			t.Errorf("rule %s failed: %s", ran.Rule, ran.Reason)
		}
	}
	ran := alone.Ran[0]
	switch {
	case s.Kind == "hit" && ran.Status != diag.Hit:
		t.Errorf("must hit, but is %s %s", ran.Status, ran.Reason)
	case s.Kind == "miss" && ran.Status == diag.Hit:
		t.Errorf("must not hit, but found %s %v", alone.Findings[0].ID, alone.Findings[0].Args)
	}
	if s.Want.Status != "" && ran.Status != s.Want.Status {
		t.Errorf("status is %s %s, want %s", ran.Status, ran.Reason, s.Want.Status)
	}
	if s.Kind == "hit" {
		s.Want.checkOwn(t, &alone)
	}
	s.Want.checkTop(t, &whole)
	render(t, base, &alone)
	render(t, base, &whole)
	var ids []string
	for _, f := range alone.Findings {
		if f.ID == r.ID && f.Role == diag.Context && r.Role != diag.Context {
			continue // a note beside the causes that it proves
		}
		ids = append(ids, f.ID)
	}
	return ids
}

// only returns the knowledge base with one check: all others are prose and fixes.
func only(base *rules.Base, r *diag.Rule) *diag.Set {
	var rs []*diag.Rule
	for _, x := range base.Set().Rules {
		if x.ID != r.ID && x.Check != nil {
			c := *x
			c.Check = nil
			x = &c
		}
		rs = append(rs, x)
	}
	return diag.NewSet("test", rs)
}

// render shows everything that a person could see of a report in each language
// and fails on a placeholder that nothing fills and on text that is missing.
func render(t *testing.T, base *rules.Base, rep *diag.Report) {
	t.Helper()
	for i := range rep.Findings {
		f := &rep.Findings[i]
		if len(f.Fixes) == 0 && f.Severity != diag.Note {
			t.Errorf("%s (by %s): no fix fits these arguments: %v", f.ID, f.Rule, f.Args)
		}
		for _, lang := range rules.Languages {
			show := func(what, text string) {
				if ph := diag.Placeholders(text); len(ph) > 0 {
					t.Errorf("%s (by %s) %s %s: nothing fills {%s}: %s", f.ID, f.Rule, lang, what, strings.Join(ph, "}, {"), text)
				}
				if strings.TrimSpace(text) == "" {
					t.Errorf("%s (by %s) %s %s: empty", f.ID, f.Rule, lang, what)
				}
			}
			show("title", diag.Title(base, f, lang))
			show("message", diag.Message(base, f, lang))
			show("why", diag.Section(base, f, "why", lang))
			for _, id := range []string{f.Rule, f.ID} {
				x, _ := base.Text(id, lang)
				if _, ok := x.Sections["decide"]; ok {
					show("decide", diag.Section(base, f, "decide", lang))
				}
			}
			for _, fix := range f.Fixes {
				show("fix:"+fix.ID, diag.Section(base, f, "fix:"+fix.ID, lang))
				for _, c := range fix.Commands {
					show("command of fix:"+fix.ID, c)
				}
			}
			for _, n := range f.Needs {
				show("needs", n)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
