package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-uverbs", func(b *fact.Bundle, r *diag.Reporter) {
	if !b.Node.Uverbs.Looked() {
		r.Skip("/dev/infiniband was not looked at")
		return
	}
	if len(b.Node.Uverbs.Or(nil)) > 0 || b.Node.Uverbs.State == fact.Failed || rdmaOff(b) || oneNode(b) || loginLike(b) {
		return
	}
	want, _, named := setting(b, "NCCL_IB_HCA")
	var ports []string
	for _, p := range netsel.SelectHCA(b.Node.RDMA.Or(nil), want).Ports {
		// An Ethernet adapter that could do RoCE proves no wish to use it.
		if p.Link == "InfiniBand" || p.Link == "Ethernet" && named {
			ports = append(ports, p.String())
		}
	}
	if len(ports) == 0 {
		return
	}
	a := diag.Args{"ports": strings.Join(ports, ", "), "kind": container(b)}
	if a["kind"] != "" {
		a["variant"], a["container"] = "container", "1"
	} else {
		a["admin"] = "1"
	}
	f := r.Hit("net-rdma-device", diag.Likely, a, b.Node.RDMA.At, b.Node.Uverbs.At)
	if a["admin"] != "" {
		f.Actor = "admin"
	}
})
