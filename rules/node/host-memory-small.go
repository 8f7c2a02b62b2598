package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("host-memory-small", func(b *fact.Bundle, r *diag.Reporter) {
	m, ok := b.Node.Memory.Get()
	ranks := b.Slurm.GPUsGranted.Or(0)
	if !ok || m.Cgroup <= 0 || ranks < 1 {
		return
	}
	if m.Cgroup >= int64(ranks)*5<<29 {
		return
	}
	at := b.Node.Memory.At
	if m.CgroupAt != "" {
		at = fact.File(m.CgroupAt)
	}
	r.Hit("host-out-of-memory", diag.Likely, diag.Args{"limit": mib(m.Cgroup), "ranks": itoa(ranks)}, at)
})
