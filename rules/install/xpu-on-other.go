package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("xpu-on-other", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if t.Accel() != fact.AccelXPU {
		return
	}
	nvidia, amd, intel, complete, ev := vendors(b)
	if intel || nvidia == amd {
		return
	}
	c := diag.Likely
	if complete {
		c = diag.Proven
	}
	a := args(b)
	a["wants"], a["have"] = "cuda", "NVIDIA"
	e := ev["nvidia"]
	if amd {
		a["wants"], a["have"], e = "rocm", "AMD", ev["amd"]
		delete(a, "cuda_tag")
	}
	r.Hit("torch-wrong-accelerator", c, a, t.XPU.At, e)
})
