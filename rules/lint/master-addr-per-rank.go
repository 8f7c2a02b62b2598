package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("master-addr-per-rank", func(c *Ctx) {
	// --nodes=${NODES} is refused, but says that there are to be several.
	meant := c.nodes() == 0 && c.variableOption("nodes") != ""
	if c.nodes() < 2 && !meant {
		return
	}
	bad := func(w fact.Word) bool {
		for _, h := range c.S.HolesOf(w.Val) {
			if !h.Step || strings.Contains(h.Text, "scontrol") {
				continue
			}
			if h.Kind == "var" && (h.Name == "HOSTNAME" || h.Name == "SLURMD_NODENAME") || h.Kind == "cmd" && (hostnameCmd.MatchString(h.Text)) {
				return true
			}
		}
		return false
	}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if a.Name == "MASTER_ADDR" && a.Step >= 0 && !a.Dead && a.Cond == 0 && c.S.Steps[a.Step].Tool == "srun" && c.S.Steps[a.Step].EffNodes != 1 && bad(a.Value) {
			c.Hit(a.Pos, "value", a.Value.Text)
		}
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || st.Tool != "srun" || st.EffNodes == 1 || l.Cond > 0 {
			return
		}
		if n, ok := num(l.Nnodes); ok && n == 1 || meant && !given(l.Nnodes) {
			return
		}
		for _, w := range []fact.Word{l.Endpoint, l.MasterAddr} {
			if bad(w) && len(c.out) == 0 {
				c.Hit(w.Pos, "value", w.Text)
			}
		}
	})
})

var hostnameCmd = lazyre.New("^(\\$\\(|`)\\s*hostname\\b")
