package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("net-hca-down", func(b *fact.Bundle, r *diag.Reporter) {
	hcas := b.Node.RDMA.Or(nil)
	if rdmaOff(b) || oneNode(b) || loginLike(b) {
		return
	}
	var ports []string
	ib, init := false, false
	for _, h := range hcas {
		for _, p := range h.Ports {
			if p.State == "" || strings.EqualFold(p.State, "ACTIVE") {
				return
			}
			ib = ib || p.Link == "InfiniBand"
			init = init || strings.HasPrefix(strings.ToUpper(p.State), "INIT")
			ports = append(ports, h.Name+":"+itoa(p.Port)+" "+p.State)
		}
	}
	if !ib {
		return
	}
	a := diag.Args{"ports": strings.Join(ports, ", "), "admin": "1"}
	if init {
		a["variant"] = "init"
	}
	f := r.Hit("net-rdma-device", diag.Proven, a, b.Node.RDMA.At)
	f.Actor = "admin"
})
