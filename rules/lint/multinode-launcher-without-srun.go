package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("multinode-launcher-without-srun", func(c *Ctx) {
	s, r := c.S, &c.S.Request
	if !c.submitted() || r.EffectiveNodes < 2 || s.HetGroups > 0 || s.CallsSbatch {
		return
	}
	if r.NodesMax > 0 && r.Nodes == 1 && r.EffectiveNodes == 1 {
		return
	}
	for i := range s.Steps {
		if s.Steps[i].Tool != "srun" {
			return // mpirun, ssh, pdsh and the like reach the other nodes
		}
	}
	other := false
	c.cmds(func(x *fact.ScriptCmd) {
		if len(x.Words) > 1 && !envHook.MatchString(x.Words[1].Text) && !plainText(c, x.Words[1]) {
			other = true // text that may hold srun
		}
	}, "eval")
	c.cmds(func(x *fact.ScriptCmd) { other = other || !x.Subst }, "parallel", "ray", "horovodrun", "dask", "dask-mpi", "sbcast", "xargs")
	if other || c.says("hostfile", "host_file", "ray start", "ray.init", "--launcher slurm", "--launcher=slurm", "submitit", "srun_args=") {
		return
	}
	var first *fact.Launch
	plain := false
	var before []int // commands of steps that only prepare
	for i := range s.Launches {
		l := &s.Launches[i]
		if l.Dead {
			continue
		}
		if c.prepares(l) {
			before = append(before, s.Steps[l.Step].Cmd)
			continue
		}
		if l.Step >= 0 || l.Kind == fact.LaunchWrapper || l.Kind == fact.LaunchRay || l.Kind == fact.LaunchLightning || l.Kind == fact.LaunchColossal {
			return
		}
		if given(l.Hostfile) || c.S.Commands[l.Cmd].Subst || l.Guessed {
			return
		}
		if distributed(l) && first == nil {
			first = l
		}
	}
	if len(before) > 0 {
		if first == nil || first.Cond > 0 {
			return
		}
		if n, ok := num(first.Nnodes); !ok || n < 2 {
			return // it may be meant for one node
		}
	}
	if first == nil {
		// A plain program: only when the job has tasks for it and a rendezvous is set up.
		tasks := max(r.Tasks, r.TasksPerNode*r.EffectiveNodes)
		if c.sourcedUnknown() || !r.GPUAsked {
			return
		}
		plain = tasks < 2 || !c.assigned("MASTER_ADDR") && !c.assigned("WORLD_SIZE")
		for i := range s.Launches {
			l := &s.Launches[i]
			if l.Dead || l.Kind != fact.LaunchPython || !strings.HasSuffix(l.Program, ".py") {
				continue
			}
			if plain && !trainName.MatchString(l.Program) {
				return // it may submit, serve or reach the other nodes by itself
			}
			if first == nil {
				first = l
			}
			for _, w := range l.Args {
				if w.Text == "hydra/launcher=torchrun" && !l.Open {
					plain = false // it is a launcher, of this node
				}
			}
		}
	}
	if first == nil || usesSrun(c, before...) {
		return
	}
	h := c.Hit(first.Pos, "launcher", show(first), "nodes", itoa(r.EffectiveNodes))
	if plain {
		h.Sev(diag.Warning).Certainty = diag.Likely
	}
})

// prepares reports a step in the foreground that runs a program which by its
// name is no training: it has ended before the next command begins.
func (c *Ctx) prepares(l *fact.Launch) bool {
	if l.Step < 0 || l.Kind != fact.LaunchPython || l.Cond > 0 || !strings.HasSuffix(l.Program, ".py") || trainName.MatchString(l.Program) {
		return false
	}
	x := &c.S.Commands[c.S.Steps[l.Step].Cmd]
	return !x.Back && x.Cond == 0 && x.Loop == 0
}

// trainName are names of programs that train.
var trainName = lazyre.New(`(?i)train|main|finetune|fine_tune|ddp|fsdp|benchmark|distributed`)

// envHook is what eval runs to set up an environment.
var envHook = lazyre.New(`conda|mamba|pyenv|direnv|ssh-agent|modulecmd|poetry|brew|uv `)

// plainText reports a text whose command is known, and is none that reaches
// other nodes: what is not known of it comes later.
func plainText(c *Ctx, w fact.Word) bool {
	f := strings.Fields(w.Val)
	return len(f) > 0 && len(c.S.HolesOf(f[0])) == 0 && !reaches.MatchString(w.Text)
}

// reaches are words of commands that start something on other nodes.
var reaches = lazyre.New(`\b(?:srun|ssh|pdsh|clush|mpi\w*|parallel|SRUN\w*)\b`)
