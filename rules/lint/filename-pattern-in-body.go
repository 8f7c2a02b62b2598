package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("filename-pattern-in-body", func(c *Ctx) {
	c.cmds(func(x *fact.ScriptCmd) {
		for _, w := range x.Words[1:] {
			if m := pathPattern.FindString(w.Text); m != "" && w.Known {
				c.Hit(w.Pos, "pattern", m[len(m)-2:], "path", w.Text)
				return
			}
		}
	}, "source", ".", "cd", "mkdir", "cp", "mv", "cat", "ls", "rm", "pushd", "touch", "ln")
})

var pathPattern = lazyre.New(`^[/~]\S*/[^/]*%[uj]`)
