package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("assignment-blanks", func(c *Ctx) {
	if !c.says(" =", "= ", "\t=", "=\t") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		l := c.S.Line(x.Line)
		if x.Dead || x.File != "" || x.Step >= 0 || x.Col < 1 || x.Col > len(l) {
			continue
		}
		rest := l[x.Col-1:]
		var m []int // of the name, and of "=" with its blanks
		form := ""
		switch {
		case x.Name == "export" || x.Name == "declare" || x.Name == "local" || x.Name == "readonly" || x.Name == "typeset":
			m, form = blankExport.FindStringSubmatchIndex(rest), "export"
		case len(x.Words) > 1 && strings.HasPrefix(x.Words[1].Raw, "="):
			m, form = blankAssign.FindStringSubmatchIndex(rest), "command"
		}
		if m == nil {
			continue
		}
		from := c.offset(x.Pos)
		c.Hit(at(x.Line, x.Col+m[2]), "variant", form, "name", rest[m[2]:m[3]]).Edit(from+m[4], from+m[5], "=")
	}
})

var (
	blankExport = lazyre.New(`^(?:export|declare|local|readonly|typeset)(?:[ \t]+-[a-zA-Z]+)*[ \t]+([A-Za-z_]\w*)([ \t]+=[ \t]*)[^\s=]`)
	blankAssign = lazyre.New(`^([A-Za-z_]\w*)([ \t]+=[ \t]*)[^\s=]`)
)
