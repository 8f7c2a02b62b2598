// Package nodes judges an allocation: the rules for one node over each group of
// equal nodes, the rules that compare nodes, and one cause over all of it.
package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
)

// Family is the family of the rules that compare nodes.
const Family = "nodes"

// maxJudged is how many groups are judged one by one, the largest first.
const maxJudged = 400

// Judge runs the rules over an allocation. Rules of other families than Family
// see the facts of one node of each group; what they find is told once, with
// all its nodes.
func Judge(set *diag.Set, b *fact.Bundle) diag.Report {
	one, all := split(set)
	rep := diag.Run(all, b)
	rep.Subject = b.Subject
	judged, found := onGroups(one, b.Nodes, &rep)
	rep.Findings = append(found, rep.Findings...)
	for i := range rep.Findings { // both runs chose a cause of their own
		f := &rep.Findings[i]
		if f.Role == diag.Contributing || f.Role == diag.Symptom {
			f.Role = diag.Cause
		}
		f.Explains = nil
	}
	fold(rep.Findings)
	absoluteFirst(rep.Findings)
	if judged < len(b.Nodes.Groups) {
		n := 0
		for _, g := range b.Nodes.Groups[judged:] {
			n += g.Count
		}
		rep.Problems = append(rep.Problems, fact.Problem{What: "nodes", Why: fmt.Sprintf("%d nodes differ from all others in some way; they were compared, and not judged one by one", n)})
	}
	rep = diag.Decide(set, rep)
	rep.Nodes = summary(&rep, b.Nodes)
	return rep
}

func summary(rep *diag.Report, s *fact.NodeSet) *diag.NodesReport {
	n := &diag.NodesReport{Total: s.Total, Reported: s.Reported, Expected: s.Expected, Missing: s.Missing, Compared: len(s.Compared), Different: Different(s), Exclude: Exclude(rep, s)}
	n.Alike, n.AlikeCount = Alike(s)
	if n.Missing == nil {
		n.Missing = []fact.NodeFault{}
	}
	if n.Different == nil {
		n.Different = []fact.Compared{}
	}
	if r, ok := s.Reach.Get(); ok {
		n.Reach = &r
	}
	if g, ok := s.Group.Get(); ok {
		n.Group = &g
	}
	return n
}

// split makes two sets of one: rules that judge a node, and rules that judge
// the allocation. Causes and texts are in both.
func split(set *diag.Set) (one, all *diag.Set) {
	var a, b []*diag.Rule
	for _, r := range set.Rules {
		quiet := *r
		quiet.Check = nil
		if r.Family == Family {
			a, b = append(a, &quiet), append(b, r)
		} else {
			a, b = append(a, r), append(b, &quiet)
		}
	}
	return diag.NewSet(set.Version, a), diag.NewSet(set.Version, b)
}

// onGroups judges each group and returns each finding once.
func onGroups(set *diag.Set, s *fact.NodeSet, rep *diag.Report) (judged int, out []diag.Finding) {
	type key struct{ id, rule, variant string }
	type hit struct {
		f     diag.Finding
		nodes []string
		vary  bool // the particulars are not the same on all of them
	}
	at := map[key]*hit{}
	var order []key
	ran := map[string]diag.Ran{}
	var rules []string
	total := 0
	for _, g := range s.Groups {
		total += g.Count
	}
	for i, g := range s.Groups {
		if i == maxJudged || g.Bundle == nil {
			break
		}
		judged++
		names, err := hostlist.Expand(g.Nodes)
		if err != nil || len(names) == 0 { // a file that somebody edited
			continue
		}
		r := diag.Run(set, g.Bundle)
		for _, x := range r.Ran {
			old, seen := ran[x.Rule]
			if !seen {
				rules = append(rules, x.Rule)
			}
			if !seen || statusRank(x.Status) < statusRank(old.Status) {
				ran[x.Rule] = x
			}
		}
		for _, p := range r.Problems {
			rep.Problems = append(rep.Problems, fact.Problem{What: g.Nodes + ": " + p.What, Why: p.Why})
		}
		for _, f := range r.Findings {
			k := key{f.ID, f.Rule, f.Args["variant"]}
			h := at[k]
			if h == nil {
				h = &hit{f: f}
				at[k] = h
				order = append(order, k)
				for j := range h.f.Evidence {
					h.f.Evidence[j].Node = names[0]
				}
			}
			h.vary = h.vary || !sameArgs(h.f.Args, f.Args)
			h.nodes = append(h.nodes, names...)
		}
	}
	for _, k := range order {
		h := at[k]
		f := h.f
		args := diag.Args{}
		for n, v := range f.Args {
			args[n] = v
		}
		args["nodes"] = hostlist.Fold(h.nodes)
		args["node_count"] = fmt.Sprint(len(h.nodes))
		if h.vary {
			args["told_of"] = h.nodes[0]
		}
		if len(h.nodes) == total {
			args["nodes_all"] = "1"
		} else {
			args["node"] = args["nodes"]
		}
		f.Args = args
		f.Count = 1
		f.Where = append(f.Where, diag.Where{Node: args["nodes"]})
		out = append(out, f)
	}
	slices.Sort(rules)
	for _, id := range rules {
		rep.Ran = append(rep.Ran, ran[id])
	}
	return judged, out
}

// sameArgs compares the particulars of one finding on two nodes; the node itself is none.
func sameArgs(a, b diag.Args) bool {
	return maps.Equal(without(a, "node"), without(b, "node"))
}

func without(a diag.Args, key string) diag.Args {
	if _, has := a[key]; !has {
		return a
	}
	out := maps.Clone(a)
	delete(out, key)
	return out
}

