package install

import (
	"path"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-local-module", func(b *fact.Bundle, r *diag.Reporter) {
	a := args(b)
	// What Python itself would import is decided: a module on the path stands in for the package.
	if w := b.Winner(); w != nil && w.Form == fact.FormModule && len(b.Torch) > 1 {
		a["path"], a["variant"] = quote(w.Dir), "first"
		r.Hit("env-local-module-shadows", diag.Proven, a, fact.File(w.Dir), fact.File(b.Torch[1].Dir))
		return
	}
	if len(b.Python.LocalTorch) == 0 {
		return
	}
	p := b.Python.LocalTorch[0]
	a["path"], a["variant"] = quote(p), "cwd"
	if f, ok := b.Live.File.Get(); ok && within(f, path.Dir(p)) {
		r.Hit("env-local-module-shadows", diag.Proven, a, b.Live.File.At, fact.File(p))
		return
	}
	// It depends on where the script lies, which nobody told.
	r.Hit("env-local-module-shadows", diag.Possible, a, fact.File(p)).Sev(diag.Warning).
		Need("python -c 'import torch; print(torch.__file__)'")
})
