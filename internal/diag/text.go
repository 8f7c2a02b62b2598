package diag

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
			return Fill(x.Sections["title:"+v], f.Args)
		}
		return Fill(x.Title, f.Args)
	}
	if x, ok := t.Text(f.Rule, lang); ok && x.Title != "" {
		return Fill(x.Title, f.Args)
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
				return Fill(m, f.Args)
			}
		}
		if x.Message != "" {
			return Fill(x.Message, f.Args)
		}
	}
	return ""
}

// Section returns a section of the rule's text, the finding's rule first, then the cause.
func Section(t Texts, f *Finding, key, lang string) string {
	for _, id := range []string{f.Rule, f.ID} {
		if x, ok := t.Text(id, lang); ok && x.Sections[key] != "" {
			return Fill(x.Sections[key], f.Args)
		}
	}
	return ""
}
