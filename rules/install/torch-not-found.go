package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-not-found", func(b *fact.Bundle, r *diag.Reporter) {
	if len(b.Torch) > 0 || imports(b) || notSeen(b) != "" {
		return
	}
	seen := false
	for _, e := range b.Python.Path {
		seen = seen || e.Exists && e.Kind != fact.PathStdlib
	}
	c := diag.Proven
	if !seen {
		c = diag.Likely // not one folder of packages could be found: perhaps the path was not understood
	}
	if unreadable(b) != "" {
		c = diag.Likely // the import fails for this user, but a torch may be there
	}
	a := args(b)
	delete(a, "public_version")
	if p := firstWith(b); p != "" {
		a["other"] = quote(p)
	}
	f := r.Hit("torch-not-installed", c, a, b.Python.Exe.At)
	if c != diag.Proven {
		f.Need(a["python"] + " -c 'import sys, torch; print(torch.__file__)'")
	}
})

// firstWith returns another interpreter that a variable or a launcher names and
// that has a torch which computes on GPUs, as far as that is known.
func firstWith(b *fact.Bundle) string {
	for _, o := range b.Python.Others {
		if o.Torch.IsKnown() && !o.Missing && o.Accel != fact.AccelCPU {
			return o.Exe
		}
	}
	return ""
}

// unreadable says which folder of packages could not be read, and why; "" when all could.
func unreadable(b *fact.Bundle) string {
	for _, e := range b.Python.Path {
		for _, p := range b.Problems {
			if e.Kind != fact.PathStdlib && p.What == e.Dir {
				return p.What + ": " + p.Why
			}
		}
	}
	return ""
}

// notSeen says what of an artefact could not be read, so that a torch may be there. What
// this user may not read here, the job may read where it runs: of a live environment
// the import fails for the same reason.
func notSeen(b *fact.Bundle) string {
	if b.Target.Kind == "" {
		return ""
	}
	if b.Python.Base.State == fact.Failed {
		return b.Python.Base.Why
	}
	return unreadable(b)
}
