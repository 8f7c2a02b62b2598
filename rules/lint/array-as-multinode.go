package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("array-as-multinode", func(c *Ctx) {
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		for _, h := range c.S.HolesOf(l.NodeRank.Val) {
			if h.Name == "SLURM_ARRAY_TASK_ID" && len(c.out) == 0 {
				c.Hit(l.NodeRank.Pos)
			}
		}
	})
})
