package lint

var _ = Checks.Add("ib-disabled", func(c *Ctx) {
	a := c.last("NCCL_IB_DISABLE")
	if a == nil || !a.Value.Known || a.Value.Text != "1" || c.nodes() < 2 || c.says("fi_provider", "fi_efa", "libfabric", "aws-ofi") {
		return
	}
	c.Hit(a.Pos, "nodes", itoa(c.nodes()))
})
