package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("background-without-wait", func(c *Ctx) {
	s := c.S
	if !s.Parsed || s.Syntax != nil || c.sourcedUnknown() {
		return
	}
	var back *fact.Step
	for i := range s.Steps {
		st := &s.Steps[i]
		x := &s.Commands[st.Cmd]
		if x.Back && !x.Dead && !x.Trap && st.Outer < 0 && (st.Tool == "srun" || strings.HasPrefix(st.Tool, "mpi")) && x.File == "" {
			back = st
		}
	}
	if back == nil {
		return
	}
	seq := s.Commands[back.Cmd].Seq
	for i := range s.Commands {
		x := &s.Commands[i]
		if x.Step >= 0 {
			continue
		}
		switch x.Name {
		case "wait", "fg", "tail", "sleep", "ray", "read", "exec":
			if x.Seq > seq || x.Loop > 0 || x.Func != "" || x.Trap {
				return
			}
		case "srun", "mpirun", "mpiexec", "bash", "sh", "python", "python3", "torchrun", "accelerate", "deepspeed", "singularity", "apptainer", "docker":
			if x.Seq > seq && !x.Back && !x.Dead {
				return
			}
		default:
			if x.Seq > seq && !x.Back && !x.Dead && (strings.Contains(x.Name, ".") || x.Name == "" || x.Loop > 0 && s.Commands[back.Cmd].Loop == 0) {
				return
			}
		}
	}
	c.Hit(back.Pos, "tool", back.Tool)
})
