package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-visible-unknown", func(b *fact.Bundle, r *diag.Reporter) {
	entries, v, set := filter(b)
	if !set || emptyFilter(v) || otherAccelerator(b) {
		return
	}
	gpus, ok := listed(b)
	if !ok {
		r.Skip("nvidia-smi did not say which GPUs this process can open")
		return
	}
	if anyMIG(gpus) || strings.Contains(v, "MIG-") {
		return // an index then means the first instance, and nvidia-smi lists cards
	}
	a := diag.Args{"value": v, "count": itoa(len(gpus)), "last": itoa(len(gpus) - 1), "var": "CUDA_VISIBLE_DEVICES"}
	ev := fact.EnvVarAt("CUDA_VISIBLE_DEVICES", v)
	seen := map[*fact.GPU]bool{}
	for i, e := range entries {
		g := findGPU(gpus, e)
		if g == nil {
			a["bad"], a["left"] = e, itoa(i)
			f := r.Hit("gpu-visible-devices-wrong", diag.Proven, a, ev, b.Node.GPUs.At)
			if i > 0 && i >= b.Slurm.TasksHere.Or(1) {
				f.Sev(diag.Warning)
			}
			return
		}
		if seen[g] {
			a["variant"], a["bad"] = "twice", e
			r.Hit("gpu-visible-devices-wrong", diag.Likely, a, ev)
			return
		}
		seen[g] = true
	}
})
