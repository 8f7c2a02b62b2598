package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cuda-on-amd", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if t.Accel() != fact.AccelCUDA {
		return
	}
	nvidia, amd, _, complete, ev := vendors(b)
	if !amd || nvidia {
		return
	}
	c := diag.Likely
	if complete {
		c = diag.Proven
	}
	a := args(b)
	a["wants"] = "rocm"
	r.Hit("torch-wrong-accelerator", c, a, t.CUDA.At, ev["amd"])
})
