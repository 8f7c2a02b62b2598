package node

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-ecc", func(b *fact.Bundle, r *diag.Reporter) {
	for _, g := range b.Node.GPUs.V {
		n, err := strconv.Atoi(strings.TrimSpace(g.ECC))
		if err != nil || n <= 0 {
			continue
		}
		r.Hit("gpu-hardware-fault", diag.Likely, diag.Args{"index": itoa(g.Index), "gpu": g.Name, "errors": itoa(n), "node": nodeName(b)}, b.Node.GPUs.At).
			Need("nvidia-smi -q -d ECC,ROW_REMAPPER -i " + itoa(g.Index))
		return
	}
})
