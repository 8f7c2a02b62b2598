package render

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// TextOptions say what a person wants to see.
type TextOptions struct {
	Lang        string
	Style       Style
	Verbose     bool     // all findings in full, every rule that was skipped
	MaxEvidence int      // lines of evidence for each finding; 0: 8
	Summary     []string // lines that say what was looked at, see Summary
	Planner     string   // command that plans what the cause needs, "" for none
	Artefact    bool     // a target that is no environment: what only a node has is not missed
	Packages    bool     // an artefact of packages alone
	NodeNamed   bool     // for an artefact a node was named
	OKTitle     string   // headline of a report that names no cause; "": by its subject
}

// Text writes a report for people: the verdict first, then cause, evidence,
// fix, what else was found, and what nobody looked at.
func Text(w io.Writer, rep *diag.Report, t diag.Texts, o TextOptions) error {
	if o.MaxEvidence <= 0 {
		o.MaxEvidence = 8
	}
	p := newPrinter(w, o.Style)
	x := textReport{p: p, rep: rep, t: t, o: o, ui: wordsFor(o.Lang), shown: map[string]bool{}}
	x.head()
	top, shown := rep.Top(), rep.Top()
	if shown == nil {
		shown = x.undecided()
	}
	if shown != nil {
		x.finding(shown, true)
	}
	x.others(shown)
	x.exclude()
	x.unseen()
	if top != nil {
		p.line("")
		if o.Planner != "" {
			p.hang(0, "", fmt.Sprintf(x.ui.plannerHint, Clean(o.Planner, false)))
		}
		p.line(p.paint(dim, fmt.Sprintf(x.ui.verboseHint, top.ID)))
	}
	return p.w.Flush()
}

type textReport struct {
	p   *printer
	rep *diag.Report
	t   diag.Texts
	o   TextOptions
	ui  *words
	// shown are the commands that stand in the text already.
	shown map[string]bool
}

func (x *textReport) head() {
	color := map[string]string{diag.OK: green, diag.Warned: yellow, diag.Broken: red, diag.Unknown: yellow}[x.rep.Verdict]
	title := x.ui.okTitle
	top := x.rep.Top()
	switch {
	case top != nil:
		title = Clean(diag.Title(x.t, top, x.o.Lang), false)
	case x.rep.Verdict == diag.Unknown:
		title = x.ui.unknownTitle
		if f := x.undecided(); f != nil {
			title = x.ui.openTitle(x.t, f, x.o.Lang, x.ui.undecidedTitle)
		}
	case x.o.OKTitle != "":
		title = Clean(x.o.OKTitle, false)
	case x.rep.Subject.Kind == "files":
		title = x.ui.okFilesTitle
	}
	word := x.ui.verdict[x.rep.Verdict]
	for i, l := range wrap(word+"  "+title, x.p.style.Width) {
		if i == 0 {
			l = x.p.paint(color, word) + x.p.paint(bold, strings.TrimPrefix(l, word))
		} else {
			l = x.p.paint(bold, l)
		}
		x.p.line(l)
	}
	if top != nil {
		x.p.line(x.p.paint(dim, fmt.Sprintf("%s · %s · %s", top.ID, x.ui.certainty[string(top.Certainty)], x.ui.actor[top.Actor])))
	}
	if len(x.o.Summary) > 0 {
		x.p.line("")
		for _, s := range x.o.Summary {
			name, _, _ := strings.Cut(s, " ")
			text := strings.TrimLeft(s[len(name):], " ")
			x.p.hang(2, s[:len(s)-len(text)], Clean(text, false))
		}
	}
}

// undecided is what failed in a report that names no cause: what was seen of
// it, and what would decide.
func (x *textReport) undecided() *diag.Finding {
	for i := range x.rep.Findings {
		if f := &x.rep.Findings[i]; f.ID == "unknown" {
			return f
		}
	}
	return nil
}

func (x *textReport) section(name string) {
	x.p.line("")
	x.p.line(x.p.paint(bold, name))
}

