package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// shadow judges a winning torch that stands before another one on the search
// path. Shadowing as such is how environments work; it is a fault when the
// shadowed one could train and the winner cannot, and worth a warning when an
// environment has a torch of its own and another build is imported.
func shadow(b *fact.Bundle, r *diag.Reporter, cause string, a diag.Args, by func(t *fact.Torch) bool) {
	w := b.Winner()
	if w.Form != "" || !by(w) {
		return
	}
	var o *fact.Torch
	for i := 1; i < len(b.Torch); i++ {
		if t := &b.Torch[i]; t.Form == "" && !by(t) {
			o = t
			break
		}
	}
	if o == nil {
		return // nothing is shadowed
	}
	if !w.Version.IsKnown() || !o.Version.IsKnown() || w.Accel() == "" || o.Accel() == "" {
		r.Skip("one of the two torches could not be read")
		return
	}
	pw, po := poor(w), poor(o)
	var sev diag.Severity
	variant := ""
	switch {
	case pw != "" && po == "":
		sev, variant = diag.Error, "worse"
	case pw == "" && po != "":
		return // the better one wins
	case inEnv(b) && (w.Version.V != o.Version.V || w.Accel() != o.Accel() || w.CUDA.Or("") != o.CUDA.Or("") || w.HIP.Or("") != o.HIP.Or("")):
		sev, variant = diag.Warning, "differs"
	default:
		return
	}
	a["variant"] = variant
	a["build"] = build(w)
	a["other_dir"], a["other_build"] = quote(o.Dir), build(o)
	r.Hit(cause, diag.Proven, a, shadowEvidence(w), w.Version.At, w.CUDA.At, o.Version.At, o.CUDA.At).Sev(sev)
}

// shadowEvidence is the variable or the .pth line that put the winner first.
func shadowEvidence(t *fact.Torch) fact.Evidence {
	switch t.Kind {
	case fact.PathPythonPath:
		return fact.Evidence{Source: fact.SrcEnv, Path: "PYTHONPATH", Excerpt: t.Dir}
	case fact.PathPth, fact.PathFinder:
		return fact.File(t.Via)
	}
	return fact.Evidence{}
}
