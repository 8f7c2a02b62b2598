package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("sbatch-after-command", func(c *Ctx) {
	s := c.S
	if s.Generator || s.FirstCmd.Line == 0 {
		return
	}
	for _, p := range s.Placeholders {
		if p.Line == s.FirstCmd.Line {
			return // the line stands for directives
		}
	}
	var lines []fact.Stray
	for _, x := range s.Stray {
		if x.Kind == fact.StrayLate && (len(x.Options) > 0 || strings.Contains(x.Text, " -")) {
			lines = append(lines, x)
		}
	}
	if len(lines) == 0 {
		return
	}
	// What only repeats an option that is in force loses nothing.
	first, lost := lines[0], []string{}
	for _, x := range lines {
		new := len(x.Options) == 0
		if new {
			lost = append(lost, clip(strings.TrimSpace(strings.TrimPrefix(x.Text, "#SBATCH")), 60))
		}
		for _, o := range x.Options {
			if d := s.Opt(o.Name); d == nil || d.Value != o.Value {
				new = true
				lost = append(lost, optText([]fact.Directive{o}))
			}
		}
		if new && len(lost) <= 1 {
			first = x
		}
	}
	var r *Result
	clash := ""
	mend := s.CRLF == 0 // else after the line endings
	for _, x := range lines {
		for _, o := range x.Options {
			if d := s.Opt(o.Name); d != nil && d.Value != o.Value {
				mend = false // which of the two is meant?
				if clash == "" {
					clash = d.Name
				}
			}
		}
		if len(x.Options) == 0 {
			mend = false
		}
	}
	if len(lost) == 0 {
		mend = false // what is repeated loses nothing
		r = c.Hit(first.Pos, "variant", "repeat", "line", itoa(s.FirstCmd.Line), "options", optText(first.Options)).Sev(diag.Note)
	} else {
		n := len(lost)
		if n > 4 {
			lost = append(lost[:4], "…")
		}
		r = c.Hit(first.Pos, "options", strings.Join(lost, ", "), "line", itoa(s.FirstCmd.Line), "count", itoa(n), "command", clip(strings.TrimSpace(s.Line(s.FirstCmd.Line)), 60))
	}
	r.Clash = clash
	if !mend {
		return
	}
	to, text := c.offset(at(s.FirstCmd.Line, 1)), ""
	for _, x := range lines {
		a, b := c.lineSpan(x.Line)
		text += strings.TrimRight(string(s.Src[a:b]), "\r\n") + "\n"
		r.Edit(a, b, "")
	}
	r.Edit(to, to, text)
})