func (x *textReport) finding(f *diag.Finding, full bool) {
	if l := x.place(f); l != "" {
		x.p.line("")
		x.p.hang(0, "", l)
	}
	if m := diag.Message(x.t, f, x.o.Lang); m != "" {
		x.p.line("")
		x.p.para(0, Clean(m, true))
	}
	if len(f.Suggests) > 0 {
		x.section(x.ui.candidates)
		for _, id := range f.Suggests {
			t := diag.Title(x.t, &diag.Finding{ID: id}, x.o.Lang)
			if t != id {
				t += " [" + id + "]"
			}
			x.p.hang(2, "- ", Clean(t, false))
		}
	}
	if len(f.Evidence) > 0 {
		x.section(x.ui.evidence)
		x.evidence(f)
	}
	if why := diag.Section(x.t, f, "why", x.o.Lang); why != "" && full {
		x.section(x.ui.why)
		x.p.para(2, Clean(why, true))
	}
	if len(f.Fixes) > 0 {
		x.section(x.ui.fix)
		x.fixes(f)
	}
	x.decide(f)
}

func (x *textReport) decide(f *diag.Finding) {
	text := ""
	if f.Certainty != diag.Proven {
		text = diag.Section(x.t, f, "decide", x.o.Lang)
	}
	needs := x.unshown(f)
	if text == "" && len(needs) == 0 {
		return
	}
	x.section(x.ui.decide)
	if text != "" {
		x.p.para(2, Clean(text, true))
	}
	x.p.needs(2, needs, x.o.Lang)
}

// unshown returns the needs of a finding that stand nowhere above: the fix often
// ends with the command that decides, and several findings ask for the same one.
func (x *textReport) unshown(f *diag.Finding) []string {
	var out []string
	for _, n := range f.Needs {
		if !x.shown[n] {
			out = append(out, n)
			x.shown[n] = true
		}
	}
	return out
}

func (x *textReport) commands(indent int, lines []string) { x.p.commands(indent, lines) }

func (x *textReport) evidence(f *diag.Finding) {
	for i, e := range f.Evidence {
		if i == x.o.MaxEvidence && !x.o.Verbose {
			x.p.line("  " + fmt.Sprintf(x.ui.more, len(f.Evidence)-i))
			break
		}
		x.p.hang(2, "", x.evidenceLine(e))
	}
}

func (x *textReport) evidenceLine(e fact.Evidence) string {
	var b strings.Builder
	if e.Node != "" {
		fmt.Fprintf(&b, "[%s] ", Clean(e.Node, false))
	}
	if e.Rank != nil {
		fmt.Fprintf(&b, "[%s %d] ", x.ui.rank, *e.Rank)
	}
	place := Clean(e.Path, false)
	switch e.Source {
	case fact.SrcEnv:
		if strings.HasPrefix(e.Excerpt, e.Path+"=") {
			place = "" // it says so itself
		}
	case fact.SrcCommand:
		place = "$ " + place
	case fact.SrcLive:
		place = "--live " + place
	}
	if e.Line > 0 {
		place += fmt.Sprintf(":%d", e.Line)
	}
	b.WriteString(place)
	if e.Excerpt != "" {
		if place != "" {
			b.WriteString(": ")
		}
		b.WriteString(Clean(strings.TrimSpace(e.Excerpt), false))
	}
	return b.String()
}

func (x *textReport) fixes(f *diag.Finding) {
	for i, fix := range f.Fixes {
		if i > 0 {
			x.p.line("")
		}
		if note := diag.Section(x.t, f, "fix:"+fix.ID, x.o.Lang); note != "" {
			x.p.para(2, Clean(note, true))
		}
		for _, c := range fix.Commands {
			x.shown[c] = true
			x.commands(4, strings.Split(c, "\n"))
		}
	}
}

