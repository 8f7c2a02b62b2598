package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// What a probe sends is checked; what does not fit is told, not used.
var _ = Checks.Add("nodes-odd-lines", func(b *fact.Bundle, r *diag.Reporter) {
	if len(b.Nodes.Odd) == 0 {
		return
	}
	n := 0
	var kinds []string
	var ev []fact.Evidence
	for _, o := range b.Nodes.Odd {
		n += o.Count
		if len(kinds) == 0 || kinds[len(kinds)-1] != o.Kind {
			kinds = append(kinds, o.Kind)
		}
		ev = append(ev, fact.Evidence{Source: fact.SrcCommand, Path: "srun", Node: o.Nodes, Excerpt: strings.TrimSpace(o.Kind + " " + o.Why)})
	}
	r.Hit("nodes-odd-lines", diag.Proven, diag.Args{"count": itoa(n), "kinds": strings.Join(kinds, ", ")}, ev...).As(diag.Context).Sev(diag.Note)
})
