package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("fixed-master-port", func(c *Ctx) {
	g := c.gpus()
	if !c.submitted() || g == 0 || c.wholeNode() || c.nodes() > 1 && g >= 4 {
		return
	}
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		if len(c.out) > 0 || l.Standalone {
			return
		}
		port, pos := fact.Word{}, l.Pos
		switch {
		case given(l.Endpoint):
			_, p, ok := strings.Cut(l.Endpoint.Text, ":")
			if !ok {
				p = "29400"
			}
			port = fact.Word{Text: p, Known: !strings.ContainsAny(p, "$(`")}
			pos = l.Endpoint.Pos
		case given(l.MasterPort):
			port, pos = l.MasterPort, l.MasterPort.Pos
		case l.Kind == fact.LaunchPython || l.Kind == fact.LaunchComposer:
			v := c.S.Var("MASTER_PORT", cmd.Seq)
			if v == nil {
				return
			}
			port, pos = v.Value, v.Pos
		case l.Open:
			return
		case elastic(l) || l.Kind == fact.LaunchDeepSpeed:
			if n := c.nproc(l); n < 2 {
				return
			}
			port = fact.Word{Text: "29500", Known: true}
		default:
			return
		}
		if _, ok := num(port); ok {
			c.Hit(pos, "port", port.Text, "gpus", itoa(g))
		}
	})
})
