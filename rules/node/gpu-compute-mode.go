package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-compute-mode", func(b *fact.Bundle, r *diag.Reporter) {
	gpus := inUse(b)
	tasks := b.Slurm.TasksHere.Or(1)
	for _, g := range gpus {
		a := diag.Args{"index": itoa(g.Index), "gpu": g.Name, "mode": g.Mode, "used": itoa(g.UsedMiB), "tasks": itoa(tasks), "count": itoa(len(gpus))}
		if g.Mode == "Prohibited" {
			r.Hit("gpu-busy", diag.Proven, a, b.Node.GPUs.At)
			return
		}
		if g.Mode != "Exclusive_Process" || b.Node.MPS.IsKnown() {
			continue
		}
		switch {
		case g.UsedMiB > 1024:
			a["variant"] = "held"
			r.Hit("gpu-busy", diag.Likely, a, b.Node.GPUs.At).Sev(diag.Warning)
			return
		case inStep(b) && tasks > len(gpus):
			if _, bound := isolated(b); !bound {
				a["variant"] = "ranks"
				r.Hit("gpu-busy", diag.Likely, a, b.Node.GPUs.At, b.Slurm.TasksHere.At).Sev(diag.Warning)
				return
			}
		}
	}
})
