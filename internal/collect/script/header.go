package script

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// request adds the live options of the first component up.
func (p *parser) request() {
	r := &p.s.Request
	for i := range p.s.Directives {
		d := &p.s.Directives[i]
		if d.Het != 0 || !d.Known {
			continue
		}
		p.apply(r, d)
	}
	effective(r)
}

func (p *parser) apply(r *fact.Request, d *fact.Directive) {
	bad := func(why string) {
		p.refuse(fact.DirectiveError{Pos: d.ValuePos, Kind: fact.RefuseValue, Text: d.Value, Option: d.Name, Why: why})
	}
	count := func(to *int) {
		n, ok := number(d.Value)
		if !ok || n < 0 {
			bad("number")
			return
		}
		*to = n
	}
	gpus := func(to *int) {
		n, typ, ok := gpuCount(d.Value)
		if !ok {
			bad("gpus")
			return
		}
		*to = n
		r.GPUAsked = r.GPUAsked || n > 0
		if typ != "" {
			r.GPUType = typ
		}
	}
	switch d.Name {
	case "nodes":
		lo, hi, ok := nodeRange(d.Value)
		if !ok {
			bad("nodes")
			return
		}
		r.Nodes, r.NodesMax = lo, hi
	case "ntasks":
		count(&r.Tasks)
	case "ntasks-per-node":
		count(&r.TasksPerNode)
	case "ntasks-per-gpu":
		count(&r.TasksPerGPU)
	case "cpus-per-task":
		count(&r.CPUsPerTask)
	case "cpus-per-gpu":
		count(&r.CPUsPerGPU)
	case "gpus":
		gpus(&r.GPUs)
	case "gpus-per-node":
		gpus(&r.GPUsPerNode)
	case "gpus-per-task":
		gpus(&r.GPUsPerTask)
	case "gpus-per-socket":
		gpus(&r.GPUsPerSocket)
	case "gres", "tres-per-node":
		r.GresGPUs, r.GresOther, r.GPUType = 0, "", ""
		p.gres(r, d.Value)
	case "tres-per-task":
		if n, ok := tresGPUs(d.Value); ok {
			r.GPUsPerTask, r.GPUAsked = n, r.GPUAsked || n > 0
		}
	case "tres-per-job":
		if n, ok := tresGPUs(d.Value); ok {
			r.GPUs, r.GPUAsked = n, r.GPUAsked || n > 0
		}
	case "mem":
		if n, ok := mebi(d.Value); !ok {
			bad("memory")
		} else if n == 0 {
			r.MemMiB = -1
		} else {
			r.MemMiB = n
		}
	case "mem-per-cpu":
		if n, ok := mebi(d.Value); !ok {
			bad("memory")
		} else {
			r.MemPerCPUMiB = n
		}
	case "mem-per-gpu":
		if n, ok := mebi(d.Value); !ok {
			bad("memory")
		} else {
			r.MemPerGPUMiB = n
		}
	case "time":
		n, ok := Seconds(d.Value)
		if !ok {
			bad("time")
			return
		}
		r.Seconds = n
	case "exclusive":
		switch v := strings.ToLower(d.Value); {
		case v == "", v == "exclusive", v == "topo":
			r.Exclusive = true
		case v == "user", v == "mcs", v == "oversubscribe":
			r.Exclusive = false
		default:
			bad("exclusive")
		}
	case "oversubscribe":
		r.Exclusive = false
	case "array":
		r.Array = d.Value
	case "export":
		r.Export = d.Value
	case "output":
		r.Output = d.Value
	case "error":
		r.Error = d.Value
	case "partition":
		r.Partition = d.Value
	case "constraint":
		r.Constraint = d.Value
	case "job-name":
		r.JobName = d.Value
	case "signal":
		r.Signal = d.Value
		v := d.Value
		r.SignalBatch = false
		for {
			f, rest, ok := strings.Cut(v, ":")
			if !ok {
				break
			}
			r.SignalBatch = r.SignalBatch || strings.ContainsAny(f, "Bb")
			v = rest
		}
		name, _, _ := strings.Cut(v, "@")
		r.SignalName = SignalName(name)
	}
}

