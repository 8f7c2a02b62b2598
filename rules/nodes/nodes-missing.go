package nodes

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Slurm's word that a node failed proves it. A probe that ended or never spoke
// may have other reasons; that the program is not there at all is one of ours.
var _ = Checks.Add("nodes-missing", func(b *fact.Bundle, r *diag.Reporter) {
	for _, m := range b.Nodes.Missing {
		why := m.Why
		if why == "" {
			why = "-"
		}
		a := diag.Args{"nodes": m.Nodes, "node": m.Nodes, "odd": m.Nodes, "count": itoa(m.Count), "total": itoa(b.Nodes.Total), "reason": why, "variant": m.Kind}
		ev := fact.Evidence{Source: fact.SrcCommand, Path: "srun", Node: m.Nodes, Excerpt: m.Why}
		where := diag.Where{Node: m.Nodes}
		program, python := startFault(m.Why)
		switch {
		case program != "" && !strings.HasPrefix(path.Base(program), "ncclinic"):
			a["variant"], a["program"], a["program_word"], a["path_word"] = "prefix", program, fact.ShellWord(program), fact.ShellWord(program)
			if python {
				a["variant"] = "python"
			}
			delete(a, "node")
			if m.Count < b.Nodes.Total {
				a["node"] = m.Nodes
			}
			r.Hit("env-program-missing", diag.Proven, a, ev).At(where)
		case strings.Contains(m.Why, "No such file or directory") || strings.Contains(m.Why, "execve"):
			a["variant"] = "program"
			delete(a, "odd")
			r.Hit("nodes-missing", diag.Proven, a, ev).As(diag.Context).Sev(diag.Note).Need("ncclinic check --nodes --bcast=/tmp/ncclinic").At(where)
		case b.Nodes.Reported == 0:
			r.Hit("nodes-missing", diag.Possible, a, ev).As(diag.Context).Sev(diag.Note).Need("sinfo -R").Need("scontrol show node " + m.Nodes).At(where)
		case m.Kind == fact.FaultNodeFailed:
			r.Hit("node-failed", diag.Proven, a, ev).At(where)
		default:
			r.Hit("node-failed", diag.Likely, a, ev).Need("scontrol show node " + m.Nodes).At(where)
		}
	}
})

var (
	startedBy  = lazyre.New(`execve\(\): (\S+): (?:No such file or directory|Permission denied)`)
	noPython   = lazyre.New(`--python:? (/\S+|\S+): `)
	notStarted = lazyre.New(`(?:failed to (?:run command|execute)|\benv:) [‘'"]?([^\s‘’'"]+)[’'"]?: |: (?:line )?\d+: (?:exec: )?(\S+): (?:No such file or directory|(?:command )?not found|Permission denied)$`)
)

// startFault returns the program that kept a probe from starting: that of
// --prefix, which slurmstepd or a wrapper names, or the interpreter of --python.
func startFault(why string) (program string, python bool) {
	if m := noPython.FindStringSubmatch(why); m != nil {
		return m[1], true
	}
	if m := startedBy.FindStringSubmatch(why); m != nil {
		return m[1], false
	}
	if m := notStarted.FindStringSubmatch(why); m != nil {
		return m[1] + m[2], false
	}
	return "", false
}
