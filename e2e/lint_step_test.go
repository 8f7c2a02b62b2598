package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/collect/script"
)

// TestStepTasks compares how many tasks srun really starts, and on how many
// nodes, with what the parser says: what a step inherits from the job is subtle.
func TestStepTasks(t *testing.T) {
	c := slurm(t)
	for _, head := range []string{"-N2 --ntasks-per-node=2", "-N2 -n4", "-N2", "-n2", "-n4 --ntasks-per-node=2"} {
		for _, step := range []string{"", "-N2", "-n2", "-n1", "--ntasks-per-node=1", "-N2 --ntasks-per-node=1", "-N2 -n2 --ntasks-per-node=1"} {
			t.Run(head+" srun "+step, func(t *testing.T) {
				t.Parallel()
				src := "#!/bin/bash\n#SBATCH " + head + "\nsrun " + step + " bash -c 'echo task $SLURMD_NODENAME'\n"
				job, err := c.Run(t.Context(), src)
				if err != nil {
					t.Fatal(err)
				}
				nodes := map[string]bool{}
				tasks := 0
				for _, l := range strings.Split(job.Output, "\n") {
					if n, ok := strings.CutPrefix(l, "task "); ok {
						nodes[n] = true
						tasks++
					}
				}
				s := script.Parse("x", []byte(src), script.Options{}).Steps[0]
				got, want := fmt.Sprintf("%d tasks on %d nodes", s.EffTasks, s.EffNodes), fmt.Sprintf("%d tasks on %d nodes", tasks, len(nodes))
				if s.EffNodes == 0 { // the header leaves the number of nodes to Slurm
					got, want = fmt.Sprint(s.EffTasks, " tasks"), fmt.Sprint(tasks, " tasks")
				}
				if s.EffTasks == 0 && strings.Contains(job.Output, "Ignoring --ntasks-per-node") {
					return // later releases honour it: the parser leaves it open
				}
				if tasks > 0 && got != want {
					t.Errorf("the parser says %s, Slurm ran %s:\n%s", got, want, job.Output)
				}
			})
		}
	}
}
