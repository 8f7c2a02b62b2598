package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-version-cpu", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if !t.CUDA.IsAbsent() || !t.HIP.IsAbsent() || t.XPU.IsKnown() {
		return
	}
	c := diag.Likely
	if nccl, ok := t.NCCL.Get(); ok && !nccl {
		c = diag.Proven
	}
	r.Hit("torch-cpu-build", c, diag.Args{"python": b.Python.Exe.Or("python"), "torch_dir": t.Dir, "version": t.Version.Or("?")},
		t.CUDA.At, t.NCCL.At)
})
