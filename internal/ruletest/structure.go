package ruletest

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/rules"
)

// structure checks what every rule file must have and that files fit each other.
func structure(t *testing.T, base *rules.Base) {
	for _, id := range base.IDs() {
		t.Run(id, func(t *testing.T) {
			f := base.Files[id]
			header(t, base, f)
			prose(t, base, f)
		})
	}
	for _, fam := range rules.Environment {
		for _, id := range rules.CheckIDs(fam) {
			if f := base.Files[id]; f == nil || f.Family() != fam {
				t.Errorf("rules/%s: the check %s has no file %s.txtar", fam, id, id)
			}
		}
	}
}

var (
	severities = []string{"", "error", "warning", "note"}
	actors     = []string{"user", "admin", "hardware", "upstream"}
	roles      = []string{"", "cause", "contributing", "symptom", "context"}
	fixKinds   = []string{diag.FixCommand, diag.FixEdit, diag.FixSetting, diag.FixAsk}
)

func header(t *testing.T, base *rules.Base, f *rules.File) {
	h := f.Header
	cause := f.Family() == "cause"
	if h.Since == "" {
		t.Error("no since")
	}
	if !contains(severities, h.Severity) || cause && h.Severity == "" {
		t.Errorf("severity %q", h.Severity)
	}
	if h.Actor != "" && !contains(actors, h.Actor) || cause && h.Actor == "" {
		t.Errorf("actor %q", h.Actor)
	}
	if !contains(roles, h.Role) {
		t.Errorf("role %q", h.Role)
	}
	if h.Stage%10 != 0 || h.Stage > 90 || h.Stage < 0 || cause && h.Stage == 0 {
		t.Errorf("stage %d: wants 10, 20 … 90", h.Stage)
	}
	if cause && len(h.Refs) == 0 {
		t.Error("a cause needs refs: where its facts come from and when they were read")
	}
	for _, r := range h.Refs {
		if _, err := time.Parse("2006-01-02", r.Date); err != nil || r.What == "" {
			t.Errorf("ref %q of %q: wants what and a date YYYY-MM-DD", r.What, r.Date)
		}
	}
	for _, id := range h.Proves {
		if x := base.Files[id]; x == nil || x.Family() != "cause" {
			t.Errorf("proves %s, which is no cause file", id)
		}
	}
	for _, id := range h.Explains {
		if base.Files[id] == nil {
			t.Errorf("explains %s, which has no file", id)
		}
		if id == h.ID {
			t.Error("explains itself")
		}
	}
	for _, w := range h.Needs {
		if !diag.KnownNeed(w) {
			t.Errorf("needs %q, which diag/needs.go does not know", w)
		}
	}
	switch r := base.Set().ByID(h.ID); {
	case cause && r.Check != nil:
		t.Error("a cause has no check: put it into install or node")
	case f.Family() == "install" || f.Family() == "node" || f.Family() == "nodes":
		if r.Check == nil {
			t.Error("no check is registered beside the file")
		}
		// A context rule reports facts about the situation under its own id.
		if len(h.Proves) == 0 && h.Role != string(diag.Context) {
			t.Error("proves nothing")
		}
	}
	fixes(t, f)
}

// bare reports whether some fix is shown when nothing is known but the cause:
// a log line alone can prove it, and a person must not be left without a way out.
func bare(fs []diag.FixTmpl) bool {
	for _, x := range fs {
		ok := true
		for _, c := range strings.Split(x.When, ",") {
			c = strings.TrimSpace(c)
			ok = ok && (c == "" || strings.HasPrefix(c, "!"))
		}
		if ok {
			return true
		}
	}
	return false
}

