package nodes

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// With RDMA a lower limit on some nodes is what fails there first; without, it
// only shows that the nodes were not set up alike.
var _ = Checks.Add("nodes-limits", func(b *fact.Bundle, r *diag.Reporter) {
	d, ok := differs(b, "memlock")
	if !ok {
		return
	}
	a := []diff{d}
	if !usesRDMA(b) {
		report(r, "nodes-limits", diag.Possible, "limits", a...).As(diag.Context).Sev(diag.Note)
		return
	}
	report(r, "net-rdma-memlock", diag.Possible, "limits", a...).Sev(diag.Warning)
})
