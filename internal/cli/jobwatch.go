package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// maxInterval bounds how far polling slows down.
const maxInterval = 5 * time.Minute

// watchJob waits for a job to end, or to be silent, and then explains it. Each
// round asks the controller once; while nothing changes, rounds get longer.
func (a *app) watchJob(ctx context.Context, m *source.Machine, id slurmjob.ID, o logs.Options, f jobFlags) error {
	ans, err := slurmjob.Ask(ctx, m, id)
	if err != nil {
		return a.noJob(id, ans, err)
	}
	j := ans.Job
	if j.Array != "" && id.Task == "" {
		return usagef("%s", fmt.Sprintf(a.tr("--watch follows one task of an array, such as %s", "--watch 只跟踪作业数组的一个任务，例如 %s"), j.ID))
	}
	var s *fact.Script
	if ans.Script != nil {
		s = script.Parse(scriptName(j), ans.Script, script.Options{})
	}
	state, wait, failures := j.State.Or(""), f.interval, 0
	a.watchSay(j, state)
	for fact.Phase(state) != fact.JobEnded {
		if fact.Phase(state) == fact.JobRuns && state != "SUSPENDED" {
			j.Outputs = nil // steps open new files
			slurmjob.Outputs(m, j, s)
			if d, last, ok := slurmjob.Silent(m, j, time.Now()); ok && d >= f.silence {
				return a.job(ctx, m, id, o, d, last)
			}
		}
		if err := sleepCtx(ctx, wait); err != nil {
			return err
		}
		now, err := slurmjob.Poll(ctx, m, id)
		switch {
		case errors.Is(err, slurmjob.ErrUnknown): // ended, and forgotten already
			return a.job(ctx, m, id, o, 0, "")
		case err != nil:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// A controller that restarts is away for a while.
			if failures++; failures >= 10 {
				return usagef("%v", err)
			}
			wait = min(wait*2, maxInterval)
			continue
		}
		failures = 0
		if next := now.State.Or(""); next != state {
			state, wait = next, f.interval
			a.watchSay(now, state)
			now.Steps, now.Script = j.Steps, j.Script
			j = now
			continue
		}
		wait = min(wait+wait/4, max(maxInterval, f.interval))
		if left := f.silence / 2; wait > left && left >= f.interval {
			wait = left // not so long that silence is noticed late
		}
	}
	return a.job(ctx, m, id, o, 0, "")
}

// watchSay tells a person who waits what the job does.
func (a *app) watchSay(j *fact.Job, state string) {
	line := fmt.Sprintf("%s  %s %s", time.Now().Format("15:04:05"), j.ID, state)
	if r, ok := j.Reason.Get(); ok && fact.Phase(state) == fact.JobWaits {
		line += " (" + r + ")"
	}
	if n, ok := j.Nodes.Get(); ok && fact.Phase(state) == fact.JobRuns {
		line += " " + fact.Clip(n, 200)
	}
	fmt.Fprintln(a.Err, line)
}

func sleepCtx(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