// SignalName returns the name of a signal without SIG, upper case.
func SignalName(s string) string {
	s = strings.ToUpper(strings.TrimSpace(s))
	s = strings.TrimPrefix(s, "SIG")
	if n, ok := map[string]string{"1": "HUP", "2": "INT", "3": "QUIT", "9": "KILL", "10": "USR1", "12": "USR2", "15": "TERM", "18": "CONT", "0": "EXIT"}[s]; ok {
		return n
	}
	return s
}

// gres reads a list such as gpu:a100:4,shard:2,nvme:1 or gres/gpu:4.
func (p *parser) gres(r *fact.Request, list string) {
	for _, g := range strings.Split(list, ",") {
		g = strings.TrimPrefix(strings.TrimSpace(g), "gres/")
		g = strings.TrimPrefix(g, "gres:")
		name, rest, has := strings.Cut(strings.Replace(g, "=", ":", 1), ":")
		if name != "gpu" {
			if r.GresOther == "" {
				r.GresOther = name
			}
			continue
		}
		n := 1
		if has {
			k, typ, ok := gpuCount(rest)
			if !ok {
				continue
			}
			n = k
			if typ != "" {
				r.GPUType = typ
			}
		}
		r.GresGPUs += n
		r.GPUAsked = r.GPUAsked || n > 0
	}
}

// gpuCount reads [type:]count; a type alone counts one. "(S:0)" may follow.
func gpuCount(v string) (n int, typ string, ok bool) {
	if i := strings.IndexByte(v, '('); i >= 0 {
		v = v[:i]
	}
	n = 1
	for _, part := range strings.Split(v, ",") { // a100:2,v100:1
		f := strings.Split(part, ":")
		last := f[len(f)-1]
		if k, err := strconv.Atoi(last); err == nil && k >= 0 {
			n = k
			f = f[:len(f)-1]
		} else if last == "" || last[0] >= '0' && last[0] <= '9' && strings.Trim(last, "0123456789kKmMgG") == "" {
			return 0, "", false
		}
		if len(f) > 1 || strings.ContainsAny(v, "${}<>[]~ ") {
			return 0, "", false
		}
		if len(f) == 1 {
			typ = f[0]
		}
	}
	return n, typ, true
}

func tresGPUs(v string) (int, bool) {
	for _, g := range strings.Split(v, ",") {
		g = strings.Replace(strings.TrimSpace(g), "=", ":", 1)
		if rest, ok := strings.CutPrefix(g, "gres/gpu"); ok {
			if rest == "" {
				return 1, true
			}
			n, _, ok := gpuCount(strings.TrimPrefix(strings.Replace(rest, "=", ":", 1), ":"))
			return n, ok
		}
	}
	return 0, false
}

func number(v string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(v))
	return n, err == nil && n <= 1<<30
}

// nodeRange reads 2, 2-4, 1k and lists such as 1,3-5 (22.05 and later).
func nodeRange(v string) (lo, hi int, ok bool) {
	first := true
	for _, part := range strings.Split(v, ",") {
		a, b, isRange := strings.Cut(part, "-")
		x, ok1 := scaled(a)
		y := x
		if isRange {
			b, _, _ = strings.Cut(b, ":")
			var ok2 bool
			if y, ok2 = scaled(b); !ok2 {
				return 0, 0, false
			}
		}
		if !ok1 || x < 0 || y < x {
			return 0, 0, false
		}
		if first || x < lo {
			lo = x
		}
		hi = max(hi, y)
		first = false
	}
	return lo, hi, true
}

func scaled(v string) (int, bool) {
	mul := 1
	switch {
	case strings.HasSuffix(v, "k") || strings.HasSuffix(v, "K"):
		mul, v = 1024, v[:len(v)-1]
	case strings.HasSuffix(v, "m") || strings.HasSuffix(v, "M"):
		mul, v = 1<<20, v[:len(v)-1]
	}
	n, err := strconv.Atoi(v)
	if err != nil || n > 1<<30/mul {
		return 0, false
	}
	return n * mul, true
}

