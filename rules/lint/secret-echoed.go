package lint

import (
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("secret-echoed", func(c *Ctx) {
	for _, r := range c.S.Reads {
		if r.Dead || r.Tested || r.Default || r.Cmd != "echo" && r.Cmd != "printf" || len(c.out) > 0 || r.File != "" {
			continue
		}
		if !secretName.MatchString(r.Name) || madeHere(c, r.Name) {
			continue
		}
		ok := false
		c.cmds(func(x *fact.ScriptCmd) {
			if x.Line <= r.Line && r.Line <= x.Line+1 && len(x.PipeTo) == 0 && len(x.Redir) == 0 && !x.Subst {
				ok = true
			}
		}, "echo", "printf")
		if ok {
			c.Hit(r.Pos, "name", r.Name)
		}
	}
	c.cmds(func(x *fact.ScriptCmd) {
		if len(c.out) > 0 || len(x.Redir) > 0 || x.Subst || x.Trap {
			return
		}
		if x.Name != "declare" && len(x.Words) == 1 || x.Name == "export" && len(x.Words) == 2 && x.Words[1].Text == "-p" {
			for _, p := range x.PipeTo {
				if p != "sort" && p != "tee" && p != "cat" {
					return
				}
			}
			for i := range c.S.Commands { // env | sort > file
				if y := &c.S.Commands[i]; y.Piped && y.Seq > x.Seq && y.Line == x.Line && len(y.Redir) > 0 {
					return
				}
			}
			if x.Name == "export" || x.Name == "set" {
				return
			}
			c.Hit(x.Pos, "variant", "dump", "name", x.Name)
		}
	}, "env", "printenv")
})

var secretName = lazyre.New(`(?i)(_KEY|_TOKEN|_SECRET|PASSWORD|_PASS|_PAT)$`)

// madeHere reports a name such as RUN_KEY whose value the script makes itself:
// a constant, a random number, a date. It tells runs apart, and opens nothing.
func madeHere(c *Ctx, name string) bool {
	a := c.last(name)
	if a == nil || surelySecret.MatchString(name) {
		return false
	}
	if a.Value.Known {
		return true
	}
	for _, h := range c.S.HolesOf(a.Value.Val) {
		if h.Name != "RANDOM" && !generated.MatchString(h.Text) {
			return false
		}
	}
	return true
}

var (
	surelySecret = lazyre.New(`(?i)API|ACCESS|SECRET|AUTH|TOKEN|PASS|WANDB|HF_|PRIVATE`)
	generated    = lazyre.New(`openssl rand|uuidgen|\bdate\b|md5sum|sha\d+sum|/dev/urandom|RANDOM|SLURM_\w*JOB`)
)
