package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("slurm-context", func(b *fact.Bundle, r *diag.Reporter) {
	need := "srun --gres=gpu:1 ncclinic check"
	if loginLike(b) && !sallocShell(b) {
		r.Hit("slurm-context", diag.Proven, nil, b.Slurm.Job.At, b.Slurm.Commands.At).Need(need)
		return
	}
	list, ok := b.Slurm.NodeList.Get()
	host, ok2 := b.Host.Name.Get()
	if !sallocShell(b) || !ok || !ok2 {
		return
	}
	if in, known := inHostList(list, host); known && !in {
		r.Hit("slurm-context", diag.Likely, diag.Args{"variant": "salloc", "job": b.Slurm.Job.V, "host": host, "job_nodes": fact.Clip(list, 200)},
			b.Slurm.NodeList.At, b.Host.Name.At).Need("srun ncclinic check")
	}
})
