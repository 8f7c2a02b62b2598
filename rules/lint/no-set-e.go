package lint

var _ = Checks.Add("no-set-e", func(c *Ctx) {
	if c.submitted() && c.S.Parsed && (c.S.Shell == "bash" || c.S.Shell == "sh") && !c.S.Option("e", 1<<30) && trains(c) {
		c.Hit(at(1, 1))
	}
})
