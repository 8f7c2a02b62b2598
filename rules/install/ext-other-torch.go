package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var cudart = lazyre.New(`^libcudart\.so\.([0-9]+)`)

var _ = Checks.Add("ext-other-torch", func(b *fact.Bundle, r *diag.Reporter) {
	if len(b.Extensions) == 0 {
		r.Skip("no extension was examined")
		return
	}
	t := b.Winner()
	major, _, _ := strings.Cut(t.CUDA.Or(""), ".")
	for _, x := range b.Extensions {
		a := args(b)
		a["extension"], a["path"] = x.Name, quote(x.Path)
		if len(x.Missing) > 0 {
			a["variant"], a["symbols"] = "symbols", first(x.Missing, 2)
			// Only a program that uses the extension meets it.
			r.Hit("torch-extension-built-for-other-torch", diag.Proven, a, x.At, fact.FileExcerpt(x.Path, "needs "+first(x.Missing, 3))).Sev(diag.Warning)
			return
		}
		if m := cudart.FindStringSubmatch(x.CUDART.Or("")); m != nil && major != "" && m[1] != major {
			a["variant"], a["cudart"] = "cudart", x.CUDART.V
			r.Hit("torch-extension-built-for-other-torch", diag.Likely, a, x.CUDART.At, t.CUDA.At).Sev(diag.Warning).
				Need(a["python"] + " -m pip show " + x.Name)
			return
		}
	}
})
