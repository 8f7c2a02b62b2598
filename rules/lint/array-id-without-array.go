package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("array-id-without-array", func(c *Ctx) {
	if !c.submitted() || c.S.Opt("array") != nil {
		return
	}
	q := &c.S.Request
	if strings.Contains(q.Output+q.Error, "%a") || strings.Contains(q.Output+q.Error, "%A") || q.Seconds == 0 && q.Nodes == 0 && !q.GPUAsked {
		return // --array stands on the command line, with the rest
	}
	if p := c.branchOfEach(); p.Line > 0 {
		c.Hit(p, "variant", "branches")
		return
	}
	n := 0
	for _, r := range c.S.Reads {
		if (r.Name == "SLURM_ARRAY_TASK_ID" || r.Name == "SLURM_ARRAY_JOB_ID") && (r.Default || r.Tested || r.Cond > 0) {
			return
		}
	}
	for _, r := range c.S.Reads {
		if r.Name == "SLURM_ARRAY_TASK_ID" && !r.Set && !r.Dead && n == 0 && !c.assigned(r.Name) {
			n++
			c.Hit(r.Pos)
		}
	}
})

// branchOfEach returns the first place at which the index of an array is
// compared with a number, when the script does nothing but in such branches.
func (c *Ctx) branchOfEach() (first fact.Pos) {
	n := 0
	for _, r := range c.S.Reads {
		if r.Name != "SLURM_ARRAY_TASK_ID" {
			continue
		}
		if !r.Tested || r.Default || r.Dead || r.Step >= 0 || r.Cmd != "[" && r.Cmd != "test" {
			return fact.Pos{}
		}
		n++
		if first.Line == 0 {
			first = r.Pos
		}
	}
	if n == 0 {
		return fact.Pos{}
	}
	equal := 0
	c.cmds(func(x *fact.ScriptCmd) {
		if len(x.Words) > 3 && x.Neg && strings.Contains(x.Words[1].Text, "SLURM_ARRAY_TASK_ID") && (x.Words[2].Text == "-eq" || strings.Trim(x.Words[2].Text, "=") == "") && x.Words[3].Known && x.Words[3].Text != "" {
			equal++
		}
	}, "[", "test")
	for i := 1; i <= c.S.NumLines; i++ {
		if l := strings.TrimSpace(c.S.Line(i)); l == "else" || strings.HasPrefix(l, "else ") || strings.Contains(l, "; else") {
			return fact.Pos{} // what runs without an index
		}
	}
	branches := false
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		branches = branches || training(l)
		if training(l) && l.Cond == 0 {
			equal = -1
		}
	})
	if equal < n || !branches {
		return fact.Pos{}
	}
	return first
}
