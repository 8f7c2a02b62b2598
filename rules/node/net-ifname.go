package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-ifname", func(b *fact.Bundle, r *diag.Reporter) {
	v, at, set := setting(b, "NCCL_SOCKET_IFNAME")
	if !set || len(v) < 2 {
		return
	}
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	ifs := b.Node.Ifaces.V
	c := netsel.SelectNCCL(ifs, v)
	if len(c.Names) > 0 {
		return
	}
	a := diag.Args{"value": v, "var": "NCCL_SOCKET_IFNAME", "have": ifaceNames(ifs), "good": goodIface(ifs)}
	switch {
	case len(c.Down) > 0:
		a["variant"], a["bad"] = "down", strings.Join(c.Down, ", ")
	case len(c.NoAddress) > 0:
		a["variant"], a["bad"] = "noaddress", strings.Join(c.NoAddress, ", ")
	}
	r.Hit("net-interface-wrong", diag.Proven, a, at, b.Node.Ifaces.At)
})
