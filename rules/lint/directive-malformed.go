package lint

import (
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("directive-malformed", func(c *Ctx) {
	s := c.S
	if s.Generator {
		return
	}
	for _, x := range s.Stray {
		switch {
		case x.Kind == fact.StrayIndented && (s.FirstCmd.Line == 0 || x.Line < s.FirstCmd.Line):
			from, _, _ := s.LineRange(x.Line)
			c.Hit(at(x.Line, 1), "variant", "indented", "options", optText(x.Options)).Edit(from, from+x.Col-1, "")
		case x.Kind == fact.StrayMisspelt && (s.FirstCmd.Line == 0 || x.Line < s.FirstCmd.Line):
			word := x.Text
			if i := strings.IndexAny(word, " \t-"); i > 0 {
				word = word[:i]
			}
			from, _, _ := s.LineRange(x.Line)
			c.Hit(x.Pos, "variant", "misspelt", "word", word).Edit(from, from+len(word), "#SBATCH")
		}
	}
	// A line whose fault was said: what follows on it is no fault of its own.
	said := map[int]bool{}
	for i := range s.Directives {
		d := &s.Directives[i]
		switch v := d.Value; {
		case d.HasValue && strings.HasPrefix(d.Written, "--") && d.ValuePos.Line == d.Line && strings.HasPrefix(v, "=") && d.ValuePos.Col > d.Col+len(d.Written) && !said[d.Line] && !dollar(v):
			// --nodes = 1, --nodes =1, --nodes==1: "=" is taken into the value.
			said[d.Line] = true
			from, _, _ := s.LineRange(d.Line)
			l := s.Line(d.Line)
			a, b := d.Col-1+len(d.Written), d.ValuePos.Col
			variant := "blank"
			if strings.HasPrefix(l[a:], "==") {
				variant = "doubled"
			}
			for b < len(l) && (l[b] == ' ' || l[b] == '\t') {
				b++
			}
			c.Hit(d.ValuePos, "variant", variant, "option", d.Name).Edit(from+a, from+b, "=")
		case d.HasValue && len(d.Written) == 2 && d.ValuePos.Line == d.Line && strings.HasPrefix(v, "=") && !said[d.Line] && !dollar(v):
			// -N=2, -N = 2
			said[d.Line] = true
			r := c.Hit(d.Pos, "variant", "short", "word", d.Written, "value", v)
			switch d.Name {
			case "job-name", "output", "error":
				if v != "=" {
					r.Sev(diag.Warning) // sbatch takes any name
				}
			}
			from, _, _ := s.LineRange(d.Line)
			l := s.Line(d.Line)
			a, b := d.Col+1, d.ValuePos.Col
			for b < len(l) && (l[b] == ' ' || l[b] == '\t') {
				b++
			}
			if a <= d.ValuePos.Col-1 && strings.Trim(l[a:min(b, len(l))], " \t=") == "" {
				r.Edit(from+a, from+b, " ")
			}
		case d.HasValue && unclosed.MatchString(v):
			said[d.Line] = true // $(date +%s): the blank inside of it ends the word; sbatch-var-not-expanded
		}
	}
	refused := append([]fact.DirectiveError{}, s.Refused...)
	sort.SliceStable(refused, func(i, j int) bool { return refused[i].Pos.Before(refused[j].Pos) })
	for _, e := range refused {
		if dollar(e.Text) || said[e.Pos.Line] {
			continue // sbatch-var-not-expanded
		}
		switch e.Kind {
		case fact.RefuseDash:
			r := c.Hit(e.Pos, "variant", "dash", "word", e.Text)
			w := strings.TrimLeft(e.Text, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\uff0d-")
			from := c.offset(e.Pos)
			if strings.HasPrefix(string(s.Src[from:]), e.Text) {
				d := "--"
				if i := strings.IndexByte(w, '='); len(w) == 1 || i == 1 {
					d = "-"
				}
				r.Edit(from, from+len(e.Text), d+w)
			}
		case fact.RefuseWord:
			r := c.Hit(e.Pos, "variant", "word", "word", clip(e.Text, 60))
			if from, to, ok := c.looseValue(e); ok {
				r.Edit(from, to, "=")
			}
			return
		case fact.RefuseQuote:
			c.Hit(e.Pos, "variant", "quote", "word", clip(e.Text, 60))
		case fact.RefuseColon:
			c.Hit(e.Pos, "variant", "word", "word", clip(e.Text, 60))
		case fact.RefuseNoValue:
			c.Hit(e.Pos, "variant", "novalue", "option", e.Text)
		case fact.RefuseValue:
			if e.Text == "" {
				continue
			}
			c.Hit(e.Pos, "variant", "value", "option", e.Option, "value", e.Text)
		}
	}
})

// unclosed is a value that begins a substitution and does not end it.
var unclosed = lazyre.New("\\$\\([^)]*$|\\$\\{[^}]*$|^[^`]*`[^`]*$")

// looseValue finds the "=" between an option that needs no value and the value
// that was meant for it, with the blanks around: --exclusive = user.
func (c *Ctx) looseValue(e fact.DirectiveError) (from, to int, ok bool) {
	l := c.S.Line(e.Pos.Line)
	if !strings.HasPrefix(e.Text, "=") || e.Pos.Col < 1 || e.Pos.Col > len(l) {
		return 0, 0, false
	}
	for i := range c.S.Directives {
		d := &c.S.Directives[i]
		if end := d.Col - 1 + len(d.Written); d.Line == e.Pos.Line && !d.HasValue && strings.HasPrefix(d.Written, "--") && end < e.Pos.Col && strings.TrimSpace(l[end:e.Pos.Col-1]) == "" {
			to := e.Pos.Col
			for to < len(l) && (l[to] == ' ' || l[to] == '\t') {
				to++
			}
			if to == len(l) || l[to] == '#' || l[to] == '=' || l[to] == '-' {
				return 0, 0, false
			}
			base, _, _ := c.S.LineRange(e.Pos.Line)
			return base + end, base + to, true
		}
	}
	return 0, 0, false
}
