package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("net-slingshot-plugin", func(b *fact.Bundle, r *diag.Reporter) {
	cxi := b.Node.CXI.Or(nil)
	if len(cxi) == 0 || loginLike(b) || oneNode(b) || !b.Node.Plugins.Looked() || len(b.Node.Plugins.Or(nil)) > 0 {
		return
	}
	r.Hit("net-plugin-missing", diag.Likely, diag.Args{"devices": strings.Join(cxi, ", "), "fabric": "cxi"}, b.Node.CXI.At, b.Node.Plugins.At)
})
