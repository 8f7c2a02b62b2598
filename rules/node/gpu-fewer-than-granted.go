package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-fewer-than-granted", func(b *fact.Bundle, r *diag.Reporter) {
	granted, ok := b.Slurm.GPUsGranted.Get()
	gpus, seen := listed(b)
	if !ok || !seen || len(gpus) >= granted || anyMIG(gpus) || otherAccelerator(b) || container(b) != "" {
		return
	}
	if inStep(b) && b.Slurm.TasksHere.Or(2) != 1 {
		return // the cgroup of a task may be narrower than that of its step
	}
	a := diag.Args{"gpus": itoa(granted), "seen": itoa(len(gpus)), "node": nodeName(b)}
	if len(gpus) == 0 {
		a["variant"] = "none"
		r.Hit("gpu-init-unknown-error", diag.Likely, a, b.Slurm.GPUsGranted.At, b.Node.SMI.At).Need("dmesg -T | grep -E 'NVRM|Xid'")
		return
	}
	r.Hit("gpu-hardware-fault", diag.Likely, a, b.Slurm.GPUsGranted.At, b.Node.GPUs.At).Need("dmesg -T | grep -E 'NVRM|Xid'")
})
