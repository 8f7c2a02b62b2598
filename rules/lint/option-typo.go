package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("option-typo", func(c *Ctx) {
	if c.S.Generator {
		return
	}
	hit := func(p fact.Pos, tool, name, near string) {
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
			hit(e.Pos, "sbatch", e.Option, e.Near)
		}
	}
	for i := range c.S.Steps {
		st := &c.S.Steps[i]
		if st.Tool != "srun" || c.S.Commands[st.Cmd].Dead || c.S.Commands[st.Cmd].File != "" {
			continue
		}
		for _, o := range st.Opts {
			if !o.Known {
				hit(o.Pos, "srun", o.Name, o.Near)
			}
		}
	}
})

// letters reports that a name differs from another by its letters only, not by
// another word for the same.
func letters(name, near string) bool {
	d := len(name) - len(near)
	return d >= -2 && d <= 2 && name[0] == near[0]
}
