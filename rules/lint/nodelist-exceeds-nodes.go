package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/hostlist"
)

var _ = Checks.Add("nodelist-exceeds-nodes", func(c *Ctx) {
	d, most := c.S.Opt("nodelist"), c.S.Request.NodesMax
	if !c.submitted() || d == nil || most == 0 || c.S.HetGroups > 0 || strings.Contains(d.Value, "/") || dollar(d.Value) {
		return // with a "/" it is the name of a file
	}
	names, err := hostlist.Expand(d.Value)
	if err != nil {
		return
	}
	seen := map[string]bool{}
	var first []string
	for _, n := range names {
		if !seen[n] && len(first) < most {
			first = append(first, n)
		}
		seen[n] = true
	}
	if len(seen) > most {
		c.Hit(d.ValuePos, "listed", itoa(len(seen)), "nodes", itoa(most), "kept", clip(hostlist.Fold(first), 60))
	}
})
