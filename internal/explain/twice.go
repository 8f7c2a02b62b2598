package explain

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// decideTwice judges a launcher that runs in each of several tasks of a node,
// and starts all local ranks in each of them. Its marks besides a port in use:
// several tasks announce the same rank, or the processes crowd the GPUs.
func (v *view) decideTwice() {
	if v.candidate("rdzv-launched-twice") {
		return
	}
	dup := v.duplicateRanks()
	oom := v.peek("S206", "S207")
	crowd := append(v.peek("S121", "S122"), v.crowded()...)
	if !v.dead && len(oom) == 0 && len(crowd) == 0 {
		return
	}
	sc, cmd, n := v.launcherPerTask()
	var ev []*fact.Event
	switch {
	case len(crowd) > 0 && (cmd.Line > 0 || len(dup) > 0):
		ev = crowd
	case len(dup) > 0 && cmd.Line > 0:
	default:
		return
	}
	c := v.add(cand{id: "rdzv-launched-twice", cert: diag.Likely, over: []string{"gpu-shared-by-ranks", "gpu-out-of-memory", "rdzv-port-in-use", "run-exception", "rdzv-stale-store"}}, cap4(ev)...)
	if cmd.Line > 0 {
		c.cert = diag.Proven
		c.ev = append(append(c.ev, sc.ev(cmd)), sc.opts("ntasks-per-node", "ntasks")...)
		c.args = mergeArgs(c.args, diag.Args{"tasks": itoa(n)})
	}
	v.said(c, first(dup, 2)...)
	if len(c.where) == 0 {
		c.where = append(c.where, v.where(c.at))
	}
}

// crowded returns out-of-memory errors that name other big processes on the GPU.
func (v *view) crowded() []*fact.Event {
	var out []*fact.Event
	for _, x := range v.gpuOOM() {
		n := 0
		for _, p := range others.FindAllStringSubmatch(x.Message, -1) {
			if mib(p[2], p[3]) >= 2048 {
				n++
			}
		}
		if n > 0 {
			out = append(out, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300)})
		}
	}
	return out
}

// launcherPerTask returns the command that starts a launcher in several tasks
// of a node, and how many.
func (v *view) launcherPerTask() (*script, fact.Pos, int) {
	for _, s := range v.scripts {
		for _, l := range s.launchers() {
			if l.Step < 0 || s.f.Steps[l.Step].Tool != "srun" {
				continue
			}
			if n := s.tasksPerNode(l.Step); n > 1 {
				return s, s.stmt(l.Cmd), n
			}
		}
		// programs that start the ranks themselves and are no launcher of Python
		for i := range s.f.Commands {
			c := &s.f.Commands[i]
			if c.Step < 0 || c.Dead || s.f.Steps[c.Step].Tool != "srun" {
				continue
			}
			if c.Name != "litgpt" && c.Name != "mpirun" && (c.Name != "tune" || len(c.Words) < 2 || c.Words[1].Text != "run") {
				continue
			}
			if n := s.tasksPerNode(c.Step); n > 1 {
				return s, s.stmt(i), n
			}
		}
	}
	return nil, fact.Pos{}, 0
}
