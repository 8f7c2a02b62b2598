package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/near"
)

var _ = Checks.Add("undefined-var", func(c *Ctx) {
	s := c.S
	if !s.Parsed || s.Syntax != nil || c.sourcedUnknown() || s.Generator || s.Opt("export") != nil {
		return // a script that says what it takes over gets it from sbatch --export
	}
	seen := map[string]bool{}
	for _, r := range s.Reads {
		if r.Default || r.Tested {
			seen[r.Name] = true
		}
	}
	for _, r := range s.Reads {
		if r.Set || r.Dead || seen[r.Name] || r.File != "" || r.Arith || c.assigned(r.Name) || r.Func != "" {
			continue
		}
		if !localName(r.Name) {
			// Names in capitals may come with the submission, unless they are a slip.
			a := c.meant(r.Name)
			if a == nil && r.Cmd != "" {
				a = c.otherCase(r.Name)
			}
			if a != nil && !r.Maybe {
				seen[r.Name] = true
				c.Hit(r.Pos, "variant", "near", "name", "$"+r.Name, "near", a.Name, "line", itoa(a.Line))
			}
			continue
		}
		seen[r.Name] = true
		c.Hit(r.Pos, "name", "$"+r.Name)
	}
})

// meant is the assignment of the variable that a name in capitals is one slip
// away from, when nothing else reads that one by a name of its own: $MASTER_ADR.
func (c *Ctx) meant(name string) *fact.Assign {
	if len(name) < 6 || knownEnv[name] || slurmVars[name] || strings.HasPrefix(name, "SLURM") || name[0] == '_' {
		return nil
	}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if len(a.Name) < 6 || a.Unset || a.Dead || a.Prefix || a.Step >= 0 || a.Func != "" || near.Within(a.Name, name, 1) != 1 || sibling(a.Name, name) {
			continue
		}
		return a
	}
	return nil
}

// otherCase is the assignment of the variable that has the same letters as a
// name with capitals, when none takes its value from that name: seed=$SEED.
func (c *Ctx) otherCase(name string) *fact.Assign {
	if len(name) < 4 || knownEnv[name] || slurmVars[name] {
		return nil
	}
	var hit *fact.Assign
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if !strings.EqualFold(a.Name, name) {
			continue
		}
		if a.Unset || a.Dead || a.Prefix || a.Step >= 0 || a.Func != "" || a.Bare {
			return nil
		}
		for _, h := range c.S.HolesOf(a.Value.Val) {
			if strings.Contains(h.Name+h.Text, name) {
				return nil
			}
		}
		if hit == nil {
			hit = a
		}
	}
	return hit
}

// sibling reports names that differ in a digit or in an S at the end: people
// have NODE and NODES, DIR1 and DIR2.
func sibling(a, b string) bool {
	if strings.TrimSuffix(a, "S") == strings.TrimSuffix(b, "S") || strings.TrimSuffix(a, "_") == strings.TrimSuffix(b, "_") {
		return true
	}
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, s)
	}
	return digits(a) == digits(b)
}
