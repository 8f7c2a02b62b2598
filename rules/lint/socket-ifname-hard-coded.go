package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
)

var _ = Checks.Add("socket-ifname-hard-coded", func(c *Ctx) {
	for _, name := range []string{"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"} {
		a := c.last(name)
		if a == nil || !a.Value.Known || a.Value.Text == "" {
			continue
		}
		v := strings.TrimPrefix(a.Value.Text, "=")
		if strings.HasPrefix(v, "^") || strings.HasPrefix(v, "hsn") || c.says("tcpx", "fastrak") {
			continue
		}
		if (v == "lo" || v == "docker0") && c.nodes() > 1 {
			c.Hit(a.Pos, "variant", "loopback", "name", name, "value", a.Value.Text).Sev(diag.Warning)
			return
		}
		c.Hit(a.Pos, "name", name, "value", a.Value.Text)
		return
	}
})
