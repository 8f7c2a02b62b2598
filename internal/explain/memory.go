package explain

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// decideMemory judges GPU memory.
func (v *view) decideMemory() {
	es := v.ev("S206", "S221", "S155", "S540", "log-hip-out-of-memory")
	for _, e := range v.ev("S207") {
		if strings.Contains(e.Text, "CUDA") || strings.Contains(e.Text, "Cuda") || strings.Contains(e.Text, "alloc.h") || strings.Contains(e.Text, "cuda") {
			es = append(es, e)
		}
	}
	for _, x := range v.excWith("Triton Error [CUDA]: out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "OUT_OF_MEMORY: Out of memory allocating", "failed to allocate on device") {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300)})
	}
	for _, x := range v.gpuOOM() {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300), Rule: "", Args: nil})
	}
	es = uniqLines(es)
	v.sortEvents(es)
	if len(es) == 0 {
		return
	}
	v.sharedGPU(es)
	c := v.add(cand{id: "gpu-out-of-memory", cert: diag.Proven, over: []string{"run-exception", "run-collective-hang", "run-ranks-diverged", "run-rank-slow"}}, es...)
	if v.rankOf(es[0].Place) < 0 {
		if m := oomGPU.FindStringSubmatch(es[0].Text); m != nil {
			r, _ := strconv.Atoi(m[1])
			if len(v.nodesSeen()) <= 1 {
				rr := r
				c.where[0].Rank = &rr
			}
		} else if x := v.nearRank(es[0]); x >= 0 {
			rr := x
			c.where[0].Rank = &rr
		}
	}
	if c.where[0].Node == "" {
		if ns := v.nodesSeen(); len(ns) == 1 {
			c.where[0].Node = ns[0]
		}
	}
}

func uniqLines(es []*fact.Event) []*fact.Event {
	seen := map[[2]int]bool{}
	var out []*fact.Event
	for _, e := range es {
		k := [2]int{e.File, e.Line}
		if !seen[k] {
			seen[k] = true
			out = append(out, e)
		}
	}
	return out
}

var oomGPU = lazyre.New(`\bGPU (\d+)\b`)

// gpuOOM returns exceptions about the memory of a GPU; Ray has one of the same
// name about that of the host.
func (v *view) gpuOOM() []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.excTyped("OutOfMemoryError") {
		if !strings.HasPrefix(x.Type, "ray.") && !strings.Contains(x.Message, "memory on the node") && !strings.Contains(x.Message, "node running low on memory") {
			out = append(out, x)
		}
	}
	return out
}

func (v *view) excTyped(suffix string) []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.exc {
		if strings.HasSuffix(x.Type, suffix) {
			out = append(out, x)
		}
	}
	return out
}

// nearRank takes the rank of a line of the same process nearby.
func (v *view) nearRank(e *fact.Event) int {
	for _, s := range v.facts(kind.Init) {
		if s.Node == e.Node && s.PID == e.PID && e.PID != 0 {
			r, err := strconv.Atoi(s.Name)
			if err == nil {
				return r
			}
		}
	}
	return -1
}
