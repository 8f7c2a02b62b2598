package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("launcher-option-unknown", func(c *Ctx) {
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		if len(l.Strange) == 0 || l.Guessed || l.Open || cmd.File != "" {
			return
		}
		w := l.Strange[0]
		opt, _, _ := strings.Cut(w.Text, "=")
		if strings.ContainsAny(opt, "<>{}[]$ ") {
			return // left to fill in
		}
		h := c.Hit(w.Pos, "launcher", show(l), "option", opt)
		switch {
		case opt == "-c":
			h.Args["variant"] = "code"
		case !strings.HasPrefix(opt, "--"):
			h.Args["variant"] = "dash"
		}
	})
})
