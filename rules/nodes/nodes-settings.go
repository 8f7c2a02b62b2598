package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// agree are the settings that decide on the transport or on the shape of the
// communicator: all ranks must have the same (NVIDIA/nccl docs, env.rst).
var agree = map[string]bool{
	"NCCL_NET": true, "NCCL_IB_DISABLE": true, "NCCL_NET_PLUGIN": true, "NCCL_ALGO": true, "NCCL_PROTO": true, "NCCL_BUFFSIZE": true,
	"NCCL_SOCKET_FAMILY": true, "NCCL_IB_PKEY": true, "NCCL_MNNVL_ENABLE": true, "NCCL_NVLS_ENABLE": true, "NCCL_COLLNET_ENABLE": true,
	"NCCL_MIN_NCHANNELS": true, "NCCL_MAX_NCHANNELS": true, "NCCL_MIN_CTAS": true, "NCCL_MAX_CTAS": true, "NCCL_COMM_ID": true,
	"NCCL_PXN_DISABLE": true, "NCCL_CROSS_NIC": true, "NCCL_LL_BUFFSIZE": true, "NCCL_LL128_BUFFSIZE": true, "NCCL_IB_MERGE_NICS": true,
}

// local are settings that may well differ from node to node.
func local(name string) bool {
	switch name {
	case "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA", "NCCL_HOSTID", "NCCL_CONF_FILE", "NCCL_IGNORE_CPU_AFFINITY":
		return true
	}
	return strings.HasPrefix(name, "NCCL_DEBUG") || strings.HasPrefix(name, "NCCL_TOPO") || strings.HasPrefix(name, "NCCL_GRAPH") || strings.HasSuffix(name, "_FILE")
}

var _ = Checks.Add("nodes-settings", func(b *fact.Bundle, r *diag.Reporter) {
	must := withPrefix(b, "set.", func(n string) bool { return agree[n] })
	may := withPrefix(b, "set.", func(n string) bool { return !agree[n] && !local(n) })
	switch {
	case len(must) > 0:
		report(r, "net-differs-between-nodes", diag.Likely, "set", append(must, may...)...)
	case len(may) > 0:
		report(r, "net-differs-between-nodes", diag.Possible, "set", may...).Sev(diag.Warning)
	}
})
