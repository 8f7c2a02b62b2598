package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-fabric", func(b *fact.Bundle, r *diag.Reporter) {
	if strings.Contains(b.Live.Error, "Error 802") || strings.Contains(b.Live.Error, "system not yet initialized") {
		r.Hit("gpu-fabric-manager", diag.Proven, diag.Args{"variant": "live"}, b.Live.State.At, b.Node.Fabric.At)
		return
	}
	state, ok := b.Node.Fabric.Get()
	if !ok || cudaWorks(b) || anyMIG(b.Node.GPUs.Or(nil)) {
		return
	}
	low := strings.ToLower(state)
	if low == "in progress" || low == "not started" || low == "failed" || strings.HasPrefix(low, "completed: ") {
		r.Hit("gpu-fabric-manager", diag.Likely, diag.Args{"state": state}, b.Node.Fabric.At, b.Node.NVSwitches.At).
			Need("nvidia-smi -q | grep -iA4 fabric")
	}
})
