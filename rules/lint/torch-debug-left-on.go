package lint

import (
	"strings"
)

var _ = Checks.Add("torch-debug-left-on", func(c *Ctx) {
	for name, bad := range map[string][]string{"TORCH_DISTRIBUTED_DEBUG": {"DETAIL"}, "TORCH_CPP_LOG_LEVEL": {"INFO"}, "TORCH_NCCL_DESYNC_DEBUG": {"1"}, "NCCL_DESYNC_DEBUG": {"1"}, "TORCH_SHOW_CPP_STACKTRACES": {}, "TORCH_LOGS": {"all", "+all"}} {
		a := c.last(name)
		if a == nil || !a.Value.Known {
			continue
		}
		for _, b := range bad {
			if strings.EqualFold(a.Value.Text, b) {
				c.Hit(a.Pos, "name", name, "value", a.Value.Text)
			}
		}
	}
})
