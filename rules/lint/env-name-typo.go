package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/near"
)

var _ = Checks.Add("env-name-typo", func(c *Ctx) {
	seen := map[string]bool{}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if a.Dead || a.Unset || seen[a.Name] || len(a.Name) < 8 || a.File != "" || knownEnv[a.Name] {
			continue
		}
		if !strings.HasPrefix(a.Name, "NC") && !strings.HasPrefix(a.Name, "TORCH_") && !strings.HasPrefix(a.Name, "PYTORCH_") && !strings.HasPrefix(a.Name, "CUDA_") && !strings.HasPrefix(a.Name, "OMP_") && !strings.HasPrefix(a.Name, "TOKENIZERS_") {
			continue
		}
		if !a.Export || readAnywhere(c, a.Name) {
			continue
		}
		best, d := "", 3
		for k := range knownEnv {
			if e := near.Within(a.Name, k, 2); e < d || e == d && k < best {
				best, d = k, e
			}
		}
		if d <= 2 && (d == 1 || len(a.Name) > 12 && !strings.HasPrefix(a.Name, "NCCL_") || !strings.HasPrefix(a.Name, "NCCL_") && strings.HasPrefix(best, "NCCL_")) {
			seen[a.Name] = true
			c.Hit(a.Pos, "name", a.Name, "known", best)
		}
	}
})
