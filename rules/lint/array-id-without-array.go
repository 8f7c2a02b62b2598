package lint

var _ = Checks.Add("array-id-without-array", func(c *Ctx) {
	if !c.submitted() || c.S.Opt("array") != nil {
		return
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
