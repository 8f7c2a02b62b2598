package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/source"
)

// JobNodes asks squeue for the nodes of a running job, in Slurm's order.
func JobNodes(ctx context.Context, m *source.Machine, job string) ([]string, error) {
	if !jobID.MatchString(job) {
		return nil, fmt.Errorf("%q is not a job id", fact.Clip(job, 40))
	}
	p, err := m.Runner.LookPath("squeue")
	if err != nil {
		return nil, errors.New("squeue is not on PATH")
	}
	r, err := m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--noheader", "--jobs=" + job, "--format=%T %N"}, Timeout: offerLimit})
	switch {
	case err != nil:
		return nil, fmt.Errorf("squeue: %w", err)
	case r.TimedOut:
		return nil, errors.New("squeue did not answer in time")
	case r.Code != 0:
		return nil, failed("squeue", r.Stderr)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(r.Stdout)), "\n")
	state, list, _ := strings.Cut(line, " ")
	if state == "" {
		return nil, fmt.Errorf("job %s is not in the queue", job)
	}
	if state != "RUNNING" {
		return nil, fmt.Errorf("job %s is %s, not RUNNING", job, fact.Clip(state, 30))
	}
	names, err := hostlist.Expand(strings.TrimSpace(list))
	if err == nil && len(names) == 0 {
		err = errors.New("no nodes")
	}
	if err != nil {
		return nil, fmt.Errorf("nodes of job %s: %w", job, err)
	}
	return names, nil
}
