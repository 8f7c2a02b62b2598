package logs

import (
	"bytes"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Reports of this program that somebody pasted, saved or piped into a job's log
// quote lines of another log. They say nothing about this run, and are skipped.

// reportState is where in a report of this program the reader is.
type reportState uint8

const (
	noReport   reportState = iota
	jsonReport             // until the brace in column 1
	textHead               // verdict and message, before the first section
	textBody               // sections
)

// The first line of a report says "UNKNOWN  …" or, where it names a cause, has a
// line "id · certainty · who" behind it.
var (
	reportVerdict = lazyre.New(`^(?:UNKNOWN|无法判断)  .*(?:does not decide|Nothing wrong was found|无法判断|没有发现错误)`)
	reportCause   = lazyre.New(`^[a-z][a-z0-9]*(?:-[a-z0-9]+)+ · (?:proven|likely|possible|已证实|很可能|有可能) · `)
	reportEnd     = lazyre.New(`^ncclinic -v (?:lists the facts|列出全部事实)`)
	reportNot     = lazyre.New(`^(?:Traceback \(most recent|srun: |slurmstepd: |[\w.]*(?:Error|Exception)\b: )`)
	mailQuote     = lazyre.New(`^(?:> ?)+`)
)

// reportSections are the headings of a report in both languages. A test of the
// command holds that no report of it is taken for a log.
var reportSections = func() map[string]bool {
	m := map[string]bool{}
	for _, s := range []string{"Evidence", "Why", "Fix", "To be sure", "Also found", "Follows from it", "Notes", "Not looked at", "Leave out of the next job",
		"Could not be read", "Looked at", "Possible causes", "Facts",
		"证据", "原因", "解决办法", "如何确认", "同时发现", "由此引起", "说明", "未检查的项目", "下次提交时排除", "无法读取", "检查对象", "可能的原因", "事实"} {
		m[s] = true
	}
	return m
}()

// maxReportHead bounds the lines before the first section of a report.
const maxReportHead = 24

// report reports whether a line belongs to a report of this program.
func (r *reader) report(text string) bool {
	if r.inReport == noReport {
		return r.beginsReport(text)
	}
	t := unquote(text)
	r.reportLines++
	switch {
	case r.inReport == jsonReport:
		if t == "}" {
			r.inReport = noReport
			return true
		}
		s := strings.TrimLeft(t, " ")
		if s == "" || len(s) < len(t) && (strings.IndexByte(`"{}[]-`, s[0]) >= 0 || s[0] >= '0' && s[0] <= '9') {
			return true
		}
		r.inReport = noReport // it was cut off
		return false
	case reportEnd.MatchString(t):
		r.inReport = noReport
		return true
	case reportSections[t]:
		r.inReport = textBody
		return true
	case t == "" || strings.HasPrefix(t, "  "):
		return true
	case r.inReport == textHead && r.reportLines < maxReportHead && !reportNot.MatchString(t):
		return true
	}
	r.inReport = noReport
	return false
}

// beginsReport reports whether a report begins at a line.
func (r *reader) beginsReport(text string) bool {
	t := strings.TrimLeft(unquote(text), " ")
	if t == "" {
		return false
	}
	switch c := t[0]; {
	case c == '"' || c == '{':
		if !strings.Contains(t, "ncclinic.report/v") && !strings.Contains(t, "ncclinic.facts/v") && !strings.Contains(t, `"https://json.schemastore.org/sarif-`) {
			return c == '{' && strings.Contains(t, `"findings":`) // of another tool
		}
		if !strings.HasSuffix(t, "}") { // else one line is all of it
			r.inReport = jsonReport
		}
		r.reports++
		return true
	case r.reports > 0 && (t == "Facts" || t == "事实"): // below the end of check -v
		r.inReport = textBody
		return true
	case c == 'U' || c == "无"[0], c >= 'a' && c <= 'z' && strings.Contains(t, " · "):
		if !reportVerdict.MatchString(t) && !reportCause.MatchString(t) {
			return false
		}
		r.inReport, r.reportLines = textHead, 0
		r.reports++
		if r.headline > 0 {
			r.plain -= r.para - r.headline + 1 // the verdict, as it was wrapped
		}
		return true
	}
	return false
}

// plainLine counts a line that is of no report, and notes where one may begin:
// the verdict stands above the line by which a report is known.
func (r *reader) plainLine(text string) {
	t := unquote(text)
	switch t {
	case "":
		r.para, r.headline = 0, 0
		return
	case "{":
		return
	}
	r.plain++
	r.para++
	if i := strings.Index(t, "  "); i > 0 && i < 10 {
		switch t[:i] {
		case "OK", "WARNING", "BROKEN", "正常", "警告", "有故障":
			r.headline = r.para
		}
	}
}

// unquote takes the marks of a mail's quotation off.
func unquote(s string) string {
	if s == "" || s[0] != '>' {
		return s
	}
	return mailQuote.ReplaceAllString(s, "")
}

// mailed decides from a sample whether a log was pasted as a mail or a ticket
// quotes it.
func mailed(sample string) bool {
	n, quoted := 0, 0
	for l := range strings.Lines(sample) {
		if l = strings.TrimSpace(l); l != "" {
			if strings.HasPrefix(l, ">>>") {
				return false // a session of Python
			}
			n++
			if l[0] == '>' {
				quoted++
			}
		}
	}
	return quoted >= 4 && quoted*5 >= n*2
}

// mailQuoteBytes is unquote for a line as it was read.
func mailQuoteBytes(raw []byte) []byte {
	for len(raw) > 0 && raw[0] == '>' {
		raw = bytes.TrimPrefix(raw[1:], []byte(" "))
	}
	return raw
}

// markReport notes a file that holds nothing but reports.
func (r *reader) markReport() {
	if f := &r.out.Files[r.file]; r.reports > 0 && r.plain == 0 && f.Kind == fact.KindLog {
		f.Kind = fact.KindReport
	}
}
