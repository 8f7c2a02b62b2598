package lint

var _ = Checks.Add("rank-expanded-harmless", func(c *Ctx) {
	for _, x := range c.rankUses() {
		if x.harmless {
			c.Hit(x.pos, "variable", "$"+x.variable, "as", x.as, "why", x.why)
		}
	}
})
