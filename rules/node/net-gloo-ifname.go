package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-gloo-ifname", func(b *fact.Bundle, r *diag.Reporter) {
	v, set := b.Lookup("GLOO_SOCKET_IFNAME")
	if !set || len(v) < 2 {
		return
	}
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	ifs := b.Node.Ifaces.V
	c := netsel.SelectGloo(ifs, v)
	a := diag.Args{"value": v, "var": "GLOO_SOCKET_IFNAME", "have": ifaceNames(ifs), "good": goodIface(ifs), "job_nodes": itoa(nodesOf(b, 1))}
	at := fact.EnvVarAt("GLOO_SOCKET_IFNAME", v)
	if len(c.Bad) > 0 {
		a["bad"] = strings.Join(c.Bad, ", ")
		r.Hit("net-interface-wrong", diag.Proven, a, at, b.Node.Ifaces.At)
		return
	}
	if nodesOf(b, 1) < 2 {
		return
	}
	for _, name := range c.Names {
		if local(ifs, name) {
			a["variant"] = "loopback"
			r.Hit("net-interface-wrong", diag.Proven, a, at, b.Node.Ifaces.At)
			return
		}
	}
})
