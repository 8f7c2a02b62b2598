package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("export-none-batch", func(b *fact.Bundle, r *diag.Reporter) {
	v, drops := dropsEnv(b)
	if b.Slurm.Where != "batch" || !drops {
		return
	}
	name, prefix, ok := activated(b)
	if !ok {
		return // nothing is there that steps would miss
	}
	a := args(b)
	a["value"], a["var"], a["prefix"] = v, name, quote(prefix)
	// srun --export=ALL in the script would be right: only the script shows it.
	r.Hit("env-not-exported", diag.Likely, a, b.Slurm.ExportEnv.At, fact.EnvVarAt(name, prefix)).
		Sev(diag.Warning).Need("srun -n1 env | grep -E '^(PATH|" + name + ")='")
})
