package nodes

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// NCCL wants the same kind and number of adapters and the same plugin
// everywhere. Names of adapters and interfaces may differ.
var _ = Checks.Add("nodes-net", func(b *fact.Bundle, r *diag.Reporter) {
	if ds := all(b, "hca", "plugin"); len(ds) > 0 {
		report(r, "net-differs-between-nodes", diag.Likely, "net", append(ds, all(b, "hca.rate")...)...)
		return
	}
	if ds := all(b, "hca.rate", "mtu.nccl", "mtu.gloo"); len(ds) > 0 {
		report(r, "net-differs-between-nodes", diag.Possible, "net", ds...).Sev(diag.Warning)
	}
})
