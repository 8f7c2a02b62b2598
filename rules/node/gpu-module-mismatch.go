package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-module-mismatch", func(b *fact.Bundle, r *diag.Reporter) {
	l, ok := b.Node.LibCUDA.Get()
	if !ok || l.Version == "" {
		r.Skip("the version of libcuda is not known")
		return
	}
	d := b.Node.Driver.V
	cmp, ok := driverCmp(l.Version, d.Version)
	if !ok || cmp == 0 || l.Compat || l.Stub || otherAccelerator(b) || cudaWorks(b) {
		return
	}
	a := diag.Args{"driver": d.Version, "lib": l.Path, "lib_version": l.Version}
	switch {
	case l.Via == "LD_LIBRARY_PATH":
		a["variant"], a["shadow"] = "shadow", dirOf(l.Path)
	case container(b) != "":
		a["variant"] = "container"
	}
	r.Hit("gpu-driver-library-mismatch", diag.Proven, a, b.Node.Driver.At, b.Node.LibCUDA.At)
})
