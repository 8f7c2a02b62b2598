package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-ifname-loopback", func(b *fact.Bundle, r *diag.Reporter) {
	nodes := nodesOf(b, 1)
	if nodes < 2 || loginLike(b) {
		return
	}
	v, at, set := setting(b, "NCCL_SOCKET_IFNAME")
	ifs := b.Node.Ifaces.V
	c := netsel.SelectNCCL(ifs, v)
	if len(c.Names) == 0 {
		return
	}
	for _, name := range c.Names {
		if !local(ifs, name) {
			return
		}
	}
	a := diag.Args{"value": v, "bad": strings.Join(c.Names, ", "), "job_nodes": itoa(nodes), "have": ifaceNames(ifs), "good": goodIface(ifs)}
	cert := diag.Proven
	if set && !c.Default {
		a["var"] = "NCCL_SOCKET_IFNAME"
	} else {
		a["variant"] = "default"
		cert = diag.Likely
	}
	r.Hit("net-interface-wrong", cert, a, at, b.Node.Ifaces.At)
})
