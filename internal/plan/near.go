package plan

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/near"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// models are names of GPUs that a person may have meant.
var models = []string{"B300", "GB300", "B200", "GB200", "GH200", "H100", "H200", "H800", "H20", "A100", "A800", "A30", "A40", "A10", "A16",
	"L4", "L40", "L40S", "T4", "V100", "P100", "P40", "RTX 3090", "RTX 4090", "RTX 5090", "RTX A6000", "GB10"}

// nearGPU names the known model that a name is closest to, "" when none is near.
func nearGPU(name string) string {
	n := strings.ToUpper(tables.GPUName(name))
	best, at := "", 2
	for _, m := range models {
		if d := near.Distance(n, strings.ToUpper(m)); d < at {
			best, at = m, d
		}
	}
	return best
}
