package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-no-nccl", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	accel := t.Accel()
	if accel != fact.AccelCUDA && accel != fact.AccelROCm || t.Form != "" {
		return
	}
	if t.Distributed.IsKnown() && !t.Distributed.V {
		return // a wider fault, with a check of its own
	}
	nccl, ok := t.NCCL.Get()
	if !ok {
		r.Skip("the symbols of torch's libraries were not read")
		return
	}
	live, asked := b.Live.NCCL.Get()
	if nccl || asked && live {
		return
	}
	a := args(b)
	a["variant"] = "plain"
	switch {
	case b.Host.Board.IsKnown():
		a["variant"] = "jetson"
	case t.Origin.V.Kind == fact.OriginSource:
		a["variant"] = "source"
	}
	// The symbol table was readable when it showed another process group.
	c := diag.Likely
	ev := []fact.Evidence{t.CUDA.At, t.HIP.At, t.NCCL.At}
	if t.Gloo.Or(false) {
		c, ev = diag.Proven, append(ev, t.Gloo.At)
	}
	if asked {
		c, ev = diag.Proven, append(ev, b.Live.NCCL.At)
	}
	f := r.Hit("torch-built-without-nccl", c, a, ev...)
	if c != diag.Proven {
		if b.Target.Kind != "" {
			f.Need("python -c 'import torch.distributed as d; print(d.is_nccl_available())'")
		} else {
			f.Need("ncclinic check --live")
		}
	}
})
