package diag

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Text is the prose of one rule in one language. Keys of Sections are the same
// in every language: "why", "decide", "fix:ID", "message:VARIANT", "title:VARIANT".
type Text struct {
	Title    string // one line, with {placeholders}
	Message  string // what was found, with {placeholders}; may be empty for causes
	Sections map[string]string
}

// Texts finds the prose of a rule: id, then language ("en", "zh").
type Texts interface {
	Text(id, lang string) (Text, bool)
}

// Title returns the headline of a finding: the cause's own, with the finding's
// arguments, or that of the variant which Args["variant"] names.
func Title(t Texts, f *Finding, lang string) string {
	if x, ok := t.Text(f.ID, lang); ok && x.Title != "" {
		if v := f.Args["variant"]; v != "" && x.Sections["title:"+v] != "" {
			return Fill(x.Sections["title:"+v], f.Args.in(lang))
		}
		return Fill(x.Title, f.Args.in(lang))
	}
	if x, ok := t.Text(f.Rule, lang); ok && x.Title != "" {
		return Fill(x.Title, f.Args.in(lang))
	}
	return f.ID
}

// Message returns what was found in this instance: the text of the rule that
// found it (its variant when Args["variant"] names one), else the cause's.
func Message(t Texts, f *Finding, lang string) string {
	for _, id := range []string{f.Rule, f.ID} {
		x, ok := t.Text(id, lang)
		if !ok {
			continue
		}
		if v := f.Args["variant"]; v != "" {
			if m := x.Sections["message:"+v]; m != "" {
				return Fill(m, f.Args.in(lang))
			}
		}
		if x.Message != "" {
			return Fill(x.Message, f.Args.in(lang))
		}
	}
	return ""
}

// Section returns a section of the rule's text, the finding's rule first, then the cause.
func Section(t Texts, f *Finding, key, lang string) string {
	for _, id := range []string{f.Rule, f.ID} {
		if x, ok := t.Text(id, lang); ok && x.Sections[key] != "" {
			return Fill(x.Sections[key], f.Args.in(lang))
		}
	}
	return ""
}

// in returns the arguments as a language shows them: reasons, and the word for
// what is not there, are English in a report.
func (a Args) in(lang string) Args {
	if lang != "zh" {
		return a
	}
	var out Args
	set := func(k, v string) {
		if out == nil {
			out = Args{}
			for k, v := range a {
				out[k] = v
			}
		}
		out[k] = v
	}
	for k, v := range a {
		if strings.Contains(v, fact.NoValue) {
			set(k, strings.ReplaceAll(v, fact.NoValue, noValueZh))
		}
	}
	if r := a["reason"]; r != "" {
		set("reason", Reason(r, lang))
	}
	if out == nil {
		return a
	}
	return out
}

const noValueZh = "（无）"
