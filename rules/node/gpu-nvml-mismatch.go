package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-nvml-mismatch", func(b *fact.Bundle, r *diag.Reporter) {
	s, ok := b.Node.SMI.Get()
	if !ok {
		r.Skip("nvidia-smi was not run")
		return
	}
	if !strings.Contains(s.Error, "Driver/library version mismatch") {
		return
	}
	said, _, _ := strings.Cut(s.Error, "\n")
	r.Hit("gpu-driver-library-mismatch", diag.Proven, diag.Args{"said": fact.Clip(said, 200)}, b.Node.SMI.At, b.Node.Driver.At)
})
