package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("nccl-not-found", func(b *fact.Bundle, r *diag.Reporter) {
	l := b.LoadOf(ncclSoname)
	t := b.Winner()
	if l == nil || !l.Path.IsAbsent() || t.NCCLStatic.Or(false) || imports(b) {
		return
	}
	if t.NCCL.IsKnown() && !t.NCCL.V {
		return // this torch would not use it
	}
	a := args(b)
	a["for"] = l.For
	if name, v := ncclPin(t); name != "" {
		a["wheel"], a["wheel_version"] = name, v
	}
	c := diag.Proven
	for _, d := range b.Dists {
		if ncclDist.MatchString(d.Name) {
			c = diag.Likely // torch also looks for it in the packages of the search path when it is imported
		}
	}
	f := r.Hit("nccl-library-missing", c, a, l.Path.At)
	for i, try := range l.Tried {
		if i < 5 {
			f.Evidence = append(f.Evidence, fact.FileExcerpt(try.Path, try.Via+": "+try.Result))
		}
	}
	if c != diag.Proven {
		f.Need(a["python"] + " -c 'import torch; print(torch.cuda.nccl.version())'")
	}
})
