package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// LintFile is one script and what was found in it.
type LintFile struct {
	Name     string
	Line     func(n int) string // source text, safe to show
	Findings []diag.Finding
	EndCols  []int // of each finding; 0: not known
}

// LintOptions say what a person wants to see of lint findings.
type LintOptions struct {
	Lang    string
	Style   Style
	Verbose bool // why and fix of each finding
	Notes   bool // findings of level note too
}

var lintWords = map[string]struct{ error, warning, note, clean, sum, more, why, fix string }{
	"en": {"error", "warning", "note", "nothing wrong in %s", "%s, %s in %s", "; %s (--notes shows them)", "why: ", "fix: "},
	"zh": {"错误", "警告", "提示", "检查了 %s，没有发现问题", "%s、%s，共检查 %s", "；另有 %s（--notes 可显示）", "原因：", "解决："},
}

// LintText writes findings as file:line:col: message [rule], each with the
// source line and a caret.
func LintText(w io.Writer, files []LintFile, t diag.Texts, o LintOptions) error {
	p := newPrinter(w, o.Style)
	x := lintWords[o.Lang]
	if x.error == "" {
		x = lintWords["en"]
	}
	var errs, warns, notes int
	for _, f := range files {
		for i := range f.Findings {
			d := &f.Findings[i]
			word, color := x.error, red
			switch d.Severity {
			case diag.Error:
				errs++
			case diag.Warning:
				warns++
				word, color = x.warning, yellow
			default:
				notes++
				if !o.Notes {
					continue
				}
				word, color = x.note, cyan
			}
			at := d.Where[0]
			msg := strings.Join(strings.Fields(diag.Message(t, d, o.Lang)), " ")
			p.line(fmt.Sprintf("%s: %s: %s %s", p.paint(bold, fmt.Sprintf("%s:%d:%d", Clean(f.Name, false), at.Line, at.Col)), p.paint(color, word), Clean(msg, false), p.paint(dim, "["+d.ID+"]")))
			p.caret(f.Line(at.Line), at.Line, at.Col, color)
			if o.Verbose {
				p.hang(4, x.why, Clean(diag.Section(t, d, "why", o.Lang), false))
				for _, fx := range d.Fixes {
					p.hang(4, x.fix, Clean(diag.Section(t, d, "fix:"+fx.ID, o.Lang), false))
				}
			}
		}
	}
	n := func(k int, en, zh string) string {
		switch {
		case o.Lang == "zh":
			return fmt.Sprintf("%d %s", k, zh)
		case k == 1:
			return "1 " + en
		}
		return fmt.Sprintf("%d %ss", k, en)
	}
	scripts := n(len(files), "script", "个脚本")
	sum := fmt.Sprintf(x.sum, n(errs, "error", "个错误"), n(warns, "warning", "个警告"), scripts)
	if errs+warns == 0 {
		sum = fmt.Sprintf(x.clean, scripts)
	}
	if notes > 0 && !o.Notes {
		sum += fmt.Sprintf(x.more, n(notes, "note", "条提示"))
	}
	p.line(sum)
	return p.w.Flush()
}

// caret writes a source line with a caret below the column; long lines are cut
// around it.
func (p *printer) caret(src string, line, col int, color string) {
	rs := []rune(src)
	from := 0
	const keep = 110
	if col > keep-20 {
		from = col - keep/2
	}
	from = min(from, len(rs))
	to := min(len(rs), from+keep)
	before := Clean(string(rs[from:min(max(from, col-1), to)]), false)
	text := before + Clean(string(rs[min(max(from, col-1), to):to]), false)
	if strings.TrimSpace(text) == "" {
		return
	}
	num := fmt.Sprintf("%5d | ", line)
	p.line(p.paint(dim, num) + text)
	p.line(strings.Repeat(" ", len(num)+displaywidth.String(before)) + p.paint(color, "^"))
}

// LintGitHub writes workflow commands that GitHub shows on the lines of a change.
func LintGitHub(w io.Writer, files []LintFile, t diag.Texts, lang string) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	prop := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range files {
		for i := range f.Findings {
			d := &f.Findings[i]
			level := map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning"}[d.Severity]
			if level == "" {
				level = "notice"
			}
			msg := Clean(diag.Message(t, d, lang), true)
			if _, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", level, prop.Replace(Clean(f.Name, false)), d.Where[0].Line, d.Where[0].Col, prop.Replace(d.ID), data.Replace(msg)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkstyle's own layout, which most review tools read.
type checkstyleFile struct {
	Name   string            `xml:"name,attr"`
	Errors []checkstyleError `xml:"error"`
}

type checkstyleError struct {
	Line     int    `xml:"line,attr"`
	Column   int    `xml:"column,attr"`
	Severity string `xml:"severity,attr"`
	Message  string `xml:"message,attr"`
	Source   string `xml:"source,attr"`
}

// LintCheckstyle writes findings in checkstyle's XML.
func LintCheckstyle(w io.Writer, files []LintFile, t diag.Texts, lang string) error {
	out := struct {
		XMLName xml.Name         `xml:"checkstyle"`
		Version string           `xml:"version,attr"`
		Files   []checkstyleFile `xml:"file"`
	}{Version: "4.3"}
	for _, f := range files {
		cf := checkstyleFile{Name: Clean(f.Name, false)}
		for i := range f.Findings {
			d := &f.Findings[i]
			sev := string(d.Severity)
			if d.Severity == diag.Note {
				sev = "info"
			}
			cf.Errors = append(cf.Errors, checkstyleError{Line: d.Where[0].Line, Column: d.Where[0].Col, Severity: sev,
				Message: Clean(strings.Join(strings.Fields(diag.Message(t, d, lang)), " "), false), Source: "ncclinic." + d.ID})
		}
		out.Files = append(out.Files, cf)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
