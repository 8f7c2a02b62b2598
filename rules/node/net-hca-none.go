package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-hca-none", func(b *fact.Bundle, r *diag.Reporter) {
	v, at, set := setting(b, "NCCL_IB_HCA")
	hcas := b.Node.RDMA.Or(nil)
	if !set || v == "" || len(hcas) == 0 || rdmaOff(b) {
		return
	}
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	c := netsel.SelectHCA(hcas, v)
	if len(c.Ports) > 0 {
		return
	}
	a := diag.Args{"value": v, "var": "NCCL_IB_HCA", "have": hcaNames(hcas), "good": goodHCA(hcas), "bad": strings.Join(c.Unmatched, ", ")}
	switch {
	case len(c.Inactive) > 0:
		var ports []string
		for _, p := range c.Inactive {
			ports = append(ports, p.String())
		}
		a["variant"], a["bad"] = "inactive", strings.Join(ports, ", ")
	case a["bad"] == "":
		a["bad"] = v
	}
	f := r.Hit("net-rdma-device", diag.Proven, a, at, b.Node.RDMA.At)
	if net, _, _ := setting(b, "NCCL_NET"); net == "IB" {
		f.Sev(diag.Error)
	}
})
