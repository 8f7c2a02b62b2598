package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("rdzv-nodelist-name", func(b *fact.Bundle, r *diag.Reporter) {
	v, _ := b.Lookup("MASTER_ADDR")
	if strings.Contains(v, ":") || !strings.ContainsAny(v, "[],") {
		return
	}
	r.Hit("rdzv-host-unresolvable", diag.Proven, diag.Args{"value": v}, fact.EnvVarAt("MASTER_ADDR", v))
})
