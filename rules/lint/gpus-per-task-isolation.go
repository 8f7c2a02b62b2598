package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpus-per-task-isolation", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if s.Opt("gpus-per-task") == nil && s.Opt("tres-per-task") == nil && len(s.Steps) == 0 {
		return
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || st.Tool != "srun" || len(c.out) > 0 || !training(l) {
			return
		}
		per := st.GPUsPerTask
		pos := st.Pos
		if d := st.Opt("gpus-per-task"); d != nil {
			pos = d.Pos
		} else if d := s.Opt("gpus-per-task"); d != nil {
			per, pos = r.GPUsPerTask, d.Pos
		}
		if per != 1 || c.lightning() || c.says("nemo", "gpu-bind", "gpu_bind", "tres-bind", "allow-task-sharing", "--device cuda:0", "--device=cuda:0") {
			return
		}
		for i := range s.Assigns { // the task chooses its GPU itself
			if a := &s.Assigns[i]; a.Name == "CUDA_VISIBLE_DEVICES" && a.Step >= 0 && !a.Dead {
				return
			}
		}
		for i := range s.Reads {
			if r := &s.Reads[i]; r.Name == "CUDA_VISIBLE_DEVICES" && r.Step >= 0 && r.Cmd != "echo" {
				return
			}
		}
		tpn := st.EffTPN
		if tpn == 0 && st.EffTasks > 1 && st.EffNodes <= 1 {
			tpn = st.EffTasks
		}
		switch {
		case tpn > 1 && l.Kind == fact.LaunchPython:
			c.Hit(pos, "tasks", itoa(tpn))
		case tpn == 1 && distributed(l) && c.nproc(l) > 1:
			c.Hit(pos, "variant", "onetask", "tasks", itoa(c.nproc(l)))
		}
	})
})
