package lint

import ()

var _ = Checks.Add("template-placeholder", func(c *Ctx) {
	if len(c.S.Placeholders) > 0 {
		p := c.S.Placeholders[0]
		c.Hit(p.Pos, "text", clip(p.Text, 60), "count", itoa(len(c.S.Placeholders)))
	}
})
