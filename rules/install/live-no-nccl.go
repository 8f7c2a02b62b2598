package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("live-no-nccl", func(b *fact.Bundle, r *diag.Reporter) {
	nccl, ok := b.Live.NCCL.Get()
	if !ok || nccl || !imports(b) {
		return
	}
	if d, ok := b.Live.Distributed.Get(); ok && !d {
		return // torch-no-distributed
	}
	a := args(b)
	a["live_version"] = b.Live.Version.Or("?")
	switch {
	case b.Live.CUDA.IsKnown() || b.Live.HIP.IsKnown():
		r.Hit("torch-built-without-nccl", diag.Proven, a, b.Live.NCCL.At, b.Live.CUDA.At)
	case b.Live.CUDA.IsAbsent():
		if w := b.Winner(); w != nil && w.Accel() == fact.AccelXPU {
			return
		}
		r.Hit("torch-cpu-build", diag.Proven, a, b.Live.NCCL.At, b.Live.CUDA.At)
	default:
		r.Skip("the interpreter did not say what the build computes on")
	}
})
