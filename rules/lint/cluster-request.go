package lint

import (
	"sort"
	"strings"
)

var _ = Checks.Add("cluster-request", func(c *Ctx) {
	cl, s, r := c.O.Cluster, c.S, &c.S.Request
	if cl == nil || s.HetGroups > 0 || s.Opt("clusters") != nil || len(cl.Partitions) == 0 {
		return
	}
	d := s.Opt("partition")
	var ps []Partition
	var names []string
	for n := range cl.Partitions {
		names = append(names, n)
	}
	sort.Strings(names)
	if d != nil && d.Value != "" {
		for _, n := range strings.Split(d.Value, ",") {
			p, ok := cl.Partitions[n]
			if !ok {
				c.Hit(d.ValuePos, "variant", "partition", "value", n, "has", strings.Join(names[:min(len(names), 12)], ", "))
				return
			}
			ps = append(ps, p)
		}
	} else {
		for _, n := range names {
			ps = append(ps, cl.Partitions[n])
		}
	}
	most := func(f func(p Partition) int) int {
		m := 0
		for _, p := range ps {
			m = max(m, f(p))
		}
		return m
	}
	for _, g := range s.Directives {
		if g.Name != "gres" || g.Het != 0 {
			continue
		}
		for _, x := range strings.Split(g.Value, ",") {
			name, _, _ := strings.Cut(strings.TrimPrefix(x, "gres/"), ":")
			if name != "" && name != "none" && !cl.Gres[name] {
				c.Hit(g.ValuePos, "variant", "gres", "value", name, "has", strings.Join(keysOf(cl.Gres), ", "))
			}
		}
	}
	if g, has := c.gpus(), most(func(p Partition) int { return p.GPUs }); g > has && has > 0 {
		c.Hit(at(gpuLine(c), 1), "variant", "gpus", "value", itoa(g), "has", itoa(has))
	}
	if m, has := r.MemMiB, most(func(p Partition) int { return int(p.MemMiB) }); m > int64(has) && has > 0 {
		c.Hit(s.Opt("mem").ValuePos, "variant", "memory", "value", itoa(int(m)), "has", itoa(has))
	}
	if n, has := max(r.CPUsPerTask, 1)*max(r.TasksPerNode, 1), most(func(p Partition) int { return p.CPUs }); n > has && has > 0 && r.CPUsPerTask > 0 {
		c.Hit(s.Opt("cpus-per-task").Pos, "variant", "cpus", "value", itoa(n), "has", itoa(has))
	}
	if n, has := r.Nodes, most(func(p Partition) int { return p.Nodes }); n > has && has > 0 {
		c.Hit(s.Opt("nodes").Pos, "variant", "nodes", "value", itoa(n), "has", itoa(has))
	}
	limit := int64(0)
	for _, p := range ps {
		if p.MaxSeconds <= 0 {
			return
		}
		limit = max(limit, p.MaxSeconds)
	}
	if r.Seconds > limit && limit > 0 {
		c.Hit(s.Opt("time").ValuePos, "variant", "time", "value", s.Opt("time").Value, "has", itoa(int(limit/60)))
	}
})

func keysOf(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
