package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-ib-disabled", func(b *fact.Bundle, r *diag.Reporter) {
	if !rdmaOff(b) || oneNode(b) {
		return
	}
	name := "NCCL_IB_DISABLE"
	v, at, _ := setting(b, name)
	if v == "" || v == "0" {
		name = "NCCL_NET"
		v, at, _ = setting(b, name)
	}
	layer := "environment"
	if s, ok := b.NCCL(name); ok && s.Layer != "" {
		layer = s.Layer
	}
	var ports []string
	for _, p := range netsel.SelectHCA(b.Node.RDMA.Or(nil), "").Ports {
		if p.Link == "InfiniBand" {
			ports = append(ports, p.String())
		}
	}
	if len(ports) == 0 {
		return
	}
	r.Hit("net-rdma-device", diag.Proven, diag.Args{"name": name, "value": v, "ports": strings.Join(ports, ", "), "layer": layer, "var": name}, at, b.Node.RDMA.At)
})
