package lint

import "strings"

var _ = Checks.Add("array-id-without-array", func(c *Ctx) {
	if !c.submitted() || c.S.Opt("array") != nil {
		return
	}
	q := &c.S.Request
	if strings.Contains(q.Output+q.Error, "%a") || strings.Contains(q.Output+q.Error, "%A") || q.Seconds == 0 && q.Nodes == 0 && !q.GPUAsked {
		return // --array stands on the command line, with the rest
	}
	n := 0
	for _, r := range c.S.Reads {
		if (r.Name == "SLURM_ARRAY_TASK_ID" || r.Name == "SLURM_ARRAY_JOB_ID") && (r.Default || r.Tested || r.Cond > 0) {
			return
		}
	}
	for _, r := range c.S.Reads {
		if r.Name == "SLURM_ARRAY_TASK_ID" && !r.Set && !r.Dead && n == 0 && !c.assigned(r.Name) {
			n++
			c.Hit(r.Pos)
		}
	}
})
