package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("escaped-in-single-quotes", func(c *Ctx) {
	c.cmds(func(x *fact.ScriptCmd) {
		for i, w := range x.Words {
			if i > 0 && strings.HasPrefix(x.Words[i-1].Text, "-") && strings.Contains(x.Words[i-1].Text, "c") && strings.HasPrefix(w.Raw, "'") {
				if m := escapedVar.FindString(w.Raw); m != "" && !strings.Contains(w.Raw, "awk") && !strings.Contains(w.Raw, "\"\\$") && len(c.out) == 0 {
					c.Hit(w.Pos, "variable", m)
				}
			}
		}
	}, "bash", "sh")
})

var escapedVar = lazyre.New(`\\\$\{?[A-Za-z_]\w*\}?`)
