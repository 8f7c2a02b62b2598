package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torchrun-nproc-missing", func(c *Ctx) {
	if c.gpus() < 2 || c.assigned("PET_NPROC_PER_NODE") {
		return
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if !elastic(l) || l.Open || given(l.Nproc) || strings.Contains(l.Program, "submitit") {
			return // submitit starts the ranks itself
		}
		if st := c.stepOf(l); st != nil && (st.EffTPN != 1 || st.Unknown) {
			return
		}
		c.Hit(l.Pos, "gpus", itoa(c.gpus()))
	})
})