// fixes checks that a fix never shows a placeholder: whatever its commands and
// its note name must be in its condition.
func fixes(t *testing.T, f *rules.File) {
	if f.Family() == "cause" && !bare(f.Header.Fixes) {
		t.Error("no fix is shown when no argument is known")
	}
	seen := map[string]bool{}
	for _, x := range f.Header.Fixes {
		if x.ID == "" || seen[x.ID] {
			t.Errorf("fix id %q is empty or used twice", x.ID)
		}
		seen[x.ID] = true
		if !contains(fixKinds, x.Kind) {
			t.Errorf("fix %s: kind %q", x.ID, x.Kind)
		}
		if x.Kind == diag.FixCommand && len(x.Commands) == 0 {
			t.Errorf("fix %s: a command without commands", x.ID)
		}
		given := map[string]bool{}
		for _, c := range strings.Split(x.When, ",") {
			c = strings.TrimSpace(c)
			name, _, _ := strings.Cut(c, "=")
			given[name] = !strings.HasPrefix(c, "!")
		}
		texts := append([]string{}, x.Commands...)
		for _, lang := range rules.Languages {
			tx, _ := f.Text(lang)
			note := tx.Sections["fix:"+x.ID]
			if note == "" {
				t.Errorf("fix %s has no note (## fix:%s) in %s.md", x.ID, x.ID, lang)
			}
			texts = append(texts, note)
		}
		for _, s := range texts {
			for _, p := range diag.Placeholders(s) {
				if !given[p] {
					t.Errorf("fix %s uses {%s}, which its when: does not ask for", x.ID, p)
				}
			}
		}
		for _, c := range x.Commands {
			if strings.ContainsAny(c, "\n\r") || strings.TrimSpace(c) != c || c == "" {
				t.Errorf("fix %s: one command per line: %q", x.ID, c)
			}
		}
	}
}

func prose(t *testing.T, base *rules.Base, f *rules.File) {
	texts := map[string]diag.Text{}
	for _, lang := range rules.Languages {
		x, ok := f.Text(lang)
		if !ok {
			t.Fatalf("no %s.md", lang)
		}
		texts[lang] = x
	}
	ref := parts(texts[rules.Languages[0]])
	for _, lang := range rules.Languages {
		p := parts(texts[lang])
		for _, k := range keys(p) {
			if _, ok := ref[k]; !ok {
				t.Errorf("%s.md has %q, %s.md has not", lang, k, rules.Languages[0])
				continue
			}
			if a, b := phSet(ref[k]), phSet(p[k]); a != b {
				t.Errorf("%s: placeholders are {%s} in %s and {%s} in %s", k, a, rules.Languages[0], b, lang)
			}
			if strings.TrimSpace(p[k]) == "" {
				t.Errorf("%s.md: %s is empty", lang, k)
			}
			if han(p[k]) != (lang == "zh") {
				t.Errorf("%s.md: %s is not in that language: %s", lang, k, p[k])
			}
		}
		for k := range ref {
			if _, ok := p[k]; !ok {
				t.Errorf("%s.md lacks %q", lang, k)
			}
		}
	}
	fix := map[string]bool{}
	for _, x := range f.Header.Fixes {
		fix[x.ID] = true
	}
	for k := range ref {
		switch {
		case k == "title" || k == "message" || k == "why" || k == "decide" || strings.HasPrefix(k, "message:") || strings.HasPrefix(k, "title:"):
		case strings.HasPrefix(k, "fix:") && (fix[k[4:]] || f.Family() != "cause" && provedFix(base, f, k[4:])):
		default:
			t.Errorf("unknown section %q", k)
		}
	}
	if f.Family() == "cause" {
		for _, k := range []string{"title", "message", "why"} {
			if ref[k] == "" {
				t.Errorf("a cause needs a %s", k)
			}
		}
		// A cause can be proven by a log line alone, which brings no arguments.
		for _, k := range []string{"title", "message", "why", "decide"} {
			if ph := diag.Placeholders(ref[k]); len(ph) > 0 {
				t.Errorf("%s of a cause must stand without arguments, but uses {%s}", k, strings.Join(ph, "}, {"))
			}
		}
		return
	}
	if ref["message"] == "" {
		has := false
		for k := range ref {
			has = has || strings.HasPrefix(k, "message:")
		}
		if !has {
			t.Error("a check needs a message")
		}
	}
}

// provedFix reports whether a cause that f proves has the fix: a check may word its note anew.
func provedFix(base *rules.Base, f *rules.File, id string) bool {
	for _, c := range f.Header.Proves {
		if x := base.Files[c]; x != nil {
			for _, fx := range x.Header.Fixes {
				if fx.ID == id {
					return true
				}
			}
		}
	}
	return false
}

func parts(t diag.Text) map[string]string {
	p := map[string]string{}
	if t.Title != "" {
		p["title"] = t.Title
	}
	if t.Message != "" {
		p["message"] = t.Message
	}
	for k, v := range t.Sections {
		p[k] = v
	}
	return p
}

func phSet(s string) string {
	m := map[string]bool{}
	for _, p := range diag.Placeholders(s) {
		m[p] = true
	}
	return strings.Join(keys(m), "}, {")
}

func han(s string) bool {
	for _, r := range s {
		if unicode.Is(unicode.Han, r) {
			return true
		}
	}
	return false
}
