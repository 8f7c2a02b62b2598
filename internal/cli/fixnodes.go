package cli

import (
	"fmt"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	judge "github.com/ncclinic/ncclinic/internal/nodes"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/tables"
	"github.com/ncclinic/ncclinic/rules"
)

// groupsOf lists the bundles of what was read: those of the groups of nodes
// when it is the facts of an allocation (check --nodes --save), the largest
// group first, else the bundle itself.
func groupsOf(b *fact.Bundle) []*fact.Bundle {
	if b.Nodes == nil {
		return []*fact.Bundle{b}
	}
	var out []*fact.Bundle
	for _, g := range b.Nodes.Groups {
		if g.Bundle != nil {
			out = append(out, g.Bundle)
		}
	}
	return out
}

// kindsOf lists the kinds of nodes of what was read: driver and GPUs, each kind
// once, those that show neither left out.
func kindsOf(b *fact.Bundle) []plan.Node {
	var out []plan.Node
	seen := map[string]bool{}
	for _, g := range groupsOf(b) {
		n, ok := plan.NodeOf(g)
		key := fmt.Sprint(n.Driver, n.Compat, n.GPUs)
		if ok && !seen[key] {
			seen[key] = true
			out = append(out, n)
		}
	}
	return out
}

// hardest is the group of nodes that asks most of a build: the one with the
// oldest driver, of several the largest.
func hardest(b *fact.Bundle) *fact.Bundle {
	var out *fact.Bundle
	for _, g := range groupsOf(b) {
		d := g.Node.Driver.V.Version
		if out == nil || d != "" && (out.Node.Driver.V.Version == "" || tables.Compare(d, out.Node.Driver.V.Version) < 0) {
			out = g
		}
	}
	return out
}

// oldestGlibc is the oldest glibc of the nodes, "" when none is known.
func oldestGlibc(b *fact.Bundle) string {
	out := ""
	for _, g := range groupsOf(b) {
		if v := g.Host.Glibc.Or(""); v != "" && (out == "" || tables.Compare(v, out) < 0) {
			out = v
		}
	}
	return out
}

// nodesStart starts from the facts of an allocation: the verdict about its nodes,
// the environment of the largest group, and every kind of node.
func (a *app) nodesStart(s *start, b *fact.Bundle) error {
	groups := groupsOf(b)
	if len(groups) == 0 {
		return usagef("%s: %s", s.name, a.tr("no node reported its facts", "没有节点报告事实"))
	}
	base, err := a.load(rules.Allocation...)
	if err != nil {
		return fmt.Errorf("knowledge base: %w", err)
	}
	rep := judge.Judge(base.Set(), b)
	s.rep, s.b, s.kinds, s.glibc = &rep, groups[0], kindsOf(b), oldestGlibc(b)
	return nil
}

// givenNode judges facts of an allocation for a node that was described by hand
// or by --facts.
func (a *app) givenNode(s *start, f *fixFlags) error {
	b, err := a.described(s.b, f)
	if err != nil || b == s.b {
		return err
	}
	rep, err := a.judged(b)
	if err == nil && (s.rep.Top() == nil || rep.Top() != nil && s.rep.Verdict != diag.Broken) {
		s.rep = rep
	}
	return err
}
