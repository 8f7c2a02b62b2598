package e2e

import (
	"strings"
	"testing"
)

// TestLintCluster compares scripts with what a real sinfo says.
func TestLintCluster(t *testing.T) {
	c := slurm(t)
	for src, want := range map[string]string{
		"#SBATCH -p nowhere":                          "There is no partition nowhere",
		"#SBATCH --gres=gpu:8":                        "8 GPUs per node are asked for; the biggest node has 2",
		"#SBATCH --gres=tpu:1":                        "There is no GRES named tpu",
		"#SBATCH --mem=900G":                          "MiB of memory are asked for",
		"#SBATCH -N 9":                                "9 nodes are asked for; the partition has 4",
		"#SBATCH -c 64":                               "64 CPUs per node are asked for",
		"#SBATCH -N 2 --gres=gpu:a100:2 --mem=1G -c2": "",
	} {
		cmd := c.Command(t.Context(), program, "lint", "--cluster", "--format=github", "-")
		cmd.Stdin = strings.NewReader("#!/bin/bash\n" + src + "\nsrun hostname\n")
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code > 1 {
			t.Fatalf("%s: %v %s", src, err, out)
		}
		if got := strings.Contains(string(out), "cluster-request"); got != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %s, want %q", src, out, want)
		}
	}
}
