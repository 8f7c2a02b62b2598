package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("filename-pattern-in-body", func(c *Ctx) {
	if !c.says("%u", "%j") {
		return
	}
	look := func(w fact.Word) bool {
		if m := pathPattern.FindString(w.Text); m != "" && w.Known {
			c.Hit(w.Pos, "pattern", m[len(m)-2:], "path", w.Text)
			return true
		}
		return false
	}
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Dead || x.File != "" || len(x.Words) == 0 {
			continue
		}
		if look(x.Words[0]) { // the program itself
			continue
		}
		if fileCommand[x.Name] {
			for _, w := range x.Words[1:] {
				if look(w) {
					break
				}
			}
		}
		for _, r := range x.Redir {
			w := r.Word
			if w.Line == 0 {
				w.Pos = x.Pos
			}
			if x.Outer < 0 && look(w) {
				break
			}
		}
	}
	for i := range c.S.Assigns {
		// What is handed to programs; others may end as a file name of srun.
		a := &c.S.Assigns[i]
		if !a.Export || a.Dead || a.File != "" || strings.HasPrefix(a.Name, "SLURM") || strings.HasPrefix(a.Name, "SBATCH") || strings.HasPrefix(a.Name, "SRUN") || strings.Contains(strings.ToUpper(a.Name), "LOG") || strings.Contains(strings.ToUpper(a.Name), "OUT") || readAnywhere(c, a.Name) {
			continue
		}
		w := a.Value
		w.Pos = a.Pos
		look(w)
	}
})

// fileCommand are commands whose arguments are paths; programs such as submitit
// read %j in theirs themselves.
var fileCommand = set("source . cd mkdir cp mv cat ls rm pushd touch ln test [")

var pathPattern = lazyre.New(`^[/~]\S*/[^/]*%[uj]`)
