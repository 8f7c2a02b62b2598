package lint

var _ = Checks.Add("cuda-launch-blocking", func(c *Ctx) {
	a := c.last("CUDA_LAUNCH_BLOCKING")
	if a != nil && a.Value.Known && a.Value.Text == "1" {
		c.Hit(a.Pos)
	}
})
