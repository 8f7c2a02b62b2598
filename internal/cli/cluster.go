package cli

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	rule "github.com/ncclinic/ncclinic/rules/lint"
)

// clusterOf adds up what sinfo said, by partition: the biggest node counts.
func clusterOf(ps []slurm.Partition) *rule.Cluster {
	c := &rule.Cluster{Partitions: map[string]rule.Partition{}, Gres: map[string]bool{}}
	for _, p := range ps {
		q := c.Partitions[p.Name]
		if q.GPUTypes == nil {
			q.GPUTypes = map[string]bool{}
		}
		q.Nodes += p.Nodes
		q.CPUs = max(q.CPUs, p.CPUs)
		q.MemMiB = max(q.MemMiB, p.MemMiB)
		q.MaxSeconds = p.Seconds
		gpus := 0
		for _, g := range splitGres(p.Gres) {
			name, rest, _ := strings.Cut(g, ":")
			c.Gres[name] = true
			if name != "gpu" {
				continue
			}
			typ, n, ok := strings.Cut(rest, ":")
			if !ok {
				typ, n = "", rest
			}
			k, err := strconv.Atoi(n)
			if err != nil {
				continue
			}
			gpus += k
			if typ != "" {
				q.GPUTypes[typ] = true
			}
		}
		q.GPUs = max(q.GPUs, gpus)
		c.Partitions[p.Name] = q
	}
	return c
}

// splitGres splits gpu:a100:4(S:0-1),nvme:1 and leaves out the sockets.
func splitGres(s string) []string {
	var out []string
	depth, from := 0, 0
	add := func(t string) {
		if i := strings.IndexByte(t, '('); i >= 0 {
			t = t[:i]
		}
		if t != "" {
			out = append(out, t)
		}
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				add(s[from:i])
				from = i + 1
			}
		}
	}
	add(s[from:])
	return out
}
