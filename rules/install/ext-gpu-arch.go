package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var _ = Checks.Add("ext-gpu-arch", func(b *fact.Bundle, r *diag.Reporter) {
	if len(b.Extensions) == 0 {
		r.Skip("no extension was examined")
		return
	}
	for _, x := range b.Extensions {
		archs, ok := x.Archs.Get()
		if !ok {
			continue
		}
		for _, g := range b.Node.GPUs.V {
			if g.Cap == "" || tables.Runs(archs, g.Cap) != tables.No {
				continue
			}
			a := args(b)
			a["extension"], a["path"], a["gpu"], a["cap"], a["archs"] = x.Name, quote(x.Path), g.Name, g.Cap, first(archs, 12)
			r.Hit("torch-extension-arch-unsupported", diag.Likely, a, x.Archs.At, b.Node.GPUs.At).Sev(diag.Warning).
				Need(a["python"] + " -m pip show " + x.Name)
			return
		}
	}
})
