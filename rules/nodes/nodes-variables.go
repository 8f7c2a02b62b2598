package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("nodes-variables", func(b *fact.Bundle, r *diag.Reporter) {
	if ds := all(b, "env.MASTER_ADDR", "env.MASTER_PORT"); len(ds) > 0 {
		report(r, "rdzv-master-wrong-host", diag.Proven, "rdzv", ds...)
	}
	if d, ok := differs(b, "env.WORLD_SIZE"); ok {
		report(r, "env-differs-between-nodes", diag.Proven, "env", d)
	}
	load := withPrefix(b, "env.", func(n string) bool {
		return n == "LD_LIBRARY_PATH" || n == "LD_PRELOAD" || n == "PYTHONPATH" || n == "PYTHONHOME"
	})
	rest := withPrefix(b, "env.", func(n string) bool {
		return strings.HasPrefix(n, "CUDA_") || strings.HasPrefix(n, "TORCH_") || strings.HasPrefix(n, "PYTORCH_") || strings.HasPrefix(n, "FI_") || strings.HasPrefix(n, "UCX_") ||
			strings.HasPrefix(n, "GLOO_") && n != "GLOO_SOCKET_IFNAME" || strings.HasPrefix(n, "HSA_")
	})
	switch {
	case len(load) > 0:
		report(r, "env-differs-between-nodes", diag.Likely, "env", append(load, rest...)...).Sev(diag.Warning)
	case len(rest) > 0:
		report(r, "env-differs-between-nodes", diag.Possible, "env", rest...).Sev(diag.Warning)
	}
})
