package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cuda-libs-missing", func(b *fact.Bundle, r *diag.Reporter) {
	if imports(b) {
		return
	}
	var libs []string
	var ev []fact.Evidence
	for _, l := range b.Loads {
		if cudaLib(l.Soname) && l.Path.IsAbsent() {
			libs = append(libs, l.Soname)
			ev = append(ev, fact.FileExcerpt(l.For, "needs "+l.Soname))
		}
	}
	if len(libs) == 0 {
		return
	}
	a := args(b)
	sameBuild(b, a)
	a["lib"] = first(libs, 4)
	c := diag.Proven
	for _, d := range b.Dists {
		if strings.HasPrefix(d.Name, "nvidia-cu") || d.Name == "cuda-toolkit" {
			c = diag.Likely // torch also looks for them in the packages of the search path when it is imported
		}
	}
	f := r.Hit("cuda-library-missing", c, a, ev...)
	if c != diag.Proven {
		f.Need(a["python"] + " -c 'import torch'")
	}
})