// Merged are the arguments that a finding gets when those of several nodes become
// one: on which nodes it was found, how many these are, whether it was on all, and
// of which its particulars are when they are not the same everywhere.
var Merged = []string{"nodes", "node_count", "nodes_all", "told_of"}

func statusRank(s string) int {
	switch s {
	case diag.Hit:
		return 0
	case diag.RFailed:
		return 1
	case diag.Clean:
		return 2
	}
	return 3
}

// explainedBy says which differences an exact cause on the odd nodes accounts
// for: the beginning of the cause's id, and what it explains by the rule's
// "about" argument.
var explainedBy = map[string][]string{
	"torch": {"torch", "nccl"}, "env": {"torch", "nccl", "python"}, "nccl": {"nccl"}, "lib": {"nccl"}, "cuda": {"torch"},
	"gpu": {"gpu", "driver"}, "net": {"net"},
}

// fold makes a difference a consequence of the exact cause that a rule found on
// the very nodes that are odd: on a node with a CPU build, another torch than
// elsewhere is no second problem.
func fold(fs []diag.Finding) {
	for i := range fs {
		d := &fs[i]
		about, odd := d.Args["about"], d.Args["odd"]
		if about == "" || odd == "" {
			continue
		}
		for j := range fs {
			c := &fs[j]
			if c.Args["about"] != "" || c.Role != diag.Cause || c.Severity != diag.Error || c.Args["nodes_all"] != "" || !within(odd, c.Args["nodes"]) {
				continue
			}
			family, _, _ := strings.Cut(c.ID, "-")
			if slices.Contains(explainedBy[family], about) {
				d.Role = diag.Symptom
				c.Explains = append(c.Explains, d.ID)
				break
			}
		}
	}
}

// absoluteFirst lets what is wrong on all nodes come before what differs
// between them: a cluster that is CPU-only everywhere stays broken when one
// node has another release.
func absoluteFirst(fs []diag.Finding) {
	everywhere := slices.ContainsFunc(fs, func(f diag.Finding) bool {
		return f.Role == diag.Cause && f.Severity == diag.Error && f.Certainty != diag.Possible && f.Args["nodes_all"] != ""
	})
	if !everywhere {
		return
	}
	for i := range fs {
		if fs[i].Args["about"] != "" && fs[i].Role == diag.Cause {
			fs[i].Role = diag.Contributing
		}
	}
}

// within reports whether all nodes of one list are in the other.
func within(part, whole string) bool {
	a, err1 := hostlist.Expand(part)
	b, err2 := hostlist.Expand(whole)
	if err1 != nil || err2 != nil {
		return false
	}
	in := map[string]bool{}
	for _, n := range b {
		in[n] = true
	}
	return !slices.ContainsFunc(a, func(n string) bool { return !in[n] })
}

// Exclude returns the nodes that are better left out of the next job, folded
// for sbatch --exclude: those that are missing, and those that a finding of at
// least likely certainty and error severity singles out, as long as they are
// the smaller part.
func Exclude(rep *diag.Report, s *fact.NodeSet) string {
	bad := map[string]bool{}
	add := func(list string) {
		names, err := hostlist.Expand(list)
		if err != nil {
			return
		}
		for _, n := range names {
			bad[n] = true
		}
	}
	for _, f := range s.Missing {
		add(f.Nodes)
	}
	// What is wrong on every node has no outlier: neither the node of the rank that
	// dies first of it nor one that is broken in another release. A fault of its
	// own, such as a firewall or a memory limit, keeps a node on the list.
	top := rep.Top()
	everywhere := top != nil && top.Severity == diag.Error && top.Args["nodes_all"] != ""
	for i := range rep.Findings {
		f := &rep.Findings[i]
		if everywhere && (live(f) || f.Args["usual"] != "") || f.Severity != diag.Error || f.Certainty == diag.Possible || f.Args["nodes_all"] != "" || f.Role == diag.Context {
			continue
		}
		if f.Args["about"] == "" || f.Args["odd"] != "" {
			for _, w := range f.Where {
				add(w.Node)
			}
		}
	}
	if 2*len(bad) >= s.Total {
		return ""
	}
	var names []string
	for n := range bad {
		names = append(names, n)
	}
	return hostlist.Fold(names)
}

// live reports whether a finding is what a real process group did.
func live(f *diag.Finding) bool {
	return slices.ContainsFunc(f.Evidence, func(e fact.Evidence) bool { return e.Source == fact.SrcLive })
}

// Alike returns the largest set of nodes that are the same in everything that
// was compared, folded, and how many there are.
func Alike(s *fact.NodeSet) (string, int) {
	names, err := hostlist.Expand(s.Expected)
	if err != nil {
		return "", 0
	}
	odd := map[string]bool{}
	drop := func(list string) {
		ns, _ := hostlist.Expand(list)
		for _, n := range ns {
			odd[n] = true
		}
	}
	for _, f := range s.Missing {
		drop(f.Nodes)
	}
	for _, c := range s.Compared {
		for i, v := range c.Values {
			if i > 0 {
				drop(v.Nodes)
			}
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return odd[n] })
	return hostlist.Fold(names), len(names)
}

// Different returns what differs between nodes, most important first by the
// number of nodes that are odd.
func Different(s *fact.NodeSet) []fact.Compared {
	var out []fact.Compared
	for _, c := range s.Compared {
		if len(c.Values) > 1 {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b fact.Compared) int { return cmp.Compare(group(a.Name), group(b.Name)) })
	return out
}

// group orders compared things: software, then GPUs, network, settings, the rest.
func group(name string) int {
	for i, p := range []string{"torch", "nccl", "python", "driver", "gpu", "hca", "plugin", "iface", "net", "mtu", "set.", "env."} {
		if strings.HasPrefix(name, p) {
			return i
		}
	}
	return 99
}
