package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-compat-library", func(b *fact.Bundle, r *diag.Reporter) {
	l, ok := b.Node.LibCUDA.Get()
	if !ok || !l.Compat || otherAccelerator(b) || cudaWorks(b) {
		return
	}
	d := b.Node.Driver.V.Version
	a := diag.Args{"driver": d, "lib": l.Path, "lib_version": l.Version, "compat": dirOf(l.Path), "variant": "older"}
	if cmp, ok := driverCmp(l.Version, d); ok && cmp < 0 {
		r.Hit("gpu-driver-library-mismatch", diag.Likely, a, b.Node.LibCUDA.At, b.Node.Driver.At)
		return
	} else if ok && cmp == 0 {
		return
	}
	for _, g := range b.Node.GPUs.Or(nil) {
		// Forward compatibility is for data centre cards and some NGC-ready RTX cards, never for these.
		if strings.Contains(g.Name, "GeForce") || strings.Contains(g.Name, "TITAN") {
			a["gpu"] = g.Name
			delete(a, "variant")
			r.Hit("gpu-driver-library-mismatch", diag.Likely, a, b.Node.LibCUDA.At, b.Node.GPUs.At)
			return
		}
	}
})
