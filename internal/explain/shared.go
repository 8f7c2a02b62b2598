package explain

import (
	"strconv"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// others are the processes that an allocator names beside its own.
var others = lazyre.New(`Process (\d+) has (\d+(?:\.\d+)?) ([GM])iB memory in use`)

// sharedGPU judges memory that ran out because several ranks sit on one GPU:
// the allocator names other processes of the same kind there, and two ranks
// name the same GPU or nvidia-smi shows them together while other GPUs idle. A
// few hundred MiB of a process are only its CUDA context, which other causes
// leave behind too.
func (v *view) sharedGPU(oom []*fact.Event) {
	users := map[string][]fact.Said{}
	for _, s := range v.facts(kind.Proc) {
		users[s.Name] = append(users[s.Name], s)
	}
	gpus := map[string]bool{}
	for _, s := range v.facts(kind.GPU) {
		gpus[s.Name] = true
	}
	var together []fact.Said // processes on one GPU while other GPUs have none
	for _, ps := range users {
		if big(ps) >= 2 && len(users) < len(gpus) {
			together = append(together, ps...)
		}
	}
	type place struct{ node, gpu string }
	ranks := map[place]map[int]bool{}
	crowded, same := false, false
	for _, x := range v.gpuOOM() {
		m := oomGPU.FindStringSubmatch(x.Message)
		n := 0
		for _, p := range others.FindAllStringSubmatch(x.Message, -1) {
			if mib(p[2], p[3]) >= 2048 {
				n++
			}
		}
		if m == nil || n < 2 {
			continue
		}
		crowded = true
		if r := v.rankOf(x.Place); r >= 0 {
			k := place{x.Node, m[1]}
			if ranks[k] == nil {
				ranks[k] = map[int]bool{}
			}
			ranks[k][r] = true
			same = same || len(ranks[k]) >= 2
		}
	}
	if !crowded || !same && len(together) == 0 {
		return
	}
	c := cand{id: "gpu-shared-by-ranks", cert: diag.Likely, over: []string{"gpu-out-of-memory", "run-exception"}}
	if same && len(together) > 0 {
		c.cert = diag.Proven
	}
	v.said(v.add(c, cap4(oom)...), first(together, 3)...)
}

// big counts processes that hold 2 GiB or more.
func big(ps []fact.Said) int {
	n := 0
	for _, s := range ps {
		if m, err := strconv.Atoi(s.Aux); err == nil && m >= 2048 {
			n++
		}
	}
	return n
}

func mib(num, unit string) float64 {
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return 0
	}
	if unit == "G" {
		f *= 1024
	}
	return f
}
