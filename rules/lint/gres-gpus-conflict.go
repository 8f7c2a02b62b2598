package lint

import (
	"github.com/ncclinic/ncclinic/internal/diag"
)

var _ = Checks.Add("gres-gpus-conflict", func(c *Ctx) {
	r := &c.S.Request
	g := c.S.Opt("gres")
	n := c.S.Opt("gpus-per-node")
	if g == nil || n == nil || r.GresGPUs == 0 {
		return
	}
	h := c.Hit(n.Pos, "gres", g.Value, "gpus", n.Value, "line", itoa(g.Line))
	if r.GresGPUs != r.GPUsPerNode {
		h.Args["variant"] = "differ"
	}
	if c.O.Slurm.Known() && c.O.Slurm.In(">=26.05") {
		h.Sev(diag.Error)
	}
})
