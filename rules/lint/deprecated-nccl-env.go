package lint

import (
	"strings"
)

var _ = Checks.Add("deprecated-nccl-env", func(c *Ctx) {
	for _, n := range []string{"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT"} {
		if a := c.last(n); a != nil && !c.assigned("TORCH_"+n) && !oldTorch(c) {
			h := c.Hit(a.Pos, "name", n)
			line := c.S.Line(a.Line)
			if i := strings.Index(line, n); i >= 0 && strings.Count(line, n) == 1 {
				from, _, _ := c.S.LineRange(a.Line)
				h.Edit(from+i, from+i, "TORCH_")
			}
		}
	}
})
