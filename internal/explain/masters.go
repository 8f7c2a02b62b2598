package explain

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// ownMasters judges ranks that gave up on stores of different hosts: each
// evaluated MASTER_ADDR for itself. es are the lines in which they gave up.
func (v *view) ownMasters(es []*fact.Event, a diag.Args) bool {
	type client struct{ task, rank int }
	hosts := map[string]*fact.Event{}
	of := map[client]string{}
	for _, e := range es {
		m := toHost.FindStringSubmatch(e.Text)
		if m == nil || isLocal(m[1]) {
			continue
		}
		k := client{e.Place.Task, e.Place.Rank}
		if k.task < 0 && k.rank < 0 {
			continue // whose line it is decides
		}
		if h := of[k]; h != "" && !sameHost(h, m[1]) {
			return false // one rank at several hosts: attempts of a restarted job
		}
		of[k] = m[1]
		known := false
		for h := range hosts {
			known = known || sameHost(h, m[1])
		}
		if !known {
			hosts[m[1]] = e
		}
	}
	if len(hosts) < 2 {
		return false
	}
	var ev []*fact.Event
	for _, e := range es {
		for _, x := range hosts {
			if x == e {
				ev = append(ev, e)
			}
		}
	}
	c := v.add(cand{id: "rdzv-master-wrong-host", cert: diag.Proven, tier: 1, args: mergeArgs(a, diag.Args{"variant": "each"}), over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}}, cap4(ev)...)
	c.rule = "" // the text of the line is about a store that does not answer
	for _, s := range v.scripts {
		for _, x := range s.assigns("MASTER_ADDR") {
			c.ev = append(c.ev, s.ev(x.Pos))
		}
	}
	return true
}
