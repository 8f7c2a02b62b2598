package lint

import (
	"strconv"
	"strings"
)

var _ = Checks.Add("cvd-hard-coded", func(c *Ctx) {
	g := c.gpus()
	if !c.submitted() || g == 0 {
		return
	}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if a.Name != "CUDA_VISIBLE_DEVICES" || a.Dead || a.Unset || a.File != "" || !a.Value.Known || a.Value.Text == "" || a.Value.Text == "-1" || len(c.out) > 0 {
			continue
		}
		if a.Prefix && a.Cmd >= 0 && a.Cmd < len(c.S.Commands) && c.outermost(a.Cmd).Back {
			continue // one GPU for each of several programs
		}
		ids := strings.Split(a.Value.Text, ",")
		same := len(ids) == g
		for k, id := range ids {
			n, err := strconv.Atoi(strings.TrimSpace(id))
			if err != nil {
				return // a UUID
			}
			same = same && n == k
		}
		if !same {
			c.Hit(a.Pos, "value", a.Value.Text, "gpus", itoa(g))
		}
	}
})
