package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("master-addr-localhost-multinode", func(c *Ctx) {
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || !c.inSrun(l) || st.EffNodes < 2 || len(c.out) > 0 {
			return
		}
		if elastic(l) || l.Kind == fact.LaunchAccelerate || l.Kind == fact.LaunchDeepSpeed || l.Kind == fact.LaunchComposer {
			if n, ok := num(l.Nnodes); !ok || n < 2 || l.Standalone {
				return
			}
			w := l.Endpoint
			if !given(w) {
				w = l.MasterAddr
			}
			if w.Known && localhost(w.Text) {
				c.Hit(w.Pos, "value", w.Text, "nodes", itoa(st.EffNodes))
			}
			return
		}
		if l.Kind != fact.LaunchPython && l.Kind != fact.LaunchWrapper {
			return
		}
		v := c.S.Var("MASTER_ADDR", cmd.Seq)
		for i := range c.S.Assigns { // MASTER_ADDR=localhost srun python train.py
			if a := &c.S.Assigns[i]; a.Prefix && a.Name == "MASTER_ADDR" && a.Cmd == c.outermostIndex(l.Cmd) {
				v = a
			}
		}
		if v != nil && v.Export && v.Value.Known && localhost(v.Value.Text) && v.Cond == 0 {
			c.Hit(v.Pos, "value", v.Value.Text, "nodes", itoa(st.EffNodes))
		}
	})
})
