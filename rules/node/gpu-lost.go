package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-lost", func(b *fact.Bundle, r *diag.Reporter) {
	s, ok := b.Node.SMI.Get()
	if !ok {
		r.Skip("nvidia-smi was not run")
		return
	}
	for _, line := range strings.Split(s.Error, "\n") {
		if strings.Contains(line, "GPU is lost") || strings.Contains(line, "fallen off the bus") ||
			strings.Contains(line, "Unable to determine the device handle") && strings.Contains(line, "Unknown Error") {
			r.Hit("gpu-hardware-fault", diag.Proven, diag.Args{"said": fact.Clip(strings.TrimSpace(line), 200), "node": nodeName(b)}, b.Node.SMI.At)
			return
		}
	}
})
