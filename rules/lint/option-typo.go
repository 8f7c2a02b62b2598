package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("option-typo", func(c *Ctx) {
	if c.S.Generator {
		return
	}
	hit := func(p fact.Pos, tool, name, near string, maybe []string) {
		if near == "" && len(maybe) > 0 && !c.O.Site[name] {
			if len(maybe) > 6 {
				maybe = append(maybe[:5:5], "…")
			}
			c.Hit(p, "variant", "ambiguous", "tool", tool, "option", name, "options", strings.ReplaceAll("--"+strings.Join(maybe, ", --"), "--…", "…"))
			return
		}
		if near == "" || c.O.Site[name] || dollar(name) || strings.ContainsAny(name, "<>{}[]") {
			return
		}
		h := c.Hit(p, "tool", tool, "option", name, "near", near)
		from := c.offset(p)
		if w := "--" + name; strings.HasPrefix(string(c.S.Src[from:]), w) && letters(name, near) {
			h.Edit(from+2, from+len(w), near)
		}
	}
	for _, e := range c.S.Refused {
		if e.Kind == fact.RefuseUnknown {
			hit(e.Pos, "sbatch", e.Option, e.Near, e.Maybe)
		}
	}
	for i := range c.S.Steps {
		st := &c.S.Steps[i]
		if st.Tool != "srun" || c.S.Commands[st.Cmd].Dead || c.S.Commands[st.Cmd].File != "" {
			continue
		}
		for _, o := range st.Opts {
			if o.Known && o.HasValue && strings.HasPrefix(o.Value, "=") {
				equals(c, &o)
				continue
			}
			if !o.Known {
				hit(o.Pos, "srun", o.Name, o.Near, o.Maybe)
			}
		}
	}
})

// equals reports a value that begins with "=": --ntasks = 8, -n=8. The place of
// the option is that of the word with its value.
func equals(c *Ctx, o *fact.Directive) {
	src, from := c.S.Src, c.offset(o.Pos)
	word := string(src[from:])
	if i := strings.IndexAny(word, " \t\r\n"); i >= 0 {
		word = word[:i]
	}
	if strings.HasPrefix(word, "--") {
		i := strings.IndexByte(word, '=')
		if i < 0 || word[i+1:] != o.Value {
			return // out of a variable
		}
		c.Hit(o.Pos, "variant", "equals", "tool", "srun", "option", o.Name, "value", o.Value).Sev(diag.Error).Edit(from+i, from+i+1, "")
		return
	}
	if len(word) > 2 && word[0] == '-' && word[2:] == o.Value { // -n=8
		c.Hit(o.Pos, "variant", "short", "tool", "srun", "option", word[:2], "value", o.Value).Sev(diag.Error).Edit(from+2, from+3, " ")
		return
	}
	if word != o.Value {
		return
	}
	a, b := from, from+1
	for a > 0 && (src[a-1] == ' ' || src[a-1] == '\t') {
		a--
	}
	for b < len(src) && (src[b] == ' ' || src[b] == '\t') {
		b++
	}
	r := c.Hit(o.Pos, "variant", "equals", "tool", "srun", "option", o.Name, "value", o.Value).Sev(diag.Error)
	if b < len(src) && src[b] > ' ' && src[b] != '\\' && src[b] != '-' {
		with := "="
		if k := a - 2; k >= 0 && src[k] == '-' && (k == 0 || src[k-1] <= ' ') { // -n = 8
			with = " "
		}
		r.Edit(a, b, with)
	}
}

// letters reports that a name differs from another by its letters only, not by
// another word for the same.
func letters(name, near string) bool {
	d := len(name) - len(near)
	return d >= -2 && d <= 2 && name[0] == near[0]
}
