package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-from-user-site", func(b *fact.Bundle, r *diag.Reporter) {
	shadow(b, r, "env-user-site-shadows", args(b), func(t *fact.Torch) bool { return t.Kind == fact.PathUserSite })
})
