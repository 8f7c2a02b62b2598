package lint

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/rules/lint"
)

// Change is a rule whose edits were made, or were left out.
type Change struct {
	Rule   string
	Lines  []int    // of the findings, in the script as it was
	Brings []string // rules that the edits would make hit: why they were left out
	Clash  string   // option with two values: why there is no edit
}

// Mended is a script after edits, and what they did.
type Mended struct {
	Src  []byte
	Done []Change
	Left []Change
	// What sbatch reads now and did not before, and the other way round: edits
	// that bring dropped options back change what is submitted.
	Adds, Drops []string
	// What sbatch never read: it refused the script for it.
	Refused []string
}

// maxRounds bounds repeated fixing: an edit may reveal what it hid (a directive
// that was not read before).
const maxRounds = 5

// Fix makes the edits of all findings until none is left. Edits that would make
// another error or warning hit are left out: a person has to decide.
func Fix(name string, src []byte, o Options) Mended {
	m := Mended{Src: src}
	first := File(name, src, o)
	for i := range first.Findings {
		if f := &first.Findings[i]; f.Clash != "" && len(f.Edits) == 0 {
			m.Left = append(m.Left, Change{Rule: f.ID, Lines: []int{f.Where[0].Line}, Clash: f.Clash})
		}
	}
	if len(first.Edits()) == 0 {
		return m
	}
	before := counts(&first)
	with := map[string]bool{} // rules whose edits are made; nil entry: not tried
	out, seen := fixpoint(name, src, o, nil)
	if brings := more(name, out, o, before); len(brings) > 0 {
		// One rule after the other, those that bring nothing new.
		var ids []string
		for i := range first.Findings {
			if f := &first.Findings[i]; len(f.Edits) > 0 && !slices.Contains(ids, f.ID) {
				ids = append(ids, f.ID)
			}
		}
		out = src
		seen = nil
		for _, id := range ids {
			with[id] = true
			next, did := fixpoint(name, src, o, with)
			if b := more(name, next, o, before); len(b) > 0 {
				delete(with, id)
				m.Left = append(m.Left, Change{Rule: id, Lines: linesOf(&first, id), Brings: b})
				continue
			}
			out, seen = next, did
		}
	}
	for _, id := range seen {
		m.Done = append(m.Done, Change{Rule: id, Lines: linesOf(&first, id)})
	}
	m.Src = out
	if !bytes.Equal(out, src) {
		last := File(name, out, o)
		m.Adds, _ = differ(first.Script, last.Script)
		m.Drops, m.Refused = differ(last.Script, first.Script)
	}
	return m
}

// fixpoint makes the edits of some rules, nil: of all, until none is left, and
// says which rules made some.
func fixpoint(name string, src []byte, o Options, with map[string]bool) (out []byte, did []string) {
	for range maxRounds {
		r := File(name, src, o)
		var es []lint.Edit
		for i := range r.Findings {
			f := &r.Findings[i]
			if len(f.Edits) == 0 || with != nil && !with[f.ID] {
				continue
			}
			es = append(es, f.Edits...)
			if !slices.Contains(did, f.ID) {
				did = append(did, f.ID)
			}
		}
		next := lint.Apply(src, es)
		if bytes.Equal(next, src) {
			break
		}
		src = next
	}
	return src, did
}

// counts counts the errors and warnings by rule.
func counts(r *Report) map[string]int {
	n := map[string]int{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Severity != diag.Note {
			n[f.ID]++
		}
	}
	return n
}

// more lists the rules that hit more often than before.
func more(name string, src []byte, o Options, before map[string]int) []string {
	r := File(name, src, o)
	var out []string
	for id, n := range counts(&r) {
		if n > before[id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func linesOf(r *Report, id string) []int {
	var out []int
	for i := range r.Findings {
		if f := &r.Findings[i]; f.ID == id && len(f.Edits) > 0 {
			out = append(out, f.Where[0].Line)
		}
	}
	return out
}

// differ lists the options in force in b that a has not, or has otherwise; apart
// those that make sbatch refuse b.
func differ(a, b *fact.Script) (out, refused []string) {
	for i := range b.Directives {
		d := &b.Directives[i]
		if old := a.Opt(d.Name); d.Het != 0 || b.Opt(d.Name) != d || old != nil && old.Value == d.Value {
			continue
		}
		t := d.Written
		switch {
		case d.HasValue && strings.HasPrefix(t, "--"):
			t += "=" + d.Value
		case d.HasValue:
			t += " " + d.Value
		}
		to := &out
		if slices.ContainsFunc(b.Refused, func(e fact.DirectiveError) bool {
			return strings.HasPrefix(d.Value, "=") || e.Pos == d.Pos || e.Kind == fact.RefuseValue && e.Option == d.Name && e.Text == d.Value
		}) {
			to = &refused
		}
		*to = append(*to, fact.Clip(mask.Text(t), 80))
	}
	return out, refused
}
