package lint

var _ = Checks.Add("crlf", func(c *Ctx) {
	if c.S.CRLF == 0 || c.S.Shell == "python" && !c.S.Live() {
		return // a program that writes batch scripts
	}
	r := c.Hit(at(c.S.CRLF, 1), "count", itoa(c.S.CRLFs))
	src := c.S.Src
	for i := 0; i+1 < len(src); i++ {
		if src[i] == '\r' && src[i+1] == '\n' {
			r.Edit(i, i+1, "")
		}
	}
})
