package explain

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// ownMasters judges ranks of one log that gave up on stores of different hosts:
// each evaluated MASTER_ADDR for itself, for certain when the script shows that.
// es are the lines in which they gave up.
func (v *view) ownMasters(es []*fact.Event, a diag.Args) bool {
	own := false
	for _, s := range v.scripts {
		for _, x := range s.assigns("MASTER_ADDR") {
			val := x.Value.Raw + " " + x.Value.Text
			own = own || strings.Contains(val, "hostname") && !strings.Contains(val, "hostnames") || strings.Contains(val, "HOSTNAME")
			if !own {
				return false // one value for all
			}
		}
	}
	if len(v.peek("S242", "S243", "S244")) > 0 {
		return false // attempts of one job may have had other first nodes
	}
	type client struct{ task, rank int }
	names, numbers := false, false
	var hosts []string
	var ev []*fact.Event // the first line about each of them
	of := map[client]string{}
	for _, e := range es {
		m := toHost.FindStringSubmatch(e.Text)
		if m == nil || isLocal(m[1]) {
			continue
		}
		if e.File != es[0].File || e.Time != 0 && es[0].Time != 0 && e.TK == es[0].TK && max(e.Time-es[0].Time, es[0].Time-e.Time) > 30*60*1000 {
			return false // logs of several jobs, or of several attempts
		}
		_, err := netip.ParseAddr(m[1])
		names, numbers = names || err != nil, numbers || err == nil
		k := client{e.Place.Task, e.Place.Rank}
		if k.task < 0 && k.rank < 0 {
			continue // whose line it is decides
		}
		if h := of[k]; h != "" && !sameHost(h, m[1]) {
			return false // one rank at several hosts: attempts of a restarted job
		}
		of[k] = m[1]
		if !slices.ContainsFunc(hosts, func(h string) bool { return sameHost(h, m[1]) }) {
			hosts, ev = append(hosts, m[1]), append(ev, e)
		}
	}
	if len(hosts) < 2 || names && numbers { // a name and a number may be one host
		return false
	}
	k := cand{id: "rdzv-master-wrong-host", cert: diag.Likely, tier: 1, args: mergeArgs(a, diag.Args{"variant": "each"}), over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}}
	if own {
		k.cert = diag.Proven
	} else {
		k.needs = []string{"srun bash -c 'hostname -I; echo $MASTER_ADDR'"}
	}
	c := v.add(k, cap4(ev)...)
	c.rule = "" // the text of the line is about a store that does not answer
	for _, s := range v.scripts {
		for _, x := range s.assigns("MASTER_ADDR") {
			c.ev = append(c.ev, s.ev(x.Pos))
		}
	}
	return true
}
