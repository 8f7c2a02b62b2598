package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-job-none", func(b *fact.Bundle, r *diag.Reporter) {
	if !b.Slurm.GPUsGranted.IsAbsent() || otherAccelerator(b) || cudaWorks(b) {
		return
	}
	gpus, ok := listed(b)
	nodes, _ := devices(b)
	c := diag.Proven
	switch {
	case ok && len(gpus) > 0:
		return // sites that hand out whole nodes do without GRES
	case ok:
	case lookedAtDevices(b) && len(nodes) == 0:
		c = diag.Likely
	case lookedAtDevices(b):
		return
	default:
		r.Skip("neither nvidia-smi nor the device files were observed")
		return
	}
	a := diag.Args{"job": b.Slurm.Job.V}
	if inStep(b) {
		for _, v := range []string{"SLURM_JOB_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS"} {
			if x, set := b.Lookup(v); set && x != "" && x != "0" {
				a["variant"], a["has"], a["step"] = "step", v+"="+x, gpuCount(v, x)
				break
			}
		}
	}
	r.Hit("gpu-not-allocated", c, a, b.Slurm.GPUsGranted.At, b.Node.SMI.At, b.Node.DeviceFiles.At)
})
