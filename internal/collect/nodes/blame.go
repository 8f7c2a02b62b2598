package nodes

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
)

// link is one connection that was tried, from one position to another.
type link struct {
	from, to int
	ok       bool
}

// blame explains failed connections by as few nodes, or pairs of networks, as
// it can: of all candidates that no successful connection contradicts, the one
// that explains most, again and again (the usual greedy set cover). What two
// candidates explain equally well is told as pairs. nets are the networks of
// the positions.
func blame(links []link, names []string, nets []string) []fact.Blame {
	type candidate struct {
		kind string
		a, b int // node, or two networks
	}
	good := map[candidate]bool{}
	covers := map[candidate][]int{}
	netID := map[string]int{}
	of := make([]int, len(nets))
	for i, n := range nets {
		id, ok := netID[n]
		if !ok {
			id = len(netID)
			netID[n] = id
		}
		of[i] = id
	}
	candidates := func(l link) []candidate {
		c := []candidate{{fact.BlameIn, l.to, 0}, {fact.BlameOut, l.from, 0}, {fact.BlameNode, l.from, 0}, {fact.BlameNode, l.to, 0}}
		if a, b := of[l.from], of[l.to]; a != b && nets[l.from] != "" && nets[l.to] != "" {
			c = append(c, candidate{fact.BlameSubnet, min(a, b), max(a, b)}, candidate{fact.BlameOneWay, a, b})
		}
		return c
	}
	var bad []int
	for i, l := range links {
		for _, c := range candidates(l) {
			if l.ok {
				good[c] = true
			} else {
				covers[c] = append(covers[c], i)
			}
		}
		if !l.ok {
			bad = append(bad, i)
		}
	}
	// A network of one node is that node.
	size := make([]int, len(netID))
	for _, id := range of {
		size[id]++
	}
	for c := range covers {
		if (c.kind == fact.BlameSubnet || c.kind == fact.BlameOneWay) && (size[c.a] < 2 || size[c.b] < 2) {
			delete(covers, c)
		}
	}
	// Node stands for both directions: it needs a fault in each, else In or Out says more.
	for c, list := range covers {
		if c.kind != fact.BlameNode {
			continue
		}
		in, out := false, false
		for _, i := range list {
			in = in || links[i].to == c.a
			out = out || links[i].from == c.a
		}
		if !in || !out {
			delete(covers, c)
		}
	}
	open := map[int]bool{}
	for _, i := range bad {
		open[i] = true
	}
	left := func(c candidate) int {
		n := 0
		for _, i := range covers[c] {
			if open[i] {
				n++
			}
		}
		return n
	}
	order := make([]candidate, 0, len(covers))
	for c := range covers {
		if !good[c] {
			order = append(order, c)
		}
	}
	rank := map[string]int{fact.BlameOneWay: 0, fact.BlameSubnet: 1, fact.BlameNode: 2, fact.BlameIn: 3, fact.BlameOut: 4}
	slices.SortFunc(order, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(len(covers[y]), len(covers[x])), cmp.Compare(rank[x.kind], rank[y.kind]), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	type found struct {
		nodes []string
		n     int
	}
	byKind := map[string]*found{}
	var out []fact.Blame
	for len(open) > 0 {
		best, most, tie := -1, 0, false
		for k, c := range order {
			if len(covers[c]) < most {
				break // sorted by what they cover at most
			}
			switch n := left(c); {
			case n > most:
				best, most, tie = k, n, false
			case n == most && n > 0 && order[best].kind == c.kind:
				tie = tie || sameOpen(covers[order[best]], covers[c], open)
			}
		}
		// A single fault is a pair, unless it is all that was tried of the node.
		if best < 0 || most < 2 || tie {
			break
		}
		c := order[best]
		for _, i := range covers[c] {
			delete(open, i)
		}
		if c.kind == fact.BlameSubnet || c.kind == fact.BlameOneWay {
			b := fact.Blame{Kind: c.kind, Faults: most}
			var one, two []string
			for i, id := range of {
				if id == c.a {
					one, b.Net = append(one, names[i]), nets[i]
				}
				if id == c.b {
					two, b.Net2 = append(two, names[i]), nets[i]
				}
			}
			b.Nodes, b.Other = hostlist.Fold(one), hostlist.Fold(two)
			out = append(out, b)
			continue
		}
		if byKind[c.kind] == nil {
			byKind[c.kind] = &found{}
		}
		f := byKind[c.kind]
		f.nodes, f.n = append(f.nodes, names[c.a]), f.n+most
	}
	for _, kind := range []string{fact.BlameNode, fact.BlameIn, fact.BlameOut} {
		if f := byKind[kind]; f != nil {
			out = append(out, fact.Blame{Kind: kind, Nodes: hostlist.Fold(f.nodes), Faults: f.n})
		}
	}
	if len(open) > 0 {
		var nodes []string
		for i := range open {
			nodes = append(nodes, names[links[i].from], names[links[i].to])
		}
		out = append(out, fact.Blame{Kind: fact.BlamePair, Nodes: hostlist.Fold(nodes), Faults: len(open)})
	}
	return out
}

func sameOpen(a, b []int, open map[int]bool) bool {
	in := map[int]bool{}
	n := 0
	for _, i := range a {
		if open[i] {
			in[i] = true
			n++
		}
	}
	for _, i := range b {
		if open[i] {
			if !in[i] {
				return false
			}
			n--
		}
	}
	return n == 0
}

// maxFaults is how many failed connections are told one by one.
const maxFaults = 200

// addReach turns what the probes said into faults and their explanation.
func (m *Merger) addReach(s *fact.NodeSet) {
	if m.answered[kindReach] == 0 || m.planned == nil {
		return
	}
	pos := map[int]int{} // by task
	var names []string
	for i, p := range m.planned {
		pos[p.task] = i
		names = append(names, m.tasks[p.task].name)
	}
	r := fact.Reach{Nodes: len(m.planned)}
	links := map[string][]link{} // by way
	for i, p := range m.planned {
		t := m.tasks[p.task]
		if t.reach == nil {
			continue // it died meanwhile: what it did not reach is not known
		}
		failed := map[string]string{}
		key := func(task int, way string) string { return way + " " + itoa(task) }
		for _, f := range t.reach.Faults {
			failed[key(f.Task, f.Way)] = f.Error
		}
		tried := func(j int, way string) {
			to := m.tasks[m.planned[j].task]
			if to.reach == nil {
				return // nobody was there
			}
			e := failed[key(to.id, way)]
			links[way] = append(links[way], link{i, j, e == ""})
			r.Tested++
			if e == "" {
				r.Good++
				return
			}
			r.Failed++
			if len(r.Faults) < maxFaults {
				f := fact.NoReach{From: t.name, To: to.name, Way: way, Error: e}
				for _, x := range to.ends {
					if x.Way == way || way == fact.WayBoth && x.Way == fact.WayNCCL {
						f.Iface, f.Addr = x.Iface, x.Addr
					}
				}
				if way == fact.WayMaster && t.master != nil {
					f.Addr = t.master.Name
				}
				r.Faults = append(r.Faults, f)
			}
		}
		for _, j := range strides(i, len(m.planned)) {
			for _, e := range m.planned[j].ends {
				way, _, _ := strings.Cut(e, " ")
				tried(j, way)
			}
		}
		if m.plannedMaster && i > 0 {
			tried(0, fact.WayMaster)
		}
	}
	var ways []string
	for w := range links {
		ways = append(ways, w)
	}
	sort.Strings(ways)
	for _, w := range ways {
		n := fact.Way{Way: w, Tested: len(links[w])}
		for _, l := range links[w] {
			if !l.ok {
				n.Failed++
			}
		}
		r.Ways = append(r.Ways, n)
		nets := make([]string, len(m.planned))
		for i, p := range m.planned {
			for _, e := range m.tasks[p.task].ends {
				if q, err := netip.ParsePrefix(e.Addr); err == nil && (e.Way == w || e.Way == fact.WayNCCL && w == fact.WayBoth) {
					nets[i] = q.Masked().String()
				}
			}
		}
		for _, b := range blame(links[w], names, nets) {
			b.Way = w
			r.Explain = append(r.Explain, b)
		}
	}
	s.Reach = fact.Of(r, fact.Evidence{})
}
