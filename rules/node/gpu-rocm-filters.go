package node

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-rocm-filters", func(b *fact.Bundle, r *diag.Reporter) {
	rocr, ok1 := b.Lookup("ROCR_VISIBLE_DEVICES")
	hip, ok2 := b.Lookup("HIP_VISIBLE_DEVICES")
	if !ok1 || !ok2 || rocr == "" || hip == "" || b.Winner().Accel() != fact.AccelROCm {
		return
	}
	left := len(strings.Split(rocr, ","))
	for _, e := range strings.Split(hip, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(e))
		if err != nil || n < left {
			continue
		}
		r.Hit("gpu-visible-devices-wrong", diag.Likely, diag.Args{"rocr": rocr, "hip": hip, "left": itoa(left), "bad": itoa(n), "var": "HIP_VISIBLE_DEVICES"},
			fact.EnvVarAt("ROCR_VISIBLE_DEVICES", rocr), fact.EnvVarAt("HIP_VISIBLE_DEVICES", hip))
		return
	}
})
