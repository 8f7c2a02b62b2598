package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-no-distributed", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	d, ok := t.Distributed.Get()
	live, asked := b.Live.Distributed.Get()
	switch {
	case asked && live:
		return
	case !ok && !asked:
		r.Skip("the symbols of torch's libraries were not read")
		return
	case ok && d && !asked:
		return
	}
	c := diag.Likely
	if asked || t.NCCL.IsKnown() && !t.NCCL.V && t.Gloo.IsKnown() && !t.Gloo.V {
		c = diag.Proven
	}
	f := r.Hit("torch-built-without-distributed", c, args(b), t.Distributed.At, b.Live.Distributed.At)
	if c != diag.Proven {
		f.Need("ncclinic check --live")
	}
})
