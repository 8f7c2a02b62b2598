package explain

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// ownMasters judges ranks of one log that gave up on stores of different hosts:
// each evaluated MASTER_ADDR for itself, for certain when the script shows that.
// es are the lines in which they gave up.
func (v *view) ownMasters(es []*fact.Event, a diag.Args) bool {
	own, one := v.ownInScript()
	if one {
		return false
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
	v.sureOfMasters(&k, own)
	c := v.add(k, cap4(ev)...)
	c.rule = "" // the text of the line is about a store that does not answer
	v.masterLines(c)
	return true
}

// ownInScript reports whether the batch script lets each process evaluate
// MASTER_ADDR for itself, and whether it gives all of them one value.
func (v *view) ownInScript() (own, one bool) {
	for _, s := range v.scripts {
		for _, x := range s.assigns("MASTER_ADDR") {
			val := x.Value.Raw + " " + x.Value.Text
			own = own || strings.Contains(val, "hostname") && !strings.Contains(val, "hostnames") || strings.Contains(val, "HOSTNAME")
			if !own {
				return false, true
			}
		}
	}
	return own, false
}

// sureOfMasters says how sure it is that each process has a MASTER_ADDR of its own.
func (v *view) sureOfMasters(k *cand, own bool) {
	if own {
		k.cert = diag.Proven
	} else {
		k.needs = []string{"srun bash -c 'hostname -I; echo $MASTER_ADDR'"}
	}
}

// masterLines adds the lines of the script that set MASTER_ADDR.
func (v *view) masterLines(c *cand) {
	for _, s := range v.scripts {
		for _, x := range s.assigns("MASTER_ADDR") {
			c.ev = append(c.ev, s.ev(x.Pos))
		}
	}
}

var saysRank = lazyre.New(`(?i)\b(?:global[_ ])?rank[ =:]+(\d+)\b`)

// shownMasters judges ranks that print other values of MASTER_ADDR, in their log
// or in a listing of the environment of each: they cannot meet, whatever else
// they then complain about.
func (v *view) shownMasters() {
	own, one := v.ownInScript()
	if one || v.candidate("rdzv-master-wrong-host") || !v.dead && (v.launchers || len(v.facts("success")) > 0) || v.oneWorld() || len(envJobs(v.l)) > 1 {
		return
	}
	of := map[int]fact.Said{}
	env := v.facts(kind.Env)
	for _, s := range env {
		if s.Name != "MASTER_ADDR" || s.V == "" || strings.Contains(s.V, "$") || isLocal(s.V) {
			continue
		}
		r := v.saidBy(s, env)
		if o, ok := of[r]; r < 0 || ok && o.File != s.File && !sameHost(o.V, s.V) {
			return // whose it is decides, and one rank cannot stand in two jobs
		}
		of[r] = s // the last word of each
	}
	var hosts []fact.Said
	names, numbers := false, false
	for _, r := range slices.Sorted(maps.Keys(of)) {
		s := of[r]
		_, err := netip.ParseAddr(s.V)
		names, numbers = names || err != nil, numbers || err == nil
		if !slices.ContainsFunc(hosts, func(o fact.Said) bool { return sameHost(o.V, s.V) }) {
			hosts = append(hosts, s)
		}
	}
	if len(hosts) < 2 || names && numbers { // a name and a number may be one host
		return
	}
	k := cand{id: "rdzv-master-wrong-host", cert: diag.Likely, tier: 1, args: diag.Args{"variant": "each"}, over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}}
	v.sureOfMasters(&k, own)
	for _, s := range first(hosts, 4) {
		k.where = append(k.where, v.where(s.Place))
	}
	c := v.add(k)
	v.said(c, first(hosts, 4)...)
	v.masterLines(c)
}

// saidBy returns the rank of the process that a line of an environment is of: that
// of the line, or the one that the same listing names; -1: not known.
func (v *view) saidBy(s fact.Said, env []fact.Said) int {
	if r := v.rankOf(s.Place); r >= 0 {
		return r
	}
	if m := saysRank.FindStringSubmatch(s.Text); m != nil {
		if r, err := strconv.Atoi(m[1]); err == nil {
			return r
		}
	}
	for _, name := range []string{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"} {
		at := -1
		for _, o := range env {
			if o.File != s.File || o.Name != name || o.Task != s.Task {
				continue
			}
			r, err := strconv.Atoi(o.V)
			if err != nil || at >= 0 && at != r {
				return -1
			}
			at = r
		}
		if at >= 0 {
			return at
		}
	}
	return -1
}

// oneWorld reports that every process is a world of its own.
func (v *view) oneWorld() bool {
	n := 0
	for _, s := range v.facts(kind.Env) {
		if s.Name == "WORLD_SIZE" {
			if s.V != "1" {
				return false
			}
			n++
		}
	}
	return n > 0
}
