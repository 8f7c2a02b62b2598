package lint

import (
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
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
	refused := append([]fact.DirectiveError{}, s.Refused...)
	sort.SliceStable(refused, func(i, j int) bool { return refused[i].Pos.Before(refused[j].Pos) })
	for _, e := range refused {
		if dollar(e.Text) {
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
			c.Hit(e.Pos, "variant", "word", "word", fact.Clip(e.Text, 60))
			return
		case fact.RefuseQuote:
			c.Hit(e.Pos, "variant", "quote", "word", fact.Clip(e.Text, 60))
		case fact.RefuseColon:
			c.Hit(e.Pos, "variant", "word", "word", fact.Clip(e.Text, 60))
		case fact.RefuseNoValue:
			c.Hit(e.Pos, "variant", "novalue", "option", e.Text)
		case fact.RefuseValue:
			if e.Text == "" {
				continue
			}
			if e.Text == "=" { // --nodes = 1
				r := c.Hit(e.Pos, "variant", "blank", "option", e.Option)
				l := s.Line(e.Pos.Line)
				i := e.Pos.Col - 1
				a, b := i, i+1
				for a > 0 && (l[a-1] == ' ' || l[a-1] == '\t') {
					a--
				}
				for b < len(l) && (l[b] == ' ' || l[b] == '\t') {
					b++
				}
				from, _, _ := s.LineRange(e.Pos.Line)
				r.Edit(from+a, from+b, "=")
				return // the rest of the line follows from it
			}
			c.Hit(e.Pos, "variant", "value", "option", e.Option, "value", e.Text)
		}
	}
})
