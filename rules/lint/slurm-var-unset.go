package lint

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("slurm-var-unset", func(c *Ctx) {
	if !c.submitted() || c.S.HetGroups > 0 {
		return
	}
	seen := map[string]bool{}
	tested := map[string]bool{}
	for _, r := range c.S.Reads {
		if _, ok := slurmVarOption[r.Name]; ok && (r.Default || r.Tested && !gives(c, r.Line)) {
			tested[r.Name] = true
		}
	}
	for _, r := range c.S.Reads {
		opts, ok := slurmVarOption[r.Name]
		if !ok || r.Default || r.Set || r.Dead || r.Cmd == "echo" || r.Cmd == "printf" || seen[r.Name] || c.assigned(r.Name) || tested[r.Name] || r.File != "" {
			continue
		}
		has := false
		for _, o := range opts {
			has = has || c.S.Opt(o) != nil
			if r.Step >= 0 && c.S.Steps[r.Step].Opt(o) != nil {
				has = true
			}
		}
		if r.Name == "SLURM_NTASKS" || r.Name == "SLURM_NPROCS" {
			has = has || r.Step >= 0
		}
		if has || r.Step >= 0 && c.S.Steps[r.Step].Unknown {
			continue
		}
		seen[r.Name] = true
		h := c.Hit(r.Pos, "name", r.Name, "option", opts[0])
		q := &c.S.Request
		// A header that gives tasks per node but no nodes gets its size elsewhere,
		// and so does one without a time limit for a program that wants GPUs.
		if !q.GPUAsked && (q.Nodes == 0 && q.Tasks == 0 || q.Seconds == 0 && c.gpuSign()) || (r.Name == "SLURM_NTASKS" || r.Name == "SLURM_NPROCS") && !c.counts(r.Name) {
			h.Sev(diag.Note)
			h.Args["variant"] = "perhaps"
		}
	}
})

// counts reports whether a launcher takes a variable of the batch shell alone
// for a number of nodes or processes: without a value it refuses to start.
func (c *Ctx) counts(name string) bool {
	found := false
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		for _, w := range []fact.Word{l.Nnodes, l.Nproc} {
			if hs := c.S.HolesOf(w.Val); len(hs) == 1 && len([]rune(w.Val)) == 1 && hs[0].Name == name && !hs[0].Step && !hs[0].Def {
				found = found || elastic(l)
			}
		}
	})
	return found
}

// gives reports whether the script gives up in the lines after a test.
func gives(c *Ctx, line int) bool {
	for i := range c.S.Commands {
		if x := &c.S.Commands[i]; x.Name == "exit" && x.Cond > 0 && x.Line >= line && x.Line <= line+4 {
			return true
		}
	}
	return false
}

// slurmVarOption says which options make Slurm set a variable in the batch
// shell (sbatch(1) OUTPUT ENVIRONMENT VARIABLES; tried on 22.05).
var slurmVarOption = map[string][]string{
	"SLURM_GPUS":            {"gpus"},
	"SLURM_GPUS_PER_NODE":   {"gpus-per-node"},
	"SLURM_GPUS_PER_TASK":   {"gpus-per-task"},
	"SLURM_GPUS_PER_SOCKET": {"gpus-per-socket"},
	"SLURM_CPUS_PER_TASK":   {"cpus-per-task"},
	"SLURM_CPUS_PER_GPU":    {"cpus-per-gpu"},
	"SLURM_NTASKS_PER_NODE": {"ntasks-per-node"},
	"SLURM_NTASKS_PER_GPU":  {"ntasks-per-gpu"},
	"SLURM_NTASKS_PER_CORE": {"ntasks-per-core"},
	"SLURM_MEM_PER_GPU":     {"mem-per-gpu"},
	"SLURM_NTASKS":          {"ntasks", "ntasks-per-node", "ntasks-per-gpu", "gpus-per-task", "ntasks-per-socket", "ntasks-per-core"},
	"SLURM_NPROCS":          {"ntasks", "ntasks-per-node", "ntasks-per-gpu", "gpus-per-task", "ntasks-per-socket", "ntasks-per-core"},
}
