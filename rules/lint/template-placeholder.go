package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("template-placeholder", func(c *Ctx) {
	if len(c.S.Placeholders) > 0 {
		p := c.S.Placeholders[0]
		c.Hit(p.Pos, "text", fact.Clip(p.Text, 60), "count", itoa(len(c.S.Placeholders)))
	}
})
