package render

import (
	"bufio"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Style says how text is laid out.
type Style struct {
	Color bool // ANSI colours; only for terminals that want them
	Width int  // columns to wrap at; 0: 100
}

// printer writes wrapped, indented and perhaps coloured text.
type printer struct {
	w     *bufio.Writer
	style Style
}

func newPrinter(w io.Writer, s Style) *printer {
	if s.Width <= 0 {
		s.Width = 100
	}
	s.Width = max(s.Width, 40)
	return &printer{w: bufio.NewWriter(w), style: s}
}

const (
	bold   = "1"
	red    = "1;31"
	yellow = "1;33"
	green  = "1;32"
	cyan   = "36"
	dim    = "2"
)

func (p *printer) paint(code, s string) string {
	if !p.style.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) line(s string) { p.w.WriteString(strings.TrimRight(s, " ") + "\n") }

// para writes text wrapped at the width; every line is indented. A blank line
// in the text stays; lines that are indented by four or more (code) are not wrapped.
func (p *printer) para(indent int, text string) {
	pad := strings.Repeat(" ", indent)
	for _, blk := range blocks(text) {
		if blk.code {
			p.line(pad + blk.text)
			continue
		}
		for _, l := range wrap(blk.text, p.style.Width-indent) {
			p.line(pad + l)
		}
	}
}

// hang writes text with a first prefix and a hanging indent for the rest.
func (p *printer) hang(indent int, mark, text string) {
	pad := strings.Repeat(" ", indent)
	more := strings.Repeat(" ", displaywidth.String(mark))
	for i, l := range wrap(text, p.style.Width-indent-len(more)) {
		if i == 0 {
			p.line(pad + mark + l)
		} else {
			p.line(pad + more + l)
		}
	}
}

type block struct {
	text string
	code bool
}

// blocks joins the lines of paragraphs; list items and code keep their own lines.
func blocks(text string) []block {
	var out []block
	open := false
	for _, l := range strings.Split(text, "\n") {
		t := strings.TrimSpace(l)
		switch {
		case t == "":
			open = false
			if len(out) > 0 {
				out = append(out, block{text: ""})
			}
		case strings.HasPrefix(l, "    "):
			out, open = append(out, block{text: l, code: true}), false
		case strings.HasPrefix(t, "- ") || strings.HasPrefix(t, "|"):
			out, open = append(out, block{text: t}), true
		case open:
			last := &out[len(out)-1].text
			if endsCJK(*last) || startsCJK(t) {
				*last += t
			} else {
				*last += " " + t
			}
		default:
			out, open = append(out, block{text: t}), true
		}
	}
	return out
}

// wrap breaks text into lines of at most width columns, at blanks and between
// CJK characters, never before closing punctuation.
func wrap(s string, width int) []string {
	width = max(width, 20)
	if displaywidth.String(s) <= width {
		return []string{s}
	}
	var lines []string
	var line strings.Builder
	col := 0
	for _, tok := range tokens(s) {
		w := displaywidth.String(tok)
		if col > 0 && col+displaywidth.String(strings.TrimRight(tok, " ")) > width {
			lines = append(lines, strings.TrimRight(line.String(), " "))
			line.Reset()
			col = 0
			tok = strings.TrimLeft(tok, " ")
			w = displaywidth.String(tok)
		}
		line.WriteString(tok)
		col += w
	}
	if line.Len() > 0 {
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// tokens splits text where a line may break: after blanks, and around CJK characters.
func tokens(s string) []string {
	var out []string
	rs := []rune(s)
	start := 0
	for i := 1; i < len(rs); i++ {
		brk := rs[i-1] == ' ' && rs[i] != ' '
		if !brk && (isCJK(rs[i-1]) || isCJK(rs[i])) && rs[i] != ' ' && !noBreakBefore(rs[i]) && !noBreakAfter(rs[i-1]) {
			brk = true
		}
		if brk {
			out = append(out, string(rs[start:i]))
			start = i
		}
	}
	return append(out, string(rs[start:]))
}

func isCJK(r rune) bool {
	return r >= 0x2e80 && r <= 0x9fff || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xff60 || r >= 0x20000 && r <= 0x3ffff
}

func noBreakBefore(r rune) bool {
	return strings.ContainsRune("，。；：、！？）》」』】%)]},.;:!?”’…", r)
}
func noBreakAfter(r rune) bool { return strings.ContainsRune("（《「『【([{“‘", r) }

func endsCJK(s string) bool {
	rs := []rune(s)
	return len(rs) > 0 && isCJK(rs[len(rs)-1])
}

func startsCJK(s string) bool {
	for _, r := range s {
		return isCJK(r)
	}
	return false
}
