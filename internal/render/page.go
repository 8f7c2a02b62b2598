package render

import (
	"io"
	"regexp"
	"strings"
)

var (
	mdLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	mdCode = regexp.MustCompile("`([^`]*)`")
)

// Page writes a rule's Markdown page for a terminal: headings bold, code
// indented, links as their text.
func Page(w io.Writer, md string, s Style) error {
	p := newPrinter(w, s)
	code := false
	var para []string
	flush := func() {
		if len(para) > 0 {
			p.para(0, strings.Join(para, "\n"))
			para = nil
		}
	}
	for _, l := range strings.Split(strings.TrimRight(md, "\n"), "\n") {
		plain := mdCode.ReplaceAllString(mdLink.ReplaceAllString(l, "$1"), "$1")
		switch {
		case strings.HasPrefix(l, "```"):
			flush()
			code = !code
		case code:
			p.line("    " + p.paint(cyan, l))
		case strings.HasPrefix(strings.TrimLeft(l, "#"), " ") && l[0] == '#': // not #SBATCH
			flush()
			p.line(p.paint(bold, strings.TrimSpace(strings.TrimLeft(plain, "#"))))
		case strings.HasPrefix(l, "**") && strings.HasSuffix(l, "**"):
			flush()
			p.line(p.paint(bold, strings.Trim(plain, "*")))
		case strings.TrimSpace(l) == "":
			flush()
			p.line("")
		default:
			para = append(para, plain)
		}
	}
	flush()
	return p.w.Flush()
}
