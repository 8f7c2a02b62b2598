package explain

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// decideFilters judges processes that see no GPU because their device filters
// name none that is left: ROCR_VISIBLE_DEVICES leaves n devices, and the indexes
// of HIP_ or CUDA_VISIBLE_DEVICES count within these; or the indexes of
// CUDA_VISIBLE_DEVICES lie beyond the GPUs that the step can open.
func (v *view) decideFilters() {
	es := append(v.peek("log-hip-no-device", "S187", "log-no-cuda-gpus-available", "S011", "S360"), v.noGPUEvents()...)
	if len(es) == 0 || v.candidate("gpu-visible-devices-wrong") {
		return
	}
	over := []string{"run-exception", "gpu-not-allocated", "gpu-driver-missing", "torch-wrong-accelerator", "gpu-index-out-of-range"}
	type proc struct{ file, rank, task int }
	rocr := map[proc]fact.Said{}
	for _, s := range v.facts(kind.Env) {
		if s.Name == "ROCR_VISIBLE_DEVICES" {
			rocr[proc{s.File, s.Rank, s.Task}] = s
		}
	}
	for _, s := range v.facts(kind.Env) {
		if s.Name != "HIP_VISIBLE_DEVICES" && s.Name != "CUDA_VISIBLE_DEVICES" && s.Name != "GPU_DEVICE_ORDINAL" {
			continue
		}
		r, ok := rocr[proc{s.File, s.Rank, s.Task}]
		if !ok || !beyond(s.V, len(strings.Split(r.V, ","))) || r.V == "" {
			continue
		}
		c := v.add(cand{id: "gpu-visible-devices-wrong", cert: diag.Proven, over: over, args: diag.Args{"var": s.Name, "value": s.V}}, cap4(es)...)
		v.said(c, r)
		if s.Line != r.Line {
			v.said(c, s)
		}
		return
	}
	for _, s := range v.scripts {
		var a, b *fact.Assign
		for _, x := range s.assigns("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL") {
			switch {
			case !perLocal.MatchString(x.Value.Raw + x.Value.Text):
			case x.Name == "ROCR_VISIBLE_DEVICES":
				a = x
			default:
				b = x
			}
		}
		if a != nil && b != nil {
			c := v.add(cand{id: "gpu-visible-devices-wrong", cert: diag.Likely, over: over, args: diag.Args{"var": b.Name}}, cap4(es)...)
			c.ev = append(c.ev, s.ev(a.Pos), s.ev(b.Pos))
			return
		}
	}
	if v.strangeUUIDs(es, over) {
		return
	}
	gpus := map[string]bool{}
	for _, s := range v.facts(kind.GPU) {
		if s.Name != "" {
			gpus[s.Node+"/"+s.Name] = true
		}
	}
	val, s, ok := v.lastEnv("CUDA_VISIBLE_DEVICES")
	if ok && len(gpus) > 0 && len(v.nodesSeen()) <= 1 && beyond(val, len(gpus)) {
		c := v.add(cand{id: "gpu-visible-devices-wrong", cert: diag.Likely, over: over, args: diag.Args{"var": "CUDA_VISIBLE_DEVICES", "value": val}}, cap4(es)...)
		v.said(c, s)
		v.said(c, first(v.facts(kind.GPU), 2)...)
		c.needs = append(c.needs, "srun bash -c 'echo $CUDA_VISIBLE_DEVICES; nvidia-smi -L'")
	}
}

var perLocal = lazyre.New(`LOCALID|LOCAL_RANK|local_rank`)

// noGPUEvents are exceptions about a process that sees no GPU.
func (v *view) noGPUEvents() []*fact.Event {
	return noBackendEvents(v.excWith("No HIP GPUs are available", "No CUDA GPUs are available", "no CUDA-capable device is detected"))
}

// beyond reports that a list of device indexes begins with one that a process
// with n devices does not have.
func beyond(list string, n int) bool {
	first, _, _ := strings.Cut(list, ",")
	i, err := strconv.Atoi(first)
	return err == nil && i >= n
}

// strangeUUIDs judges a CUDA_VISIBLE_DEVICES that names GPUs by UUIDs of which
// nvidia-smi -L lists none. A beginning of a UUID is as good as the whole.
func (v *view) strangeUUIDs(es []*fact.Event, over []string) bool {
	listed := v.facts(kind.UUID)
	val, s, ok := v.lastEnv("CUDA_VISIBLE_DEVICES")
	if !ok || len(listed) == 0 || !strings.HasPrefix(val, "GPU-") && !strings.HasPrefix(val, "MIG-") {
		return false
	}
	for _, u := range strings.Split(val, ",") {
		for _, l := range listed {
			if strings.HasPrefix(l.V, strings.TrimSpace(u)) {
				return false
			}
		}
	}
	c := v.add(cand{id: "gpu-visible-devices-wrong", cert: diag.Proven, over: over, args: diag.Args{"var": "CUDA_VISIBLE_DEVICES", "value": val}}, cap4(es)...)
	v.said(c, s)
	v.said(c, first(listed, 2)...)
	return true
}
