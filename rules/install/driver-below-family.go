package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var _ = Checks.Add("driver-below-family", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	cuda, ok := t.CUDA.Get()
	d := b.Node.Driver.V.Version
	if !ok || b.Live.Devices.Or(0) > 0 {
		return
	}
	if b.Host.Board.IsKnown() {
		r.Skip("Jetson drivers are numbered in another way")
		return
	}
	switch tables.DriverRuns(d, cuda) {
	case tables.Unknown:
		r.Skip("the tables do not know CUDA " + cuda + " with driver " + d)
		return
	case tables.Yes:
		return
	}
	// A forward compatibility package brings a newer user-mode driver.
	if l, ok := b.Node.LibCUDA.Get(); ok && l.Compat && tables.DriverRuns(l.Version, cuda) == tables.Yes {
		return
	}
	a := args(b)
	a["needs"] = tables.FamilyDriver(cuda)
	c := diag.Proven
	ev := []fact.Evidence{b.Node.Driver.At, t.CUDA.At}
	f := r.Hit("torch-needs-newer-driver", c, a, ev...)
	if s, ok := b.Node.SMI.Get(); ok && s.Driver != "" && s.Driver != d {
		f.Certainty = diag.Likely // two sources name two drivers: that is a fault of its own
		f.Need("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
	}
})
