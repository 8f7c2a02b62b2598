package render

import (
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
