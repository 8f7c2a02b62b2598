package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("singularity-without-nv", func(c *Ctx) {
	if !c.S.Request.GPUAsked || strings.Contains(c.S.Request.Partition, "amd") {
		return // such a partition may have AMD GPUs
	}
	seen := map[fact.Pos]bool{}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		b := l.Container
		if b == nil || b.NV || b.ROCm || b.Open || seen[b.Pos] || b.Tool != "singularity" && b.Tool != "apptainer" || c.amd() || c.cpuOnly() {
			return
		}
		seen[b.Pos] = true
		c.Hit(b.Pos, "tool", b.Tool)
	})
})
