package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("pip-install-in-job", func(c *Ctx) {
	if !c.submitted() || !c.says("install", "conda update") || !trains(c) || c.says("slurm_tmpdir", "virtualenv --no-download") {
		return
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" || len(c.out) > 0 {
			continue
		}
		cmd, args := installer(x)
		if cmd == "" {
			continue
		}
		tmp := false
		for _, a := range args {
			if strings.Contains(a, "TMPDIR") || strings.HasPrefix(a, "/tmp") || a == "--dry-run" {
				tmp = true
			}
		}
		if tmp || localEnv(c, x) || c.buildsEnv() && !c.trainsAfter(x) || x.Cond > 0 && c.onceOnly(x) {
			continue
		}
		c.Hit(x.Pos, "command", clip(cmd+" "+strings.Join(args, " "), 60))
	}
})

// trainsAfter reports an install on every node with a launcher of ranks behind
// it: whatever the job is called, it is there to train.
func (c *Ctx) trainsAfter(x *fact.ScriptCmd) bool {
	found := false
	c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
		found = found || distributed(l) && cmd.Seq > x.Seq && l.Step >= 0
	})
	return found && x.Step >= 0
}

// onceOnly reports a command in a branch that is taken only as long as
// something does not exist: the environment is made by the first job.
func (c *Ctx) onceOnly(x *fact.ScriptCmd) bool {
	for n := x.Line; n > 0 && n > x.Line-15; n-- {
		l := strings.TrimSpace(c.S.Line(n))
		if l == "fi" || strings.HasPrefix(l, "else") {
			return false
		}
		if strings.HasPrefix(l, "if ") && !notThere.MatchString(l) {
			return false
		}
		if notThere.MatchString(l) {
			return true
		}
	}
	return false
}

var notThere = lazyre.New(`(?:\[|\btest)\s+!\s+-[def]\s`)
