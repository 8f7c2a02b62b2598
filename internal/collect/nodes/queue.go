package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/source"
)

// QueueError says that an allocation of our own did not start.
type QueueError struct {
	Job    string
	Reason string        // of squeue, "" when it gave none
	Wait   time.Duration // how long was waited
	Never  bool          // waiting longer would not help
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("no allocation within %s: job %s waits: %s", e.Wait, e.Job, e.Reason)
}

// firstLook is how long an allocation may take before the queue is asked why:
// for some reasons nothing will ever come of it.
const firstLook = 3 * time.Second

// queue waits for an allocation of our own. The scheduler is asked twice at most,
// however long it takes.
func (c *step) queue(ctx context.Context, ended <-chan struct{}, began time.Time) bool {
	running := func(p Progress) bool { return p.Reported > 0 || c.heard.allocated() }
	within := func(d time.Duration) bool {
		return c.until(ctx, ended, PhaseQueue, func() time.Time { return began.Add(min(d, c.o.Wait)) }, running)
	}
	over := func() bool { // nobody waits any more
		select {
		case <-ended:
			return true
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
	if within(firstLook) {
		return true
	}
	if over() {
		return false
	}
	job, reason := c.reason(ctx)
	if _, never := fact.NeverStarts(reason); never {
		c.queued = &QueueError{Job: job, Reason: reason, Wait: time.Since(began).Round(time.Second), Never: true}
		return false
	}
	if within(c.o.Wait) {
		return true
	}
	if !over() && job != "" {
		_, reason = c.reason(ctx)
		c.queued = &QueueError{Job: job, Reason: reason, Wait: c.o.Wait}
	}
	return false
}

// reason asks why our job waits.
func (c *step) reason(ctx context.Context) (job, reason string) {
	c.heard.mu.Lock()
	job = c.heard.job
	c.heard.mu.Unlock()
	p, err := c.m.Runner.LookPath("squeue")
	if err != nil || job == "" {
		return job, ""
	}
	r, err := c.m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--noheader", "--jobs=" + job, "--format=%r"}, Timeout: 10 * time.Second, MaxOut: 4096})
	if err != nil || r.Code != 0 {
		return job, ""
	}
	first, _, _ := strings.Cut(string(r.Stdout), "\n")
	return job, clean(first)
}

// expect takes the nodes that srun names for those of the step, when no probe
// could tell: count is how many there are, 0 when that is not known.
func (m *Merger) expect(said map[string]fact.NodeFault, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.expected != nil || m.reported > 0 || len(said) == 0 || count > 0 && len(said) != count {
		return
	}
	names := make([]string, 0, len(said))
	for n := range said {
		names = append(names, n)
	}
	slices.Sort(names)
	if all, err := hostlist.Expand(hostlist.Fold(names)); err == nil && validNames(all) {
		m.expected = all
	}
}
