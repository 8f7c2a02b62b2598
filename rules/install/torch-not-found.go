package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-not-found", func(b *fact.Bundle, r *diag.Reporter) {
	if len(b.Torch) > 0 || imports(b) {
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
	if unreadable(b) {
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

// unreadable reports whether a folder of packages could not be read.
func unreadable(b *fact.Bundle) bool {
	for _, e := range b.Python.Path {
		for _, p := range b.Problems {
			if e.Kind != fact.PathStdlib && p.What == e.Dir {
				return true
			}
		}
	}
	return false
}
