package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("exit-masked", func(c *Ctx) {
	s := c.S
	if !c.submitted() || s.Option("e", 1<<30) || len(s.Top) == 0 {
		return
	}
	last := -1
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		x := c.outermost(l.Cmd)
		if (training(l) || l.Kind == fact.LaunchWrapper) && !x.Subst && !x.Trap {
			for i := range s.Commands {
				if &s.Commands[i] == x {
					last = max(last, i)
				}
			}
		}
	})
	if last < 0 || s.Commands[last].OrElse || c.says("$?", "pipestatus", "trap ") {
		return
	}
	end := s.Top[len(s.Top)-1]
	for i := len(s.Top) - 1; i >= 0 && end.Kind == "func"; i-- {
		end = s.Top[i]
	}
	if end.Cmds[0] >= end.Cmds[1] || end.Cmds[0] <= last && last < end.Cmds[1] || end.Back || end.Kind != "call" && end.Kind != "assign" && end.Kind != "pipe" {
		return
	}
	x := &s.Commands[end.Cmds[0]]
	for i := end.Cmds[0]; i < end.Cmds[1]; i++ {
		if y := &s.Commands[i]; y.Outer < 0 && !y.Subst {
			x = y
		}
	}
	switch x.Name {
	case "echo", "date", "deactivate", "printf", "sleep", "ls", "true", "hostname", "export", "squeue", "sacct", "rm", "cp", "mv", "module", "cd", "mkdir", "nvidia-smi", "set", "unset", "exit", "conda", "wait":
		arg := ""
		if len(x.Words) > 1 {
			arg = x.Words[1].Text
		}
		if x.Name == "exit" && arg != "0" || x.Name == "conda" && arg != "deactivate" || x.Name == "wait" && arg != "" {
			return
		}
		if x.Name == "wait" && !s.Commands[last].Back {
			arg = ""
		}
		c.Hit(x.Pos, "command", strings.TrimSpace(x.Name+" "+clip(arg, 30)))
	}
})
