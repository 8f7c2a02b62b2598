package lint

import (
	"strings"
)

var _ = Checks.Add("nccl-debug-hard-coded", func(c *Ctx) {
	a := c.last("NCCL_DEBUG")
	if a == nil || !a.Value.Known || !a.Export && !c.S.Exported("NCCL_DEBUG", 1<<30) {
		return
	}
	switch v := strings.ToUpper(a.Value.Text); v {
	case "INFO", "TRACE", "ABORT":
		c.Hit(a.Pos, "value", a.Value.Text)
	case "WARN", "VERSION", "":
	default:
		c.Hit(a.Pos, "variant", "invalid", "value", a.Value.Text)
	}
})
