package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("export-none-step", func(b *fact.Bundle, r *diag.Reporter) {
	v, drops := dropsEnv(b)
	if b.Slurm.Where != "step" || !drops || trains(b) || imports(b) && b.Live.NCCL.Or(false) {
		return
	}
	if w := b.Winner(); w != nil && poor(w) == "" {
		r.Skip("whether this torch can train is not known")
		return
	}
	if _, _, ok := activated(b); ok {
		return // the step activates an environment by itself
	}
	a := args(b)
	a["value"] = v
	c := diag.Likely
	if !inEnv(b) {
		c = diag.Proven // no environment, no variable of one, and the order that drops them
	}
	r.Hit("env-not-exported", c, a, b.Slurm.ExportEnv.At, b.Python.Exe.At)
})
