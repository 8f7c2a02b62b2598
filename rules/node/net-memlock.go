package node

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

// A few MiB cannot hold one set of NCCL's buffers; with some hundred it depends
// on the number of channels and peers.
var _ = Checks.Add("net-memlock", func(b *fact.Bundle, r *diag.Reporter) {
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	limit, ok := b.Node.Limits.Memlock.Get()
	if !ok || limit < 0 || limit >= 1<<30 || rdmaOff(b) || oneNode(b) {
		return
	}
	want, _, _ := setting(b, "NCCL_IB_HCA")
	var ports []string
	for _, p := range netsel.SelectHCA(b.Node.RDMA.Or(nil), want).Ports {
		if p.Link == "InfiniBand" || p.Link == "Ethernet" {
			ports = append(ports, p.String())
		}
	}
	if len(ports) == 0 {
		return
	}
	a := diag.Args{"limit": strconv.FormatInt(limit>>10, 10), "hard": "?", "ports": strings.Join(ports, ", ")}
	if h, ok := b.Node.Limits.MemlockHard.Get(); ok && h < 0 {
		a["hard"], a["hard_ok"] = "unlimited", "1"
	} else if ok {
		a["hard"] = strconv.FormatInt(h>>10, 10) + " KiB"
	}
	if container(b) != "" {
		a["container"] = "1"
	}
	if limit < 64<<20 {
		r.Hit("net-rdma-memlock", diag.Likely, a, b.Node.Limits.Memlock.At, b.Node.RDMA.At)
		return
	}
	r.Hit("net-rdma-memlock", diag.Possible, a, b.Node.Limits.Memlock.At, b.Node.RDMA.At).Sev(diag.Warning)
})
