package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("net-efa-plugin", func(b *fact.Bundle, r *diag.Reporter) {
	if loginLike(b) || oneNode(b) || !b.Node.Plugins.Looked() || len(b.Node.Plugins.Or(nil)) > 0 {
		return
	}
	n := 0
	for _, h := range b.Node.RDMA.Or(nil) {
		if h.Driver == "efa" || strings.HasPrefix(h.Name, "efa_") {
			n++
		}
	}
	if n == 0 {
		return
	}
	r.Hit("net-plugin-missing", diag.Likely, diag.Args{"count": itoa(n), "fabric": "efa"}, b.Node.RDMA.At, b.Node.Plugins.At)
})
