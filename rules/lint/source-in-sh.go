package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("source-in-sh", func(c *Ctx) {
	if c.S.Shell != "sh" && c.S.Shell != "dash" || !c.S.Parsed {
		return
	}
	hit := func(p fact.Pos, what string) {
		h := c.Hit(p, "what", what, "shell", c.S.Shell)
		if c.S.Shell == "sh" {
			h.Sev(diag.Note)
		}
		if a, b, ok := c.S.LineRange(1); ok && strings.Contains(string(c.S.Src[a:b]), "/bin/"+c.S.Shell) {
			i := strings.Index(string(c.S.Src[a:b]), "/bin/"+c.S.Shell)
			h.Edit(a+i, a+i+len("/bin/"+c.S.Shell), "/bin/bash")
		}
	}
	for i := range c.S.Commands {
		if x := &c.S.Commands[i]; x.Name == "source" && x.File == "" && x.Step < 0 && !x.Dead {
			hit(x.Pos, "source")
			return
		}
	}
	for n := 1; n <= c.S.NumLines && n < 5000; n++ {
		l := strings.TrimSpace(c.S.Line(n))
		if strings.HasPrefix(l, "#") || c.inHeredoc(n) {
			continue
		}
		if i := strings.Index(l, "[[ "); i >= 0 && (i == 0 || strings.HasPrefix(l, "if [[") || strings.HasPrefix(l, "while [[")) {
			hit(at(n, 1), "[[")
			return
		}
	}
	for i := range c.S.Assigns {
		if a := &c.S.Assigns[i]; a.IsArr && a.Step < 0 && a.File == "" && !a.Dead && len(a.Array) > 0 {
			hit(a.Pos, "array")
			return
		}
	}
})
