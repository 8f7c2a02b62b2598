package install

import (
	"strings"

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
	if l, ok := forwardCompat(b); ok {
		r.Skip("how the container is started decides whether the image's forward compatibility package is taken: " + l.Path)
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

// forwardCompat returns the forward compatibility package of an image with which its
// CUDA runs on the node's older driver, where the loader does not find it by itself:
// NVIDIA's hook binds such libraries in or not, by its release and settings, NGC's entry
// point links them, and LD_LIBRARY_PATH may name them. It never works on GeForce.
func forwardCompat(b *fact.Bundle) (fact.LibCUDA, bool) {
	l, ok := b.Target.Compat.Get()
	w := b.Winner()
	if !ok || w == nil || tables.DriverRuns(b.Node.Driver.V.Version, w.CUDA.Or("")) != tables.No || tables.DriverRuns(l.Version, w.CUDA.Or("")) != tables.Yes {
		return l, false
	}
	if on, ok := b.Node.LibCUDA.Get(); ok && on.Compat {
		return l, false // on the loader's path: told by its own version
	}
	for _, g := range b.Node.GPUs.Or(nil) {
		if strings.Contains(g.Name, "GeForce") || strings.Contains(g.Name, "TITAN") {
			return l, false
		}
	}
	return l, true
}
