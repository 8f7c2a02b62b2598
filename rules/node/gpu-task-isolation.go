package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-task-isolation", func(b *fact.Bundle, r *diag.Reporter) {
	entries, v, set := filter(b)
	at, bound := isolated(b)
	tasks := b.Slurm.TasksHere.Or(1)
	if !inStep(b) || !set || !bound || emptyFilter(v) || tasks < 2 || len(entries) >= tasks {
		return
	}
	if _, sharing := b.Lookup("SLURM_GRES_FLAGS"); sharing {
		return
	}
	a := diag.Args{"tasks": itoa(tasks), "visible": itoa(len(entries)), "by": at.Excerpt}
	if newer, ok := slurmAtLeast(b.Slurm.Version.Or(""), 23, 11); ok && newer {
		a["slurm2311"] = "1"
	}
	r.Hit("slurm-gpu-binding", diag.Possible, a, at, fact.EnvVarAt("CUDA_VISIBLE_DEVICES", v))
})
