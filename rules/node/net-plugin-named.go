package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("net-plugin-named", func(b *fact.Bundle, r *diag.Reporter) {
	net, netAt, _ := setting(b, "NCCL_NET")
	plug, plugAt, _ := setting(b, "NCCL_NET_PLUGIN")
	if net == "" && plug == "" {
		return
	}
	if !b.Node.Plugins.Looked() || loginLike(b) {
		r.Skip("the plugins of the compute node were not looked at")
		return
	}
	have := b.Node.Plugins.Or(nil)
	switch strings.ToLower(net) {
	case "", "ib", "socket":
	default:
		if len(have) == 0 && !strings.Contains(plug, "/") {
			r.Hit("net-plugin-missing", diag.Likely, diag.Args{"value": net, "var": "NCCL_NET"}, netAt, b.Node.Plugins.At)
			return
		}
	}
	if plug == "" || strings.EqualFold(plug, "none") || strings.Contains(plug, "/") {
		return // a path is for the loader, not for this list
	}
	for _, want := range strings.Split(plug, ",") {
		for _, h := range have {
			base := h[strings.LastIndexByte(h, '/')+1:]
			if base == want || strings.HasPrefix(base, "libnccl-net-"+want+".so") || strings.HasPrefix(base, want+".so") {
				return
			}
		}
	}
	list := strings.Join(have, ", ")
	if list == "" {
		list = "-"
	}
	r.Hit("net-plugin-missing", diag.Likely, diag.Args{"value": plug, "var": "NCCL_NET_PLUGIN", "variant": "plugin", "have": fact.Clip(list, 200)}, plugAt, b.Node.Plugins.At).
		Sev(diag.Warning)
})
