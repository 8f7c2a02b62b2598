package node

import (
	"strconv"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("host-nofile", func(b *fact.Bundle, r *diag.Reporter) {
	soft, ok := b.Node.Limits.Nofile.Get()
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	if !ok || soft < 0 || soft > 1024 {
		return
	}
	tasks := b.Slurm.Tasks.Or(0)
	a := diag.Args{"soft": strconv.FormatInt(soft, 10), "hard_limit": "?", "tasks": itoa(tasks)}
	if h, ok := b.Node.Limits.NofileHard.Get(); ok && h < 0 {
		a["hard_limit"] = "unlimited"
	} else if ok {
		a["hard_limit"] = strconv.FormatInt(h, 10)
		if h <= 4096 {
			a["hard"] = a["hard_limit"]
		}
	}
	switch {
	case soft < 512:
		a["variant"] = "tiny"
		r.Hit("host-file-limits", diag.Possible, a, b.Node.Limits.Nofile.At).Sev(diag.Warning)
	case tasks >= 64:
		r.Hit("host-file-limits", diag.Possible, a, b.Node.Limits.Nofile.At, b.Slurm.Tasks.At)
	}
})
