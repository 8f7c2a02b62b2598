package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-hca-prefix", func(b *fact.Bundle, r *diag.Reporter) {
	v, at, set := setting(b, "NCCL_IB_HCA")
	hcas := b.Node.RDMA.Or(nil)
	spec := netsel.ParseSpec(v)
	if !set || len(hcas) == 0 || rdmaOff(b) || spec.Not || spec.Exact {
		return
	}
	c := netsel.SelectHCA(hcas, v)
	if len(c.Wide) == 0 {
		return
	}
	named := map[string]bool{}
	for _, it := range spec.Items {
		named[it.Name] = true
	}
	var extra []string
	links := map[string]bool{}
	for _, p := range c.Ports {
		if named[p.HCA] {
			links[p.Link] = true
		}
	}
	mixed := false
	for _, p := range c.Ports {
		for _, w := range c.Wide {
			if !named[p.HCA] && strings.HasPrefix(p.HCA, w) {
				extra = append(extra, p.String())
				mixed = mixed || p.Link != "" && !links[p.Link] && len(links) > 0
				break
			}
		}
	}
	if len(extra) == 0 {
		return
	}
	a := diag.Args{"value": v, "wide": strings.Join(c.Wide, ", "), "extra": strings.Join(extra, ", "), "good": "=" + v}
	if mixed {
		a["variant"] = "mixed"
		r.Hit("net-rdma-device", diag.Likely, a, at, b.Node.RDMA.At).Sev(diag.Warning)
		return
	}
	r.Hit("net-rdma-device", diag.Possible, a, at, b.Node.RDMA.At)
})
