package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Launchers start as many ranks on each node as the command line says, so
// another number of GPUs on one of them breaks the job. Kinds and branches of
// the driver may be mixed, mostly with success.
var _ = Checks.Add("nodes-gpus", func(b *fact.Bundle, r *diag.Reporter) {
	if d, ok := differs(b, "gpu.count"); ok {
		report(r, "env-differs-between-nodes", diag.Likely, "gpu", append([]diff{d}, all(b, "gpu.kind", "driver")...)...)
		return
	}
	if d, ok := differs(b, "gpu.kind"); ok {
		report(r, "env-differs-between-nodes", diag.Possible, "gpu", append([]diff{d}, all(b, "driver")...)...).Sev(diag.Warning)
		return
	}
	d, ok := differs(b, "driver")
	if !ok {
		return
	}
	branches := map[string]bool{}
	none := false
	for _, v := range d.all {
		none = none || v.Value == fact.NoValue
		major, _, _ := strings.Cut(v.Value, ".")
		branches[major] = true
	}
	switch {
	case none:
		report(r, "env-differs-between-nodes", diag.Likely, "driver", d)
	case len(branches) > 1:
		report(r, "env-differs-between-nodes", diag.Possible, "driver", d).Sev(diag.Warning)
	default:
		report(r, "nodes-gpus", diag.Possible, "driver", d).As(diag.Context).Sev(diag.Note)
	}
})
