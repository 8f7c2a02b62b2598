package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gloo-in-gpu-job", func(c *Ctx) {
	if !c.S.Request.GPUAsked {
		return
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		for i, w := range l.Args {
			t := strings.ReplaceAll(strings.ToLower(w.Text), "_", "-")
			name, val, eq := strings.Cut(t, "=")
			if !eq && i+1 < len(l.Args) {
				val = strings.ToLower(l.Args[i+1].Text)
			}
			if (name == "--backend" || name == "--dist-backend" || name == "--distributed-backend" || name == "--ddp-backend") && val == "gloo" && len(c.out) == 0 {
				c.Hit(w.Pos, "option", name)
			}
		}
	})
})
