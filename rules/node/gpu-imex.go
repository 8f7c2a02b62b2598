package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-imex", func(b *fact.Bundle, r *diag.Reporter) {
	nodes := nodesOf(b, 1)
	off, _, _ := setting(b, "NCCL_MNNVL_ENABLE")
	if !b.Node.IMEX.IsAbsent() || nodes < 2 || off == "0" {
		return
	}
	if s := b.Node.Fabric.Or("Completed"); s != "Completed" {
		return // NCCL leaves such a fabric alone
	}
	for _, g := range b.Node.GPUs.V {
		if strings.Contains(g.Name, "GB200") || strings.Contains(g.Name, "GB300") {
			r.Hit("gpu-fabric-manager", diag.Possible, diag.Args{"gpu": g.Name, "job_nodes": itoa(nodes), "imex": "1"}, b.Node.IMEX.At, b.Node.GPUs.At).
				Need("nvidia-imex-ctl -N")
			return
		}
	}
})
