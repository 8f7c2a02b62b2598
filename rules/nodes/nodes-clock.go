package nodes

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Munge refuses credentials of clocks that are minutes apart, and the order in
// which ranks failed is read from their times.
var _ = Checks.Add("nodes-clock", func(b *fact.Bundle, r *diag.Reporter) {
	if d, ok := differs(b, "clock"); ok {
		report(r, "nodes-clock", diag.Likely, "clock", d).As(diag.Context).Sev(diag.Warning)
	}
})
