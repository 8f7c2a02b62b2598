package diag

import "testing"

func TestConcrete(t *testing.T) {
	all := Known{Job: "4711", Cluster: "alpha", Script: "'my run.sbatch'"}
	running := all
	running.Running = true
	for _, c := range []struct {
		k         Known
		cmd, want string
	}{
		{Known{}, "sacct -j JOBID", "sacct -j JOBID"},
		{Known{Job: "4711_3"}, "sacct -j JOBID", "sacct -j 4711_3"},
		{all, "sacct -j $SLURM_JOB_ID --format=JobID,State", "sacct -M alpha -j 4711 --format=JobID,State"},
		{all, "ncclinic job JOBID", "ncclinic job -M alpha 4711"},
		{running, "srun --overlap --jobid=$SLURM_JOB_ID bash -c 'hostname'", "srun --overlap --jobid=4711 bash -c 'hostname'"},
		{all, "srun --overlap --jobid=$SLURM_JOB_ID bash -c 'hostname'", "srun --overlap --jobid=$SLURM_JOB_ID bash -c 'hostname'"}, // the next one
		// What goes into a script speaks of the next job.
		{all, "torchrun --rdzv-id=$SLURM_JOB_ID train.py", "torchrun --rdzv-id=$SLURM_JOB_ID train.py"},
		{all, "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)", "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)"},
		{all, `sed -i 's/\r$//' job.sbatch`, `sed -i 's/\r$//' 'my run.sbatch'`},
		{all, "sbatch --output=job-%j.out job.sbatch", "sbatch --output=job-%j.out 'my run.sbatch'"},
		{Known{Job: "1"}, "sbatch job.sbatch", "sbatch job.sbatch"},
	} {
		rep := Report{Findings: []Finding{{Needs: []string{c.cmd, "the log of rank JOBID"}, Fixes: []Fix{{Commands: []string{c.cmd}}}}}}
		before := rep.Findings[0].Fixes[0].Commands
		Concrete(&rep, c.k)
		if f := rep.Findings[0]; f.Needs[0] != c.want || f.Fixes[0].Commands[0] != c.want {
			t.Errorf("%q with %+v: need %q, fix %q, want %q", c.cmd, c.k, f.Needs[0], f.Fixes[0].Commands[0], c.want)
		} else if f.Needs[1] != "the log of rank JOBID" {
			t.Errorf("words were changed: %q", f.Needs[1])
		} else if before[0] != c.cmd {
			t.Error("the commands of the knowledge base were changed")
		}
	}
}

func TestConcreteNodeAndPort(t *testing.T) {
	on := func(nodes ...string) []Where {
		var ws []Where
		for _, n := range nodes {
			ws = append(ws, Where{Node: n})
		}
		return ws
	}
	for _, c := range []struct {
		where     []Where
		port      string
		cmd, want string
	}{
		{on("gpu07"), "29500", "srun -w NODE ss -ltnp | grep PORT", "srun -w gpu07 ss -ltnp | grep :29500"},
		{on("gpu07", "gpu07"), "", "#SBATCH --exclude=NODE", "#SBATCH --exclude=gpu07"},
		{on("gpu07", "gpu08"), "x", "srun -w NODE ss -ltnp | grep PORT", "srun -w NODE ss -ltnp | grep PORT"},
		{on("a;b"), "", "squeue -w NODE", "squeue -w NODE"},
		{nil, "", "export NODE=1", "export NODE=1"},
		{on("n1"), "", "export SLURM_NODEID=$NODE_RANK", "export SLURM_NODEID=$NODE_RANK"},
	} {
		rep := Report{Findings: []Finding{{Where: c.where, Args: Args{"port": c.port}, Needs: []string{c.cmd}}}}
		Concrete(&rep, Known{})
		if got := rep.Findings[0].Needs[0]; got != c.want {
			t.Errorf("%q on %v: %q, want %q", c.cmd, c.where, got, c.want)
		}
	}
}
