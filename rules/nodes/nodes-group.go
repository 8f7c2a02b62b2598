package nodes

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// What a real process group said. A rank that only waited is not the culprit.
var _ = Checks.Add("nodes-group", func(b *fact.Bundle, r *diag.Reporter) {
	g, ok := b.Nodes.Group.Get()
	if !ok {
		r.Skip("needs --live")
		return
	}
	for _, d := range g.Shared {
		var ranks []string
		for _, n := range d.Ranks {
			ranks = append(ranks, itoa(n))
		}
		r.Hit("gpu-shared-by-ranks", diag.Proven, diag.Args{"ranks": strings.Join(ranks, ", "), "node": d.Node, "device": d.Device, "variant": "shared", "backend": g.Backend,
			"rank": ranks[0], "step": "device", "error": "-", "good": itoa(g.Good), "world": itoa(g.World)},
			fact.Evidence{Source: fact.SrcLive, Node: d.Node, Excerpt: "ranks " + strings.Join(ranks, ", ") + ": " + d.Device}).At(diag.Where{Node: d.Node})
	}
	f := g.First
	if f == nil {
		return
	}
	var ev []fact.Evidence
	for i, x := range g.Faults {
		if i == 6 {
			break
		}
		rank := x.Rank
		ev = append(ev, fact.Evidence{Source: fact.SrcLive, Node: x.Node, Rank: &rank, Excerpt: strings.TrimSpace(fmt.Sprintf("%s: %s", x.Step, x.Error))})
	}
	a := diag.Args{"rank": itoa(f.Rank), "node": f.Node, "nodes": f.Node, "step": f.Step, "error": f.Error, "backend": g.Backend, "good": itoa(g.Good), "world": itoa(g.World)}
	for _, k := range []string{"step", "error"} {
		if a[k] == "" {
			a[k] = "-"
		}
	}
	cause, c := "run-exception", diag.Proven
	switch {
	case strings.Contains(f.Error, "have NCCL built in"):
		cause = "torch-built-without-nccl"
	case f.Waits && f.Step == "init":
		cause, c = "rdzv-unreachable", diag.Likely
		a["variant"] = "waits"
	case f.Waits:
		cause, c = "run-collective-hang", diag.Likely
		a["variant"] = "waits"
	case f.Step == "":
		cause, c = "node-failed", diag.Likely
	}
	rank := f.Rank
	r.Hit(cause, c, a, ev...).At(diag.Where{Node: f.Node, Rank: &rank})
})
