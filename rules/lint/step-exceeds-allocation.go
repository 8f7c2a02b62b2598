package lint

import (
	"strconv"
)

var _ = Checks.Add("step-exceeds-allocation", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if !c.submitted() || c.wholeNode() || s.HetGroups > 0 || s.Opt("overcommit") != nil || s.Opt("constraint") != nil {
		return
	}
	tasks := r.Tasks
	if tasks == 0 && r.TasksPerNode > 0 && r.EffectiveNodes > 0 {
		tasks = r.TasksPerNode * r.EffectiveNodes
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Tool != "srun" || st.Opt("overcommit") != nil || st.Opt("het-group") != nil || st.Opt("pack-group") != nil || s.Commands[st.Cmd].Dead || st.Opt("jobid") != nil {
			continue
		}
		if st.Nodes > 0 && r.Nodes > 0 && st.Nodes > max(r.Nodes, r.NodesMax) {
			c.Hit(st.Pos, "variant", "nodes", "want", itoa(st.Nodes), "have", itoa(r.Nodes))
			continue
		}
		if st.Tasks == 0 || tasks == 0 {
			continue
		}
		cpus := 1
		if d := st.Opt("cpus-per-task"); d != nil {
			if n, err := strconv.Atoi(d.Value); err == nil && n > 0 {
				cpus = n
			}
		}
		have := tasks * max(r.CPUsPerTask, 1)
		if r.CPUsPerGPU > 0 {
			continue
		}
		if st.Tasks*cpus > have && st.Tasks > tasks {
			c.Hit(st.Pos, "want", itoa(st.Tasks), "have", itoa(tasks), "cpus", itoa(have))
		}
	}
})
