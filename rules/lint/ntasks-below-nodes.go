package lint

var _ = Checks.Add("ntasks-below-nodes", func(c *Ctx) {
	r := &c.S.Request
	if r.Tasks > 0 && r.Nodes > r.Tasks && r.NodesMax <= r.Nodes {
		d := c.S.Opt("ntasks")
		c.Hit(d.Pos, "tasks", itoa(r.Tasks), "nodes", itoa(r.Nodes))
	}
})
