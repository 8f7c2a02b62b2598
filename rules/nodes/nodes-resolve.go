package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
)

// What a script sets must resolve. When MASTER_ADDR is not set, the first
// node's name was tried, which the job may never use.
var _ = Checks.Add("nodes-resolve", func(b *fact.Bundle, r *diag.Reporter) {
	var bad, wrong []fact.Resolved
	for _, x := range b.Nodes.Resolve {
		switch {
		case x.Error != "":
			bad = append(bad, x)
		case x.Wrong:
			wrong = append(wrong, x)
		}
	}
	tell := func(cause string, c diag.Certainty, list []fact.Resolved, variant string) {
		var nodes []string
		var ev []fact.Evidence
		for _, x := range list {
			ns, _ := hostlist.Expand(x.Nodes)
			nodes = append(nodes, ns...)
			says := strings.Join(x.Addrs, " ")
			if x.Error != "" {
				says = x.Error
			}
			ev = append(ev, fact.Evidence{Source: fact.SrcCommand, Path: "getent ahosts " + x.Name, Node: x.Nodes, Excerpt: says})
		}
		x := list[0]
		what := strings.Join(x.Addrs, ", ")
		if x.Error != "" {
			what = x.Error
		}
		a := diag.Args{"name": x.Name, "nodes": hostlist.Fold(nodes), "count": itoa(len(nodes)), "total": itoa(b.Nodes.Reported), "result": what, "first": b.Nodes.First, "about": "rdzv", "variant": variant}
		if len(nodes) < b.Nodes.Reported {
			a["odd"] = a["nodes"]
		}
		for _, x := range b.Nodes.Resolve {
			if x.Error == "" && !x.Wrong {
				ev = append(ev, fact.Evidence{Source: fact.SrcCommand, Path: "getent ahosts " + x.Name, Node: x.Nodes, Excerpt: strings.Join(x.Addrs, " ")})
			}
		}
		f := r.Hit(cause, c, a, ev...)
		if x.Default {
			f.Sev(diag.Note).As(diag.Context)
			f.ID = "nodes-resolve"
			f.Fixes = nil
			f.Args["variant"] = "default"
			delete(f.Args, "odd")
			return
		}
		f.At(diag.Where{Node: a["nodes"]})
	}
	if len(bad) > 0 {
		tell("rdzv-host-unresolvable", diag.Proven, bad, "")
	}
	if len(wrong) > 0 && !wrong[0].Default {
		tell("rdzv-master-wrong-host", diag.Proven, wrong, "wrong")
	}
})
