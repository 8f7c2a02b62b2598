package node

import (
	"strconv"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-memory-used", func(b *fact.Bundle, r *diag.Reporter) {
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	for _, g := range inUse(b) {
		if g.MemMiB == 0 || g.UsedMiB*2 < g.MemMiB {
			continue
		}
		a := diag.Args{"index": itoa(g.Index), "gpu": g.Name, "used": itoa(g.UsedMiB), "total": itoa(g.MemMiB)}
		f := r.Hit("gpu-out-of-memory", diag.Possible, a, b.Node.GPUs.At).Need("nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv")
		if n, err := strconv.Atoi(b.Slurm.Step.Or("0")); inStep(b) && err == nil && n > 0 {
			f.Args["variant"] = "step"
			f.Sev(diag.Note)
		}
		return
	}
})
