package nodes

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// The probe on the first node tried to bind the port, as rank 0 will.
var _ = Checks.Add("nodes-port", func(b *fact.Bundle, r *diag.Reporter) {
	free := b.Nodes.PortFree
	if v, ok := free.Get(); !ok || v {
		return
	}
	port := "-"
	for _, c := range b.Nodes.Compared {
		if c.Name == "env.MASTER_PORT" && len(c.Values) > 0 {
			port = c.Values[0].Value
		}
	}
	ev := fact.EnvVarAt("MASTER_PORT", port)
	ev.Node = b.Nodes.First
	r.Hit("rdzv-port-in-use", diag.Proven, diag.Args{"port": port, "first": b.Nodes.First}, ev).At(diag.Where{Node: b.Nodes.First})
})