// mebi reads a size; without a unit it is mebibytes (sbatch(1) --mem).
func mebi(v string) (int64, bool) {
	i := 0
	for i < len(v) && v[i] >= '0' && v[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(v[:i], 10, 64)
	if err != nil || n > 1<<40 {
		return 0, false
	}
	switch strings.ToLower(v[i:]) {
	case "", "m", "mb", "mib":
		return n, true
	case "k", "kb", "kib":
		return (n + 1023) / 1024, true
	case "g", "gb", "gib":
		return n << 10, true
	case "t", "tb", "tib":
		return n << 20, true
	case "p", "pb", "pib":
		return n << 30, true
	}
	return 0, false
}

// Seconds reads a time limit as Slurm does: minutes, minutes:seconds,
// hours:minutes:seconds, days-[hours[:minutes[:seconds]]]; -1 is no limit.
func Seconds(v string) (int64, bool) {
	switch strings.ToLower(v) {
	case "unlimited", "infinite", "-1":
		return -1, true
	}
	day, rest, hasDay := strings.Cut(v, "-")
	var days int64
	if hasDay {
		n, err := strconv.ParseInt(day, 10, 64)
		if err != nil || n < 0 || n > 1e6 {
			return 0, false
		}
		days = n
		if rest == "" {
			return days * 86400, true
		}
	} else {
		rest = v
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, false
	}
	var n [3]int64
	for i, x := range parts {
		k, err := strconv.ParseInt(x, 10, 64)
		if err != nil || k < 0 || k > 1e9 {
			return 0, false
		}
		n[i] = k
	}
	var sec int64
	switch {
	case hasDay:
		sec = days*86400 + n[0]*3600 + n[1]*60 + n[2]
	case len(parts) == 1:
		sec = n[0] * 60
	case len(parts) == 2:
		sec = n[0]*60 + n[1]
	default:
		sec = n[0]*3600 + n[1]*60 + n[2]
	}
	return sec, true
}

// effective derives nodes, tasks per node and GPUs per node.
func effective(r *fact.Request) {
	n := r.Nodes
	if r.Tasks > 0 && r.TasksPerNode > 0 {
		n = max(n, (r.Tasks+r.TasksPerNode-1)/r.TasksPerNode)
	}
	if n == 0 && r.Tasks == 1 {
		n = 1
	}
	if r.Tasks > 0 && r.Nodes > r.Tasks && r.NodesMax <= r.Nodes {
		n = r.Tasks // sbatch shrinks the job
	}
	r.EffectiveNodes = n
	switch {
	case r.TasksPerNode > 0 && r.Tasks > 0 && n > 0:
		r.EffectiveTPN = min(r.TasksPerNode, (r.Tasks+n-1)/n)
	case r.TasksPerNode > 0:
		r.EffectiveTPN = r.TasksPerNode
	case r.Tasks > 0 && n > 0:
		r.EffectiveTPN = (r.Tasks + n - 1) / n
	case r.TasksPerGPU > 0 || r.GPUsPerTask > 0 && r.GPUs > 0:
	default:
		r.EffectiveTPN = 1
		if r.Tasks > 0 {
			r.EffectiveTPN = 0
		}
	}
	switch {
	case r.GresGPUs > 0:
		r.EffectiveGPUs = r.GresGPUs
	case r.GPUsPerNode > 0:
		r.EffectiveGPUs = r.GPUsPerNode
	case r.GPUsPerTask > 0 && r.EffectiveTPN > 0:
		r.EffectiveGPUs = r.GPUsPerTask * r.EffectiveTPN
	case r.GPUs > 0 && max(n, 1) == 1:
		if n == 1 || r.Tasks <= 1 {
			r.EffectiveGPUs = r.GPUs
		}
	case r.GPUs > 0 && r.GPUs%n == 0:
		r.EffectiveGPUs = r.GPUs / n
	}
	if r.TasksPerGPU > 0 && r.EffectiveGPUs > 0 && r.TasksPerNode == 0 && r.Tasks == 0 {
		r.EffectiveTPN = r.TasksPerGPU * r.EffectiveGPUs
	}
}
