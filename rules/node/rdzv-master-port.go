package node

import (
	"strconv"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("rdzv-master-port", func(b *fact.Bundle, r *diag.Reporter) {
	v, set := b.Lookup("MASTER_PORT")
	if !set || v == "" {
		return
	}
	n, err := strconv.Atoi(v)
	if err == nil && n >= 0 && n <= 65535 {
		return
	}
	r.Hit("rdzv-unreachable", diag.Proven, diag.Args{"value": fact.Clip(v, 80)}, fact.EnvVarAt("MASTER_PORT", v))
})
