package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("slurm-step-cpus", func(b *fact.Bundle, r *diag.Reporter) {
	cpus, ok := b.Slurm.CPUs.Get()
	if !ok || !inStep(b) || cpus < 1 {
		return
	}
	gpus := b.Slurm.GPUsGranted.Or(0)
	if cpus == 1 && gpus >= 2 && b.Slurm.TasksHere.Or(0) == 1 && !b.Slurm.CPUsPerTask.IsKnown() {
		r.Hit("slurm-cpus-not-forwarded", diag.Likely, diag.Args{"variant": "one", "cpus": itoa(cpus), "gpus": itoa(gpus), "asked": "1"}, b.Slurm.CPUs.At, b.Slurm.GPUsGranted.At)
		return
	}
	want, ok := b.Slurm.CPUsPerTask.Get()
	if !ok || cpus >= want {
		return
	}
	v, ok := b.Slurm.Version.Get()
	from, ok1 := slurmAtLeast(v, 22, 5)
	after, _ := slurmAtLeast(v, 23, 11)
	if !ok || !ok1 {
		r.Skip("the Slurm version is not known")
		return
	}
	if !from || after {
		return
	}
	r.Hit("slurm-cpus-not-forwarded", diag.Proven, diag.Args{"want": itoa(want), "cpus": itoa(cpus), "slurm": v}, b.Slurm.CPUsPerTask.At, b.Slurm.CPUs.At, b.Slurm.Version.At)
})
