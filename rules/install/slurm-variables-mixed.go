package install

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var tresCPU = lazyre.New(`(?:^|,)cpu[=:]([0-9]+)`)

var _ = Checks.Add("slurm-variables-mixed", func(b *fact.Bundle, r *diag.Reporter) {
	a := args(b)
	var set []string
	var ev []fact.Evidence
	for _, n := range []string{"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE"} {
		if v, ok := b.Lookup(n); ok {
			set = append(set, n)
			ev = append(ev, fact.EnvVarAt(n, v))
		}
	}
	if len(set) > 1 {
		a["names"], a["list"], a["variant"] = strings.Join(set, " "), strings.Join(set, ", "), "memory"
		r.Hit("env-inherited-from-outer-job", diag.Proven, a, ev...)
		return
	}
	cpus, ok1 := b.Lookup("SLURM_CPUS_PER_TASK")
	tres, ok2 := b.Lookup("SLURM_TRES_PER_TASK")
	m := tresCPU.FindStringSubmatch(tres)
	if !ok1 || !ok2 || m == nil {
		return
	}
	x, err1 := strconv.Atoi(cpus)
	y, err2 := strconv.Atoi(m[1])
	if err1 != nil || err2 != nil || x == y {
		return
	}
	a["names"] = "SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK"
	a["list"] = "SLURM_CPUS_PER_TASK=" + strconv.Itoa(x) + ", SLURM_TRES_PER_TASK=cpu:" + strconv.Itoa(y)
	a["variant"] = "cpus"
	r.Hit("env-inherited-from-outer-job", diag.Proven, a, fact.EnvVarAt("SLURM_CPUS_PER_TASK", cpus), fact.EnvVarAt("SLURM_TRES_PER_TASK", tres))
})
