package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-visible-empty", func(b *fact.Bundle, r *diag.Reporter) {
	_, v, set := filter(b)
	if !set || !emptyFilter(v) || otherAccelerator(b) {
		return
	}
	a := diag.Args{"value": v, "var": "CUDA_VISIBLE_DEVICES"}
	if strings.TrimSpace(v) == "" {
		a["value"] = `empty ("")`
	}
	ev := fact.EnvVarAt("CUDA_VISIBLE_DEVICES", v)
	granted, has := b.Slurm.GPUsGranted.Get()
	switch {
	case inJob(b) && b.Slurm.GPUsGranted.IsAbsent():
		a["variant"], a["job"] = "job", b.Slurm.Job.V
		r.Hit("gpu-not-allocated", diag.Proven, a, ev, b.Slurm.GPUsGranted.At)
	case inJob(b) && has:
		a["variant"], a["gpus"] = "granted", itoa(granted)
		r.Hit("gpu-visible-devices-wrong", diag.Proven, a, ev, b.Slurm.GPUsGranted.At)
	case loginLike(b):
		r.Hit("gpu-visible-devices-wrong", diag.Proven, a, ev).Sev(diag.Warning).Need("srun --gres=gpu:1 ncclinic check")
	default:
		r.Hit("gpu-visible-devices-wrong", diag.Proven, a, ev)
	}
})
