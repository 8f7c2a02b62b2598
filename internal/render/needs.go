package render

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// commands writes lines to be pasted, each in one line however long it is.
func (p *printer) commands(indent int, lines []string) {
	for _, l := range lines {
		p.line(strings.Repeat(" ", indent) + p.paint(cyan, Clean(l, false)))
	}
}

// needs writes what would decide: commands as commands, then words as a list.
func (p *printer) needs(indent int, needs []string, lang string) {
	for _, n := range needs {
		if diag.IsCommand(n) {
			p.commands(indent+2, []string{n})
		}
	}
	for _, n := range needs {
		if !diag.IsCommand(n) {
			p.hang(indent, "- ", Clean(diag.NeedText(n, lang), false))
		}
	}
}

// openTitle is the headline of an undecided finding: what kind of input it is
// about, or what was seen, or else plain.
func (w *words) openTitle(t diag.Texts, f *diag.Finding, lang, plain string) string {
	switch f.Args["variant"] {
	case diag.NoOutput:
		return w.noOutputTitle
	case diag.CutOff:
		return w.cutOffTitle
	}
	if seen := diag.Title(t, f, lang); seen != f.ID {
		return fmt.Sprintf(w.undecidedWhy, strings.TrimRight(Clean(seen, false), ".。"))
	}
	return plain
}
