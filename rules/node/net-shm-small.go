package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("net-shm-small", func(b *fact.Bundle, r *diag.Reporter) {
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	s := b.Node.Shm.V
	a := diag.Args{"total": mib(s.Total), "free": mib(s.Free)}
	if container(b) != "" {
		a["container"] = "1"
	}
	switch {
	case s.Total <= 0:
	case s.Total < 256<<20:
		r.Hit("net-shared-memory-full", diag.Likely, a, b.Node.Shm.At)
	case s.Free < 64<<20:
		a["variant"], a["full"] = "full", "1"
		r.Hit("net-shared-memory-full", diag.Likely, a, b.Node.Shm.At)
	}
})
