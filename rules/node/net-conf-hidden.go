package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("net-conf-hidden", func(b *fact.Bundle, r *diag.Reporter) {
	for _, lost := range b.NCCLConf {
		win, ok := b.NCCL(lost.Name)
		if lost.Wins || !ok || win.Value == lost.Value || strings.HasPrefix(lost.Name, "NCCL_DEBUG") {
			continue
		}
		a := diag.Args{"name": lost.Name, "value": win.Value, "layer": win.Layer, "other": lost.Value, "other_layer": lost.Layer}
		if win.Layer != "environment" {
			a["variant"] = "file"
		}
		r.Hit("net-conf-hidden", diag.Proven, a, win.At, lost.At)
		return
	}
})
