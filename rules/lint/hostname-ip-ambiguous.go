package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("hostname-ip-ambiguous", func(c *Ctx) {
	c.cmds(func(x *fact.ScriptCmd) {
		if len(x.PipeTo) > 0 || len(c.out) > 0 {
			return
		}
		for _, w := range x.Words[1:] {
			switch w.Text {
			case "-i", "-I", "--ip-address", "--all-ip-addresses":
				if c.says("read -ra", "read -a", "addr[", "%% *", "%%\\ *", "%% }", "nodes_ip") || !x.Subst && !strings.Contains(c.S.Line(x.Line), "=$(") && !strings.Contains(c.S.Line(x.Line), "=`") {
					return
				}
				c.Hit(w.Pos, "option", w.Text)
				return
			}
		}
	}, "hostname")
})
