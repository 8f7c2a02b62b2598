package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-no-driver", func(b *fact.Bundle, r *diag.Reporter) {
	n := &b.Node
	if n.Driver.State == fact.Failed {
		r.Skip(n.Driver.Why)
		return
	}
	if !n.Driver.IsAbsent() || otherAccelerator(b) || cudaWorks(b) || smiOK(b) || len(nvidiaPCI(b)) > 0 {
		return
	}
	ev := []fact.Evidence{n.Driver.At, n.PCIGPUs.At}
	granted, has := b.Slurm.GPUsGranted.Get()
	c := diag.Proven
	seen := n.PCIGPUs.IsKnown() || n.PCIGPUs.IsAbsent()
	if !seen {
		c = diag.Likely
	}
	switch {
	case sallocShell(b):
		r.Hit("gpu-driver-missing", diag.Proven, diag.Args{"variant": "salloc", "job": b.Slurm.Job.V}, ev...).
			Sev(diag.Warning).Need("srun ncclinic check")
	case loginLike(b):
		r.Hit("gpu-driver-missing", diag.Proven, diag.Args{"variant": "login"}, ev...).
			Sev(diag.Warning).Need("srun --gres=gpu:1 ncclinic check")
	case inJob(b) && b.Slurm.GPUsGranted.IsAbsent():
		r.Hit("gpu-not-allocated", c, diag.Args{"variant": "cpunode", "job": b.Slurm.Job.V}, append(ev, b.Slurm.GPUsGranted.At)...)
	case inJob(b) && has:
		a := diag.Args{"variant": "granted", "gpus": itoa(granted)}
		if seen {
			a["admin"] = "absent"
		}
		r.Hit("gpu-driver-missing", c, a, append(ev, b.Slurm.GPUsGranted.At)...)
	case !seen:
		r.Skip("the PCI bus was not seen: an environment without its machine")
	default:
		r.Hit("gpu-driver-missing", diag.Proven, nil, ev...)
	}
})
