package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	hcaName  = lazyre.New(`^(?:CA '([\w-]+)'|hca_id: ?\s*([\w-]+)|Infiniband device '([\w-]+)' port \d+ status:)`)
	hcaState = lazyre.New(`^[sS]tate: ?\s*(?:\d+: ?)?(?:PORT_)?(Down|DOWN|Active|ACTIVE|Initializing|INIT|Armed|ARMED|Polling)\b`)
	hcaNet   = lazyre.New(`^([\w-]+) port \d+ ==> [\w-]+ \((Up|Down)\)`)
	rdmaLink = lazyre.New(`^link ([\w-]+)/\d+ (?:subnet_prefix \S+ lid \d+ sm_lid \d+ lmc \d+ )?state (DOWN|ACTIVE|INIT|ARMED)\b`)
)

// ports reads the states of RDMA ports: ibstat, ibv_devinfo, ibstatus,
// ibdev2netdev and rdma link.
func (p *Parser) ports(msg string, add adder) bool {
	if len(msg) > 160 {
		return false
	}
	t := strings.TrimSpace(msg)
	if m := hcaName.FindStringSubmatch(t); m != nil {
		p.hca = m[1] + m[2] + m[3]
		return true
	}
	if p.hca != "" && (strings.HasPrefix(t, "State:") || strings.HasPrefix(t, "state:")) {
		if m := hcaState.FindStringSubmatch(t); m != nil {
			add(kind.Port, p.hca, portState(m[1]), "")
			return true
		}
	}
	if strings.Contains(t, " ==> ") {
		if m := hcaNet.FindStringSubmatch(t); m != nil {
			add(kind.Port, m[1], portState(m[2]), "")
			return true
		}
	}
	if strings.HasPrefix(t, "link ") {
		if m := rdmaLink.FindStringSubmatch(t); m != nil {
			add(kind.Port, m[1], portState(m[2]), "")
			return true
		}
	}
	return false
}

func portState(s string) string {
	switch strings.ToLower(s) {
	case "active", "up":
		return "up"
	case "init", "initializing", "armed":
		return "init"
	}
	return "down"
}
