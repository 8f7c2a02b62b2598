package explain

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// otherMakersGPU judges a build that finds no NVIDIA driver, or a CUDA build that
// finds no GPU, on a machine whose accelerators are AMD's or Intel's.
func (v *view) otherMakersGPU(es, noDriver []*fact.Event) bool {
	other := v.facts(kind.OtherGPU)
	b := v.build()
	if len(other) == 0 || len(noDriver)+len(b.cuda) == 0 || len(v.facts(kind.GPU)) > 0 || len(v.facts(kind.Driver)) > 0 || len(b.rocm) > 0 || len(b.cpu) > 0 {
		return false
	}
	c := v.add(cand{id: "torch-wrong-accelerator", cert: diag.Likely, args: v.torchArgs(b), over: []string{"run-exception", "gpu-driver-missing", "gpu-not-allocated"}}, cap4(es)...)
	v.said(c, other[0])
	if len(b.cuda) > 0 {
		if len(noDriver) > 0 {
			c.cert = diag.Proven
		}
		v.said(c, b.cuda[0])
	}
	return true
}
