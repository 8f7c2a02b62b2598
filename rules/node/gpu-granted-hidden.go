package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-granted-hidden", func(b *fact.Bundle, r *diag.Reporter) {
	entries, v, set := filter(b)
	granted, ok := b.Slurm.GPUsGranted.Get()
	if !set || !ok || emptyFilter(v) || strings.Contains(v, "MIG-") {
		return
	}
	if inStep(b) && b.Slurm.TasksHere.Or(2) != 1 {
		return // each task may have its own part of the step's GPUs
	}
	if _, bound := isolated(b); bound && inStep(b) {
		return
	}
	a := diag.Args{"gpus": itoa(granted), "value": v, "visible": itoa(len(entries)), "var": "CUDA_VISIBLE_DEVICES"}
	switch {
	case len(entries) > granted:
		a["variant"] = "more"
	case len(entries) == granted:
		return
	}
	r.Hit("gpu-visible-devices-wrong", diag.Likely, a, fact.EnvVarAt("CUDA_VISIBLE_DEVICES", v), b.Slurm.GPUsGranted.At)
})
