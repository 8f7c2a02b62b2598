package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cxx-too-old", func(b *fact.Bundle, r *diag.Reporter) {
	l := b.LoadOf("libstdc++.so.6")
	if l == nil || !l.Path.IsKnown() || len(l.Missing) == 0 || imports(b) {
		return
	}
	a := args(b)
	a["lib"], a["path"], a["symbols"] = l.Soname, quote(l.Path.V), first(l.Missing, 3)
	loaderArgs(b, a, l.Via, l.ViaDir)
	r.Hit("cxx-library-too-old", diag.Proven, a, l.Path.At, fact.FileExcerpt(l.Path.V, "does not define "+first(l.Missing, 3)))
})
