package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-from-pythonpath", func(b *fact.Bundle, r *diag.Reporter) {
	a := args(b)
	a["from"] = "PYTHONPATH"
	if m := b.Winner().Names; m != "" {
		a["module"] = quote(m)
		a["from"] = "PYTHONPATH (" + m + ")"
	}
	shadow(b, r, "env-pythonpath-shadows", a, func(t *fact.Torch) bool { return t.Kind == fact.PathPythonPath })
})
