package cli

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Ports that --env chooses from: above what services use, below what kernels
// hand out for outgoing connections (32768 by default).
const (
	firstPort = 15000
	ports     = 15000
)

// rankEnv derives the variables of env:// from those of a Slurm step. Variables
// that are set stay as they are; what Slurm does not tell is not made up.
func rankEnv(m *source.Machine) []fact.EnvVar {
	var out []fact.EnvVar
	set := func(name, value string) {
		if _, has := m.Env[name]; !has && value != "" {
			out = append(out, fact.EnvVar{Name: name, Value: value})
		}
	}
	first := func(names ...string) string {
		for _, n := range names {
			if v := m.Env[n]; v != "" {
				return v
			}
		}
		return ""
	}
	rank := m.Env["SLURM_PROCID"]
	if _, err := strconv.Atoi(rank); err != nil {
		return nil
	}
	set("RANK", rank)
	set("WORLD_SIZE", first("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"))
	set("LOCAL_RANK", m.Env["SLURM_LOCALID"])
	if node, err := strconv.Atoi(m.Env["SLURM_NODEID"]); err == nil {
		if n, ok := tasksOn(first("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"), node); ok {
			set("LOCAL_WORLD_SIZE", strconv.Itoa(n))
		}
	}
	// Rank 0 runs on the first node of the step, unless the layout is arbitrary:
	// then the list of nodes does not tell.
	if d := m.Env["SLURM_DISTRIBUTION"]; !strings.HasPrefix(d, "arbitrary") {
		if all, err := hostlist.Expand(first("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")); err == nil && len(all) > 0 {
			set("MASTER_ADDR", all[0])
		}
	}
	if job, err := strconv.ParseUint(first("SLURM_JOB_ID", "SLURM_JOBID"), 10, 32); err == nil {
		step, _ := strconv.ParseUint(m.Env["SLURM_STEP_ID"], 10, 32)
		set("MASTER_PORT", strconv.FormatUint(firstPort+(job*7+step)%ports, 10))
	}
	return out
}

// tasksOn returns how many tasks a node (from 0) has, of a list such as "2(x3),1".
func tasksOn(list string, node int) (int, bool) {
	for _, it := range strings.Split(list, ",") {
		num, times, many := strings.Cut(it, "(x")
		n, err := strconv.Atoi(num)
		k := 1
		if many {
			k, _ = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		if err != nil || n < 0 || k <= 0 || node < 0 {
			return 0, false
		}
		if node < k {
			return n, true
		}
		node -= k
	}
	return 0, false
}
