package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Env is what a client of the cluster needs in its environment, to be put
// after os.Environ().
func (c *Cluster) Env() []string {
	return []string{"SLURM_CONF=" + c.path("slurm.conf")}
}

// Command prepares a command that talks to the cluster: its environment is
// this process's without any Slurm variable, and Env. It runs in the work
// folder, and is ended with everything else by Stop.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if p := find(name); p != "" {
		name = p
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.path("work")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SLURM") && !strings.HasPrefix(kv, "SBATCH_") && !strings.HasPrefix(kv, "SRUN_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, c.Env()...), c.mark())
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Job is the end of a batch job.
type Job struct {
	ID       string
	State    string // COMPLETED, FAILED, TIMEOUT, CANCELLED, …
	ExitCode string // "1:0": exit status and signal
	Output   string // standard output and standard error of the batch shell and its steps
}

// Submit hands a batch script to sbatch and returns the job's number. More
// arguments go to sbatch before the script. Output goes to work/slurm-ID.out,
// unless the script or the arguments say otherwise.
func (c *Cluster) Submit(ctx context.Context, script string, args ...string) (string, error) {
	f, err := os.CreateTemp(c.path("work"), "job-*.sbatch")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.WriteString(script); err != nil {
		return "", err
	}
	cmd := c.Command(ctx, "sbatch", append(append([]string{"--parsable"}, args...), f.Name())...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("sbatch: %w: %s", err, errOut.String())
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	return id, nil
}

// Wait polls until the job has ended and returns how, with its output.
func (c *Cluster) Wait(ctx context.Context, id string) (Job, error) {
	for {
		out, err := c.Command(ctx, "scontrol", "--oneliner", "show", "job", id).CombinedOutput()
		if err != nil {
			return Job{}, fmt.Errorf("scontrol show job %s: %w: %s", id, err, out)
		}
		j := Job{ID: id}
		var stdout string
		for _, f := range strings.Fields(string(out)) {
			k, v, _ := strings.Cut(f, "=")
			switch k {
			case "JobState":
				j.State = v
			case "ExitCode":
				j.ExitCode = v
			case "StdOut":
				stdout = v
			}
		}
		switch j.State {
		case "PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED":
		default:
			b, err := os.ReadFile(stdout)
			if err != nil && !os.IsNotExist(err) {
				return j, err
			}
			j.Output = string(b)
			return j, nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return j, fmt.Errorf("job %s is %s: %w", id, j.State, err)
		}
	}
}

// Run submits a batch script and waits for its end.
func (c *Cluster) Run(ctx context.Context, script string, args ...string) (Job, error) {
	id, err := c.Submit(ctx, script, args...)
	if err != nil {
		return Job{}, err
	}
	return c.Wait(ctx, id)
}
