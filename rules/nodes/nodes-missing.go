package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Slurm's word that a node failed proves it. A probe that ended or never spoke
// may have other reasons; that the program is not there at all is one of ours.
var _ = Checks.Add("nodes-missing", func(b *fact.Bundle, r *diag.Reporter) {
	for _, m := range b.Nodes.Missing {
		why := m.Why
		if why == "" {
			why = "-"
		}
		a := diag.Args{"nodes": m.Nodes, "node": m.Nodes, "odd": m.Nodes, "count": itoa(m.Count), "total": itoa(b.Nodes.Total), "reason": why, "variant": m.Kind}
		ev := fact.Evidence{Source: fact.SrcCommand, Path: "srun", Node: m.Nodes, Excerpt: m.Why}
		where := diag.Where{Node: m.Nodes}
		switch {
		case strings.Contains(m.Why, "No such file or directory") || strings.Contains(m.Why, "execve"):
			a["variant"] = "program"
			delete(a, "odd")
			r.Hit("nodes-missing", diag.Proven, a, ev).As(diag.Context).Sev(diag.Note).Need("ncclinic check --nodes --bcast=/tmp/ncclinic").At(where)
		case b.Nodes.Reported == 0:
			r.Hit("nodes-missing", diag.Possible, a, ev).As(diag.Context).Sev(diag.Note).Need("sinfo -R").Need("scontrol show node " + m.Nodes).At(where)
		case m.Kind == fact.FaultNodeFailed:
			r.Hit("node-failed", diag.Proven, a, ev).At(where)
		default:
			r.Hit("node-failed", diag.Likely, a, ev).Need("scontrol show node " + m.Nodes).At(where)
		}
	}
})
