package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-mig-several", func(b *fact.Bundle, r *diag.Reporter) {
	entries, v, set := filter(b)
	n := 0
	for _, e := range entries {
		if strings.HasPrefix(e, "MIG-") {
			n++
		}
	}
	if !set || n < 2 || b.Live.Devices.Or(1) > 1 {
		return
	}
	r.Hit("gpu-index-out-of-range", diag.Likely, diag.Args{"count": itoa(n), "mig": "1"}, fact.EnvVarAt("CUDA_VISIBLE_DEVICES", v))
})
