package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("script-dir-from-dollar0", func(c *Ctx) {
	s := c.S
	if !c.submitted() || s.CallsSbatch || !strings.Contains(c.code(), "$0") && !strings.Contains(c.code(), "${0") && !strings.Contains(c.code(), "BASH_SOURCE") {
		return
	}
	if c.says("scontrol show job", "sbatch \"$0\"", "sbatch $0", `*"slurmd"*`, "*slurmd*", "*/spool/*") {
		return // it looks for itself, or knows the spool
	}
	// A variable that also takes SLURM_SUBMIT_DIR, or a line that names it, is guarded.
	guarded := func(line int) bool {
		if l := s.Line(line); strings.Contains(l, "SUBMIT_DIR") || strings.Contains(l, "basename") || onlyDefault.MatchString(l) {
			return true // or the path of the script itself is wanted
		}
		for i := range s.Assigns {
			a := &s.Assigns[i]
			if a.Line != line {
				continue
			}
			for k := range s.Assigns {
				if b := &s.Assigns[k]; b.Name == a.Name && strings.Contains(b.Value.Text+b.Value.Raw, "SUBMIT_DIR") {
					return true
				}
			}
		}
		return false
	}
	for i := range s.Commands {
		x := &s.Commands[i]
		if x.Name != "dirname" || x.Dead || x.Cond > 0 || x.File != "" || x.Step >= 0 {
			continue
		}
		for _, w := range x.Words[1:] {
			if (zeroArg.MatchString(w.Text) || zeroArg.MatchString(w.Raw)) && !guarded(x.Line) {
				c.Hit(x.Pos, "expression", clip("dirname "+w.Text, 60))
				return
			}
		}
	}
	if !strings.Contains(c.code(), "%/*}") {
		return
	}
	for n := 1; n <= s.NumLines; n++ {
		l := s.Line(n)
		if !strings.Contains(l, "%/*}") || guarded(n) {
			continue
		}
		for _, e := range []string{"${0%/*}", "${BASH_SOURCE[0]%/*}", "${BASH_SOURCE%/*}"} {
			if i := strings.Index(l, e); i >= 0 && !strings.HasPrefix(strings.TrimSpace(l), "#") && !c.inHeredoc(n) {
				c.Hit(at(n, i+1), "expression", e)
				return
			}
		}
	}
})

var zeroArg = lazyre.New(`\$\{?0\b|\$\{?BASH_SOURCE`)

// onlyDefault is a line that takes the folder only when a variable has no value:
// : "${ROOT:=$(dirname "$0")}"; --export gives it to the job.
var onlyDefault = lazyre.New(`\$\{\w+:[=-]"?\$\(`)
