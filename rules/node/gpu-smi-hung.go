package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-smi-hung", func(b *fact.Bundle, r *diag.Reporter) {
	s, ok := b.Node.SMI.Get()
	if !ok || !s.Hung {
		return
	}
	r.Hit("gpu-hardware-fault", diag.Possible, diag.Args{"seconds": itoa(s.Millis / 1000), "node": nodeName(b)}, b.Node.SMI.At).
		Need("timeout 120 nvidia-smi -L").Need("dmesg -T | grep -E 'NVRM|Xid' | tail")
})
