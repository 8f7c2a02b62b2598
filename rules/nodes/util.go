package nodes

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
)

// diff is a thing that is not the same on all nodes.
type diff struct {
	name  string
	all   []fact.ValueFor // most frequent first
	nodes int             // on how many it is known
}

// differs returns how a compared thing differs; ok is false when it does not.
func differs(b *fact.Bundle, name string) (d diff, ok bool) {
	for _, c := range b.Nodes.Compared {
		if c.Name == name {
			return diffOf(c)
		}
	}
	return d, false
}

func diffOf(c fact.Compared) (diff, bool) {
	d := diff{name: c.Name, all: c.Values}
	for _, v := range c.Values {
		d.nodes += v.Count
	}
	return d, len(c.Values) > 1
}

// clear reports whether more than half of the nodes agree, so that the others
// can be called odd.
func (d diff) clear() bool { return 2*d.all[0].Count > d.nodes }

// odd are the nodes that differ from most, "" when it cannot be told who is odd.
func (d diff) odd() string {
	if !d.clear() {
		return ""
	}
	return nodesOf(d.all[1:])
}

func nodesOf(vs []fact.ValueFor) string {
	var names []string
	for _, v := range vs {
		ns, err := hostlist.Expand(v.Nodes)
		if err != nil {
			continue
		}
		names = append(names, ns...)
	}
	return hostlist.Fold(names)
}

// maxShown is how many values a message shows.
const maxShown = 4

// args are the arguments of every message about a difference.
func (d diff) args(about string) diag.Args {
	a := diag.Args{"what": label(d.name), "about": about, "usual": d.all[0].Value, "usual_nodes": d.all[0].Nodes, "variant": "split"}
	var rest []string
	for i, v := range d.all[1:] {
		if i == maxShown {
			rest = append(rest, "…")
			break
		}
		rest = append(rest, v.Nodes+": "+v.Value)
	}
	a["others"] = strings.Join(rest, "; ")
	if odd := d.odd(); odd != "" {
		a["variant"], a["odd"], a["nodes"], a["node"] = "", odd, odd, odd
		delete(a, "variant")
	}
	return a
}

// label is the name of a thing as people know it: a variable's own.
func label(name string) string {
	for _, p := range []string{"set.", "env."} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return rest
		}
	}
	return name
}

// evidence says for each value which nodes have it.
func (d diff) evidence() []fact.Evidence {
	var out []fact.Evidence
	for i, v := range d.all {
		if i == maxShown+1 {
			break
		}
		out = append(out, fact.Evidence{Node: v.Nodes, Excerpt: label(d.name) + " = " + v.Value})
	}
	return out
}

// report tells the first difference as the finding and the others as further
// evidence of it.
func report(r *diag.Reporter, cause string, c diag.Certainty, about string, ds ...diff) *diag.Finding {
	var ev []fact.Evidence
	for _, d := range ds {
		ev = append(ev, d.evidence()...)
	}
	f := r.Hit(cause, c, ds[0].args(about), ev...)
	if odd := ds[0].odd(); odd != "" {
		f.At(diag.Where{Node: odd})
	}
	return f
}

// all returns the differences among the named things.
func all(b *fact.Bundle, names ...string) []diff {
	var out []diff
	for _, n := range names {
		if d, ok := differs(b, n); ok {
			out = append(out, d)
		}
	}
	return out
}

// withPrefix returns the differences among things whose names start so.
func withPrefix(b *fact.Bundle, prefix string, take func(variable string) bool) []diff {
	var out []diff
	for _, c := range b.Nodes.Compared {
		v, ok := strings.CutPrefix(c.Name, prefix)
		if !ok || !take(v) {
			continue
		}
		if d, ok := diffOf(c); ok {
			out = append(out, d)
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }

// usesRDMA reports whether any group of nodes has an active adapter.
func usesRDMA(b *fact.Bundle) bool {
	for _, c := range b.Nodes.Compared {
		if c.Name == "hca" {
			for _, v := range c.Values {
				if v.Value != fact.NoValue {
					return true
				}
			}
		}
	}
	return false
}
