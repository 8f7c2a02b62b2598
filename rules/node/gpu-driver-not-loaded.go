package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-driver-not-loaded", func(b *fact.Bundle, r *diag.Reporter) {
	nv := nvidiaPCI(b)
	if !b.Node.Driver.IsAbsent() || len(nv) == 0 || otherAccelerator(b) || cudaWorks(b) || smiOK(b) {
		return
	}
	a := diag.Args{"count": itoa(len(nv)), "admin": "module"}
	vfio := true
	for _, g := range nv {
		if g.Driver == "nouveau" {
			a["variant"] = "nouveau"
		}
		vfio = vfio && g.Driver == "vfio-pci"
	}
	if vfio {
		a["variant"] = "vfio"
	}
	f := r.Hit("gpu-driver-missing", diag.Proven, a, b.Node.Driver.At, b.Node.PCIGPUs.At)
	if loginLike(b) {
		f.Sev(diag.Warning).Need("srun --gres=gpu:1 ncclinic check")
	}
})
