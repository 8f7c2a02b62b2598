package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("rocm-on-nvidia", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if t.Accel() != fact.AccelROCm {
		return
	}
	nvidia, amd, _, complete, ev := vendors(b)
	if !nvidia || amd {
		return // no GPU at all is a login node, not the wrong build
	}
	c := diag.Likely
	if complete {
		c = diag.Proven
	}
	a := args(b)
	a["wants"], a["hip"] = "cuda", t.HIP.V
	r.Hit("torch-wrong-accelerator", c, a, t.HIP.At, ev["nvidia"])
})
