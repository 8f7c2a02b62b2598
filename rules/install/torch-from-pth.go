package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-from-pth", func(b *fact.Bundle, r *diag.Reporter) {
	a := args(b)
	a["pth"] = b.Winner().Via
	if a["pth"] == "" {
		a["pth"] = ".pth"
	}
	shadow(b, r, "env-pythonpath-shadows", a, func(t *fact.Torch) bool { return t.Kind == fact.PathPth || t.Kind == fact.PathFinder })
})
