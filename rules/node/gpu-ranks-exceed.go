package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-ranks-exceed", func(b *fact.Bundle, r *diag.Reporter) {
	granted, ok := b.Slurm.GPUsGranted.Get()
	tasks := b.Slurm.TasksHere.Or(0)
	if _, bound := isolated(b); bound || !inStep(b) || !ok || granted < 1 {
		return // where tasks are bound, the count may be that of one task
	}
	if gpus, seen := listed(b); seen && len(gpus) > granted {
		granted = len(gpus)
	}
	if tasks <= granted || anyMIG(b.Node.GPUs.Or(nil)) {
		return
	}
	r.Hit("gpu-shared-by-ranks", diag.Likely, diag.Args{"tasks": itoa(tasks), "gpus": itoa(granted), "step": "1"}, b.Slurm.TasksHere.At, b.Slurm.GPUsGranted.At)
})
