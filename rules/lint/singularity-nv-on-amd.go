package lint

import (
	"strings"
)

var _ = Checks.Add("singularity-nv-on-amd", func(c *Ctx) {
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		b := x.Container
		if b == nil || x.Dead || !b.NV || b.ROCm || x.Name != b.Tool || b.Tool != "singularity" && b.Tool != "apptainer" {
			continue
		}
		if strings.HasPrefix(strings.ToLower(c.S.Request.GPUType), "mi") || strings.Contains(strings.ToLower(b.Image), "rocm") {
			for _, w := range x.Words {
				if w.Text == "--nv" {
					h := c.Hit(w.Pos, "tool", b.Tool, "image", b.Image)
					if w.Raw == "--nv" {
						h.Edit(c.offset(w.Pos), c.offset(w.Pos)+4, "--rocm")
					}
					return
				}
			}
		}
	}
})
