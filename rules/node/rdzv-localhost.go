package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("rdzv-localhost", func(b *fact.Bundle, r *diag.Reporter) {
	v, _ := b.Lookup("MASTER_ADDR")
	nodes := b.Slurm.Nodes.Or(1)
	if nodes < 2 || v != "localhost" && v != "::1" && !strings.HasPrefix(v, "127.") {
		return
	}
	r.Hit("rdzv-master-is-localhost", diag.Likely, diag.Args{"value": v, "job_nodes": itoa(nodes)}, fact.EnvVarAt("MASTER_ADDR", v), b.Slurm.Nodes.At)
})
