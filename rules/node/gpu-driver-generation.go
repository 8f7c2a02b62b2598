package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// Only what was given by hand can disagree: a GPU that a driver lists is known to it.
var _ = Checks.Add("gpu-driver-generation", func(b *fact.Bundle, r *diag.Reporter) {
	d := b.Node.Driver.V.Version
	byHand := b.Node.Driver.At.Source == fact.SrcFlag
	if b.Host.Board.IsKnown() || cudaWorks(b) {
		return
	}
	for _, g := range b.Node.GPUs.V {
		if !byHand && g.CapFrom != "flag" {
			continue
		}
		label := g.Name
		if !strings.Contains(label, g.Cap) {
			label += " (" + g.Cap + ")"
		}
		a := diag.Args{"driver": d, "gpu": label, "cap": g.Cap}
		if tables.DriverDropped(d, g.Cap) == tables.Yes {
			a["branch"], _ = tables.LastBranch(g.Cap)
			r.Hit("gpu-unknown-to-driver", diag.Proven, a, b.Node.Driver.At, b.Node.GPUs.At)
			return
		}
		if first := tables.FirstDriver(g.Cap); tables.BeforeBranch(d, first) == tables.Yes {
			a["variant"], a["needs"] = "old", first
			// Some cards are supported a little before the toolkit's own driver.
			r.Hit("gpu-unknown-to-driver", diag.Likely, a, b.Node.Driver.At, b.Node.GPUs.At).
				Need("srun --gres=gpu:1 nvidia-smi --query-gpu=name,driver_version --format=csv")
			return
		}
	}
})
