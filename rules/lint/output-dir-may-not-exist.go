package lint

var _ = Checks.Add("output-dir-may-not-exist", func(c *Ctx) {
	outputDir(c, false)
})