// others lists findings besides the cause, each in a line or two.
func (x *textReport) others(top *diag.Finding) {
	groups := []struct {
		name string
		want func(*diag.Finding) bool
	}{
		{x.ui.also, func(f *diag.Finding) bool {
			return f.Role == diag.Contributing && f.Severity != diag.Note || f.Role == diag.Cause
		}},
		{x.ui.follows, func(f *diag.Finding) bool { return f.Role == diag.Symptom }},
		{x.ui.notes, func(f *diag.Finding) bool {
			return f.Role == diag.Context || f.Role == diag.Contributing && f.Severity == diag.Note
		}},
	}
	for _, g := range groups {
		first := true
		for i := range x.rep.Findings {
			f := &x.rep.Findings[i]
			if f == top || !g.want(f) {
				continue
			}
			if first {
				x.section(g.name)
				first = false
			}
			x.brief(f)
		}
	}
}

func (x *textReport) brief(f *diag.Finding) {
	title := Clean(diag.Title(x.t, f, x.o.Lang), false)
	mark := "- "
	if f.Count > 1 {
		title += fmt.Sprintf(" (×%d)", f.Count)
	}
	if title != f.ID && f.Role != diag.Context {
		title += " [" + f.ID + "]"
	}
	if l := x.place(f); l != "" {
		title += " · " + l
	}
	msg := Clean(diag.Message(x.t, f, x.o.Lang), true)
	if title == f.ID && msg != "" { // a check of its own: its message says it all
		x.p.hang(2, mark, strings.Join(strings.Fields(msg), " "))
	} else {
		x.p.hang(2, mark, title)
		if f.Role != diag.Symptom || x.o.Verbose {
			x.p.para(4, msg)
		}
	}
	if f.Role != diag.Symptom || x.o.Verbose { // what follows from the cause needs no deciding
		x.p.needs(4, x.unshown(f), x.o.Lang)
	}
	if !x.o.Verbose {
		return
	}
	for _, e := range f.Evidence {
		x.p.hang(6, "", x.evidenceLine(e))
	}
	for _, fix := range f.Fixes {
		x.commands(6, fix.Commands)
	}
}

// unseen says which rules could not look and why, and what could not be read.
func (x *textReport) unseen() {
	if len(x.rep.Problems) > 0 {
		x.section(x.ui.unreadable)
		for i, pr := range x.rep.Problems {
			if i == 8 && !x.o.Verbose {
				x.p.line("  " + fmt.Sprintf(x.ui.more, len(x.rep.Problems)-i))
				break
			}
			x.p.hang(2, "- ", Clean(pr.What+x.ui.colon+diag.Reason(pr.Why, x.o.Lang), false))
		}
	}
	reasons := map[string][]string{}
	var order []string
	clean, gpu := 0, 0
	for _, r := range x.rep.Ran {
		switch r.Status {
		case diag.Clean:
			clean++
		case diag.Skipped, diag.RFailed:
			if r.Reason == diag.Undecided {
				continue // the candidates stand above
			}
			if x.o.Artefact && !x.o.Verbose {
				if diag.ForNode(r.Reason, x.o.Packages) {
					continue
				}
				if !x.o.NodeNamed && diag.ForGPU(r.Reason) {
					gpu++
					continue
				}
			}
			if reasons[r.Reason] == nil {
				order = append(order, r.Reason)
			}
			reasons[r.Reason] = append(reasons[r.Reason], r.Rule)
		}
	}
	if len(order) == 0 && gpu == 0 {
		return
	}
	sort.SliceStable(order, func(i, j int) bool { return len(reasons[order[i]]) > len(reasons[order[j]]) })
	x.section(x.ui.notLooked)
	if gpu > 0 {
		x.p.hang(2, "- ", x.ui.nameNode)
	}
	for i, why := range order {
		if i == 6 && !x.o.Verbose {
			x.p.line("  " + fmt.Sprintf(x.ui.more, len(order)-i))
			break
		}
		form := x.ui.rulesOf
		if len(reasons[why]) == 1 {
			form = x.ui.ruleOf
		}
		x.p.hang(2, "- ", Clean(fmt.Sprintf(form, len(reasons[why]), diag.Reason(why, x.o.Lang)), false))
		if x.o.Verbose {
			x.p.hang(6, "", strings.Join(reasons[why], ", "))
		}
	}
	if x.o.Verbose {
		x.p.line("  " + fmt.Sprintf(x.ui.ranClean, clean))
	}
}
