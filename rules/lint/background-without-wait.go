package lint

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("background-without-wait", func(c *Ctx) {
	s := c.S
	if !s.Parsed || s.Syntax != nil || c.sourcedUnknown() {
		return
	}
	at, tool, prog := -1, "", false
	later := func(i int) bool { return at < 0 || s.Commands[i].Seq > s.Commands[at].Seq }
	for i := range s.Steps {
		st := &s.Steps[i]
		x := &s.Commands[st.Cmd]
		if x.Back && !x.Dead && !x.Trap && st.Outer < 0 && !(ownJob(st) && !c.submitted()) && (st.Tool == "srun" || strings.HasPrefix(st.Tool, "mpi")) && x.File == "" && later(st.Cmd) {
			at, tool = st.Cmd, st.Tool
		}
	}
	if c.submitted() { // by hand, nohup torchrun & outlives the script
		c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
			i := c.outermostIndex(l.Cmd)
			x := &s.Commands[i]
			if x.Back && !x.Trap && !x.Subst && x.File == "" && !c.inSrun(l) && !l.Guessed && !server.MatchString(l.Program) && (distributed(l) || l.Kind == fact.LaunchPython && trainName.MatchString(l.Program)) && later(i) {
				at, tool, prog = i, show(l), true
			}
		})
	}
	if at < 0 {
		return
	}
	back := &s.Commands[at]
	seq := back.Seq
	for i := range s.Commands {
		x := &s.Commands[i]
		if x.Step >= 0 {
			continue
		}
		switch x.Name {
		case "sleep":
			// A short pause between two starts keeps nothing alive; a loop of its
			// own, or a long sleep, does.
			if (x.Seq > seq || x.Func != "" || x.Trap) && !(shortSleep(x) && (x.Loop == 0 || sameTop(s, i, at))) {
				return
			}
		case "wait", "fg", "tail", "ray", "read", "exec", "curl", "wget":
			if x.Seq > seq || x.Loop > 0 || x.Func != "" || x.Trap {
				return
			}
		case "srun", "mpirun", "mpiexec", "bash", "sh", "python", "python3", "torchrun", "accelerate", "deepspeed", "singularity", "apptainer", "docker":
			if x.Seq > seq && !x.Back && !x.Dead {
				return
			}
		default:
			// Any program in the foreground may keep the job alive.
			if x.Seq > seq && !x.Back && !x.Dead && (!ordinary[x.Name] && x.Name != "scancel" || x.Loop > 0 && back.Loop == 0) {
				return
			}
		}
	}
	h := c.Hit(back.Pos, "tool", tool)
	if prog {
		h.Args["variant"] = "program"
	}
})

// server are names of programs that serve others, and may end with the script.
var server = lazyre.New(`(?i)serv|vllm|sglang|\bhttp|api|proxy|monitor|tensorboard`)

// shortSleep reports a sleep of less than ten minutes.
func shortSleep(x *fact.ScriptCmd) bool {
	if len(x.Words) != 2 {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(x.Words[1].Text, "s"))
	return err == nil && n < 600
}

// sameTop reports whether two commands stand in the same statement of the top level.
func sameTop(s *fact.Script, a, b int) bool {
	for _, t := range s.Top {
		if t.Cmds[0] <= a && a < t.Cmds[1] {
			return t.Cmds[0] <= b && b < t.Cmds[1]
		}
	}
	return false
}

// ownJob reports an srun that asks for an allocation of its own: started by
// hand, it runs on when the script has ended.
func ownJob(st *fact.Step) bool {
	for _, o := range []string{"partition", "account", "qos", "time"} {
		if st.Opt(o) != nil {
			return true
		}
	}
	return false
}
