package lint

var _ = Checks.Add("output-mkdir-too-late", func(c *Ctx) {
	outputDir(c, true)
})
