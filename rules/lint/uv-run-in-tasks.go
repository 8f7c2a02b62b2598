package lint

var _ = Checks.Add("uv-run-in-tasks", func(c *Ctx) {
	if c.assigned("UV_NO_SYNC") || c.assigned("UV_FROZEN") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Name != "uv" || x.Dead || x.Step < 0 || len(x.Words) < 2 || x.Words[1].Text != "run" {
			continue
		}
		st := &c.S.Steps[x.Step]
		if st.Tool != "srun" || st.EffTasks < 2 {
			continue
		}
		quiet := false
		for _, w := range x.Words {
			quiet = quiet || w.Text == "--no-sync" || w.Text == "--frozen" || w.Text == "--no-project"
		}
		if !quiet {
			c.Hit(x.Pos, "tasks", itoa(st.EffTasks))
			return
		}
	}
})
