package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/near"
)

var _ = Checks.Add("command-typo", func(c *Ctx) {
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.File != "" || x.Dead || len(x.Name) < 4 || len(x.Words) < 2 || ordinary[x.Name] || len(x.Words) == 0 || strings.Contains(x.Words[0].Text, "/") || !x.Words[0].Known || x.Step >= 0 && x.Outer >= 0 && c.S.Commands[x.Outer].Name != "bash" {
			continue
		}
		for _, k := range []string{"source", "module", "conda", "python", "python3", "export", "srun", "torchrun", "sbatch", "accelerate", "deepspeed", "mkdir", "echo"} {
			if x.Name != k && near.Within(x.Name, k, 1) == 1 && !isFunc(c, x.Name) && len(k) >= 5 && !strings.HasPrefix(x.Name, "python") && x.Name != "salloc" {
				from := c.offset(x.Pos)
				h := c.Hit(x.Pos, "name", x.Name, "known", k)
				if strings.HasPrefix(string(c.S.Src[from:]), x.Name) {
					h.Edit(from, from+len(x.Name), k)
				}
				return
			}
		}
	}
})
