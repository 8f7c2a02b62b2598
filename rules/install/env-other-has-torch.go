package install

import (
	"path"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("env-other-has-torch", func(b *fact.Bundle, r *diag.Reporter) {
	w := b.Winner()
	if w != nil && poor(w) != "cpu" || imports(b) && b.Live.CUDA.IsKnown() {
		return
	}
	// Outside of a container VIRTUAL_ENV and CONDA_PREFIX of this shell name what was meant.
	if hostEnv(b) {
		r.Skip("inside a container variables of the host's environment mean nothing")
		return
	}
	for _, o := range b.Python.Others {
		if o.Missing || !o.Torch.IsKnown() || o.By != fact.ByVirtualEnv && o.By != fact.ByCondaPrefix {
			continue
		}
		if w != nil && o.Accel != fact.AccelCUDA && o.Accel != fact.AccelROCm {
			continue // nothing would be gained
		}
		a := args(b)
		prefix, _ := b.Lookup(o.By)
		if prefix == "" {
			prefix = path.Dir(path.Dir(o.Exe))
		}
		a["prefix"], a["other"], a["other_version"], a["var"] = quote(prefix), quote(o.Exe), o.Torch.V, o.By
		if o.Accel != "" {
			a["other_version"] += " (" + o.Accel + ")"
		}
		a["kind"] = "venv"
		if o.By == fact.ByCondaPrefix {
			a["kind"] = "conda"
		}
		a["variant"] = "none"
		if w != nil {
			a["variant"] = "cpu"
		}
		r.Hit("env-not-activated", diag.Proven, a, o.At, o.Torch.At, b.Python.Exe.At)
		return
	}
})
