package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Probes connected with each other on the addresses that NCCL and Gloo would
// take. Where MASTER_ADDR can be reached and those cannot, the interface is
// wrong; else the nodes do not reach each other at all.
var _ = Checks.Add("nodes-reach", func(b *fact.Bundle, r *diag.Reporter) {
	x, ok := b.Nodes.Reach.Get()
	if !ok {
		r.Skip("nodes were not connected with each other")
		return
	}
	if x.Failed == 0 || len(x.Explain) == 0 {
		return
	}
	var iface, kind string
	for _, f := range x.Faults {
		if iface == "" && f.Iface != "" {
			iface = f.Iface
		}
		if kind == "" {
			kind = f.Error
		}
	}
	var ev []fact.Evidence
	for i, f := range x.Faults {
		if i == 6 {
			break
		}
		to := f.To
		if f.Addr != "" {
			to += " (" + strings.TrimSpace(f.Iface+" "+f.Addr) + ")"
		}
		ev = append(ev, fact.Evidence{Node: f.From, Excerpt: "→ " + to + ": " + f.Error})
	}
	e := x.Explain[0]
	a := diag.Args{"failed": itoa(x.Failed), "tested": itoa(x.Tested), "iface": iface, "error": kind, "nodes": e.Nodes, "other": e.Other, "net": e.Net, "net2": e.Net2, "about": "reach", "variant": e.Kind}
	for _, k := range []string{"iface", "error", "nodes", "other", "net", "net2"} {
		if a[k] == "" {
			a[k] = "-"
		}
	}
	if e.Kind != fact.BlameSubnet && e.Kind != fact.BlameOneWay && e.Kind != fact.BlamePair && len(x.Explain) == 1 {
		a["odd"], a["node"] = e.Nodes, e.Nodes
	}
	cause, c := "rdzv-unreachable", diag.Proven
	if nowhere(x) {
		// The name of the first node leads there over another interface.
		cause, c = "net-interface-wrong", diag.Likely
		delete(a, "odd")
	}
	f := r.Hit(cause, c, a, ev...)
	for _, e := range x.Explain {
		f.At(diag.Where{Node: e.Nodes})
	}
})

// nowhere reports whether no connection at all works over an interface that
// NCCL or Gloo would choose, while MASTER_ADDR is reached from everywhere.
func nowhere(x fact.Reach) bool {
	dead, master := false, false
	for _, w := range x.Ways {
		if w.Way == fact.WayMaster {
			master = w.Tested > 0 && w.Failed == 0
		} else {
			dead = dead || w.Tested > 0 && w.Failed == w.Tested
		}
	}
	return dead && master
}
