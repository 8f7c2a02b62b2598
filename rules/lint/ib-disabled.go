package lint

import "github.com/ncclinic/ncclinic/internal/fact"

var _ = Checks.Add("ib-disabled", func(c *Ctx) {
	a := c.last("NCCL_IB_DISABLE")
	if a == nil || a.Cond > 0 && c.otherwise(a) || !a.Value.Known || a.Value.Text != "1" || c.nodes() < 2 || c.says("fi_provider", "fi_efa", "libfabric", "aws-ofi") {
		return
	}
	c.Hit(a.Pos, "nodes", itoa(c.nodes()))
})

// otherwise reports that the script sets the variable to something else on
// another way: it looks at what the node has.
func (c *Ctx) otherwise(a *fact.Assign) bool {
	for i := range c.S.Assigns {
		if b := &c.S.Assigns[i]; b != a && b.Name == a.Name && !b.Dead && b.Value.Text != a.Value.Text {
			return true
		}
	}
	return false
}
