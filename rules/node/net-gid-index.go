package node

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

var _ = Checks.Add("net-gid-index", func(b *fact.Bundle, r *diag.Reporter) {
	v, at, set := setting(b, "NCCL_IB_GID_INDEX")
	idx, err := strconv.Atoi(v)
	if !set || err != nil || idx < 0 || rdmaOff(b) {
		return
	}
	if loginLike(b) {
		r.Skip(loginSkip)
		return
	}
	want, _, _ := setting(b, "NCCL_IB_HCA")
	hcas := b.Node.RDMA.Or(nil)
	for _, p := range netsel.SelectHCA(hcas, want).Ports {
		port := findPort(hcas, p.HCA, p.Port)
		if port == nil || port.Link != "Ethernet" || len(port.GIDs) == 0 {
			continue
		}
		g, good := gidAt(port, idx)
		a := diag.Args{"value": v, "port": p.String(), "good": good}
		switch {
		case g == nil || strings.Trim(g.GID, "0:") == "":
			r.Hit("net-rdma-address", diag.Proven, a, at, b.Node.RDMA.At)
			return
		case strings.Contains(g.Type, "v1"):
			a["variant"] = "v1"
			r.Hit("net-rdma-address", diag.Likely, a, at, b.Node.RDMA.At).Sev(diag.Warning)
			return
		}
	}
})
