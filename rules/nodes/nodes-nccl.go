package nodes

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// A node where no libnccl is found is the business of the rules for one node.
var _ = Checks.Add("nodes-nccl", func(b *fact.Bundle, r *diag.Reporter) {
	d, ok := differs(b, "nccl.version")
	if !ok {
		return
	}
	var real []fact.ValueFor
	for _, v := range d.all {
		if v.Value != fact.NoValue {
			real = append(real, v)
		}
	}
	if len(real) < 2 {
		return
	}
	d.all = real
	report(r, "nccl-version-differs-between-nodes", diag.Proven, "nccl", append([]diff{d}, all(b, "nccl.path", "env.LD_LIBRARY_PATH", "env.LD_PRELOAD")...)...)
})
