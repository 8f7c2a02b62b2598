package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("interpreter-var-unused", func(c *Ctx) {
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		v := a.Value.Text
		if a.Dead || a.Prefix || a.File != "" || !strings.Contains(v, "/") || !pythonPath.MatchString(v) || readAnywhere(c, a.Name) || a.Export {
			continue
		}
		switch strings.ToLower(a.Name) {
		case "python", "python_bin", "python_path", "pythonbin", "py", "python3", "python_exe", "python_exec", "pybin":
		default:
			continue
		}
		hit := ""
		c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
			if l.Python == "python" || l.Python == "python3" {
				hit = l.Python
			}
		})
		if hit != "" {
			c.Hit(a.Pos, "name", a.Name, "value", v, "python", hit)
		}
	}
})

var pythonPath = lazyre.New(`/python[0-9.]*$`)
