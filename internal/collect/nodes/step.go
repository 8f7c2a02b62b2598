package nodes

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Options describe a step over all nodes.
type Options struct {
	Exe       string   // this program, as the nodes see it
	ProbeArgs []string // what the probe is started with, besides the nonce
	Prefix    []string // program that starts the probe: apptainer exec X.sif
	Bcast     string   // copy the program there on each node first; "" for no

	JobID string   // of the job whose nodes are looked at; "" makes an allocation of its own
	Nodes []string // names of the nodes by task; nil when not known
	Count int      // how many nodes; 0 when not known

	// AllocArgs are options of srun for an allocation of its own, SrunArgs those of every step.
	AllocArgs []string
	SrunArgs  []string
	Container []string // --container-image=… and the like

	Version string // of Slurm: 22.05.8; "" when not known

	NodeLimit time.Duration // from the start of the step to a node's report
	Wait      time.Duration // for an allocation of its own
	Reach     bool
	Live      bool
	LiveLimit time.Duration
	LiveRanks int // ranks on each node; 0: one for each GPU

	Progress func(Phase, Progress) // called from time to time
}

// Phase of a step.
type Phase string

// Phases of a step.
const (
	PhaseQueue  Phase = "queue"  // waiting for an allocation
	PhaseReport Phase = "report" // nodes report
	PhaseReach  Phase = "reach"  // nodes connect with each other
	PhaseGroup  Phase = "group"  // the process group runs
)

// Nonce is a secret of one run.
func Nonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// SrunArgs returns the arguments of the one srun. Everything that a variable
// of the caller's could say otherwise (SLURM_NTASKS, SLURM_STDOUTMODE,
// SLURM_KILL_BAD_EXIT …) is said outright; what makes the environment of the
// job's steps (SLURM_EXPORT_ENV, GPUs, CPUs) is left as the caller has it.
func (o *Options) srunArgs(nonce string) []string {
	args := []string{"--job-name=" + o.jobName(nonce), "--label", "--input=all", "--output=all", "--error=all", "--ntasks-per-node=1",
		"--distribution=block", "--kill-on-bad-exit=0", "--wait=0", "--no-kill", "--mpi=none"}
	if o.JobID != "" {
		args = append(args, "--jobid="+o.JobID)
		if atLeast(o.Version, 20, 11) {
			args = append(args, "--overlap")
		}
	} else {
		args = append(args, o.AllocArgs...)
	}
	if o.Count > 0 {
		n := strconv.Itoa(o.Count)
		args = append(args, "--nodes="+n, "--ntasks="+n)
	}
	if o.JobID == "" && o.Count == 0 && len(o.Nodes) > 0 {
		n := strconv.Itoa(len(o.Nodes))
		args = append(args, "--nodes="+n, "--ntasks="+n)
	}
	if o.Bcast != "" {
		args = append(args, "--bcast="+o.Bcast)
	}
	args = append(args, o.Container...)
	args = append(args, o.SrunArgs...)
	args = append(args, o.Prefix...)
	args = append(args, o.Exe)
	return append(append(args, o.ProbeArgs...), "--nonce="+nonce)
}

// jobName is that of the step, and of an allocation of its own, which must be
// found by it when srun ends before it says its number.
func (o *Options) jobName(nonce string) string {
	if o.JobID != "" {
		return "ncclinic"
	}
	return "ncclinic-" + nonce[:min(8, len(nonce))]
}

// atLeast compares a version of Slurm; an unknown one counts as a current one.
func atLeast(version string, major, minor int) bool {
	f := strings.SplitN(version, ".", 3)
	if len(f) < 2 {
		return true
	}
	x, err1 := strconv.Atoi(f[0])
	y, err2 := strconv.Atoi(f[1])
	return err1 != nil || err2 != nil || x > major || x == major && y >= minor
}

// Margins after the limits of the probes themselves: messages have a way to go.
const (
	phaseMargin = 7 * time.Second
	endLimit    = 3 * time.Second
)

// Run starts the step and returns what its nodes said. A step that did not
// start at all is an error with srun's words.
func Run(ctx context.Context, m *source.Machine, o Options) (*fact.NodeSet, error) {
	st, ok := m.Runner.(source.Streamer)
	if !ok {
		return nil, errors.New("nothing can be run here")
	}
	srun, err := m.Runner.LookPath("srun")
	if err != nil {
		return nil, errors.New("srun is not on PATH")
	}
	nonce := Nonce()
	c := &step{o: o, m: m, merge: NewMerger(nonce, o.Nodes), wake: make(chan struct{}, 1), heard: newHearsay()}
	c.merge.notify = c.poke
	if o.Count == 0 {
		c.o.Count = len(o.Nodes)
	}
	pr, pw := io.Pipe()
	c.in = pw
	stepCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	var res source.Result
	var runErr error
	go func() {
		defer close(ended)
		out, errs := &lines{each: c.merge.Line, max: 4 * 1024}, &lines{each: c.stderr, max: 4 * 1024}
		res, runErr = st.Stream(stepCtx, source.Cmd{Path: srun, Args: c.o.srunArgs(nonce), Env: stepEnv(m)}, source.Streams{Stdin: pr, Stdout: out, Stderr: errs})
		out.flush()
		errs.flush()
		pr.CloseWithError(io.ErrClosedPipe) // nobody reads any more
	}()
	silent := c.phases(ctx, ended)
	pw.Close()
	select {
	case <-ended:
	case <-time.After(endLimit):
	case <-ctx.Done():
	}
	said := c.heard.nodes() // what srun says of tasks from here on is our own doing
	if ctx.Err() != nil && o.JobID == "" {
		// srun may hear of it at a moment when it has an allocation and cannot give it
		// back yet; and there is little time after a Ctrl-C.
		cancelNamed(m, o.jobName(nonce))
	}
	stop()
	<-ended
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if runErr != nil {
		return nil, fmt.Errorf("srun: %w", runErr)
	}
	if c.queued != nil {
		return nil, c.queued
	}
	c.merge.expect(said, c.o.Count)
	set := c.merge.Set(said, silent)
	if set.Reported == 0 && (len(c.merge.expected) == 0 || res.Code > 0 && !c.heard.launched()) {
		return nil, fmt.Errorf("srun started no probe: %s", c.heard.last(res.Code))
	}
	if res.Code == -1 && set.Job != "" && set.Step != "" { // killed before it could clean up
		cancelStep(m, set.Job, set.Step)
	}
	return set, nil
}

// stepEnv is the caller's environment without what would make srun buffer or
// redirect otherwise than said.
func stepEnv(m *source.Machine) []string {
	var env []string
	for k, v := range m.Env {
		switch k {
		case "SLURM_UNBUFFEREDIO", "SLURM_LABELIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_DEBUG", "SLURM_MULTI_PROG", "SLURM_PTY_PORT", "SLURM_NTASKS_PER_GPU":
			continue
		}
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return append(env, InStep+"=1")
}

// InStep is a variable of this step and of what its prologs start: a second step
// from within would start a third one, and so on. Its name is one of Slurm's, so
// that --export=NONE keeps it.
const InStep = "SLURM_NCCLINIC_NODES"

// cancelNamed ends an allocation of our own.
func cancelNamed(m *source.Machine, name string) {
	if p, err := m.Runner.LookPath("scancel"); err == nil {
		_, _ = m.Runner.Run(context.Background(), source.Cmd{Path: p, Args: []string{"--quiet", "--user=" + strconv.Itoa(m.UID), "--name=" + name}, Timeout: time.Second})
	}
}

func cancelStep(m *source.Machine, job, id string) {
	if p, err := m.Runner.LookPath("scancel"); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, _ = m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{job + "." + id}})
	}
}

type step struct {
	o      Options
	m      *source.Machine
	merge  *Merger
	in     io.Writer
	wake   chan struct{}
	heard  *hearsay
	queued *QueueError
}

func (c *step) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *step) stderr(line []byte) {
	c.heard.line(line)
	c.poke()
}

// until waits for done, at most until the deadline that limit returns, which
// may move. It reports false when the step ended or the time is over.
func (c *step) until(ctx context.Context, ended <-chan struct{}, phase Phase, limit func() time.Time, done func(Progress) bool) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		p := c.merge.Progress()
		if c.o.Progress != nil {
			c.o.Progress(phase, p)
		}
		if done(p) {
			return true
		}
		if time.Now().After(limit()) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-ended:
			return done(c.merge.Progress())
		case <-c.wake:
		case <-tick.C:
		}
	}
}

// phases goes through reports, reachability and process group. It returns what
// is to be said of nodes that stayed silent.
func (c *step) phases(ctx context.Context, ended <-chan struct{}) string {
	began := time.Now()
	silent := fmt.Sprintf("no report within %s", c.o.NodeLimit)
	if c.o.JobID == "" {
		if !c.queue(ctx, ended, began) {
			return "no allocation within " + c.o.Wait.String()
		}
		began = time.Now()
	}
	all := func(p Progress) bool {
		n := p.Expected
		if n == 0 {
			n = c.o.Count
		}
		return n > 0 && (p.Reported >= n || p.Reported+c.merge.lost(c.heard.nodes()) >= n)
	}
	c.until(ctx, ended, PhaseReport, func() time.Time { return began.Add(c.o.NodeLimit) }, all)
	if p, n := c.planReach(); p != nil {
		if !c.tell(ctx, ended, p) {
			return silent
		}
		end := time.Now().Add(reachLimit + phaseMargin)
		c.until(ctx, ended, PhaseReach, func() time.Time { return end }, func(p Progress) bool {
			return p.Reached >= n || p.Reached+c.merge.gone(kindReach, c.heard.nodes()) >= n
		})
	}
	// Not together with the other plan: rank 0 takes MASTER_PORT when nobody tries
	// to reach it any more.
	if p, n := c.planGroup(); p != nil {
		if !c.tell(ctx, ended, p) {
			return silent
		}
		end := time.Now().Add(c.o.LiveLimit + phaseMargin)
		all := func(p Progress) bool {
			return p.Grouped >= n || p.Grouped+c.merge.gone(kindGroup, c.heard.nodes()) >= n
		}
		var failed time.Time
		c.until(ctx, ended, PhaseGroup, func() time.Time { return end }, func(p Progress) bool {
			if failed.IsZero() && c.merge.rankFailed() {
				failed = time.Now()
			}
			return all(p) || !failed.IsZero() && time.Since(failed) > groupGrace
		})
		if !failed.IsZero() && !all(c.merge.Progress()) && c.tell(ctx, ended, &plan{Stop: true}) {
			end = time.Now().Add(phaseMargin)
			c.until(ctx, ended, PhaseGroup, func() time.Time { return end }, all)
		}
		c.merge.mu.Lock()
		c.merge.ran = p.Group
		c.merge.mu.Unlock()
	}
	return silent
}

// tell writes a plan to all probes. srun may be gone, or its input full.
func (c *step) tell(ctx context.Context, ended <-chan struct{}, p *plan) bool {
	wrote := make(chan struct{})
	go func() {
		_ = writePlan(c.in, p)
		close(wrote)
	}()
	select {
	case <-wrote:
		return true
	case <-ended:
	case <-ctx.Done():
	case <-time.After(c.o.NodeLimit):
	}
	return false
}

// planReach says who connects to whom, nil when there is nobody to connect to.
func (c *step) planReach() (*plan, int) {
	m := c.merge
	m.mu.Lock()
	defer m.mu.Unlock()
	tasks := m.byTask()
	if !c.o.Reach || len(tasks) < 2 {
		return nil, 0
	}
	r := &reachPlan{}
	for _, t := range tasks {
		q := peer{task: t.id}
		for _, e := range t.ends {
			if host, _, ok := strings.Cut(e.Addr, "/"); ok && e.Port > 0 {
				q.ends = append(q.ends, e.Way+" "+hostPort(host, e.Port))
			}
		}
		r.Nodes = append(r.Nodes, q)
	}
	// Only what would carry MASTER_PORT when the job starts can be tried.
	r.Master = tasks[0].id == 0 && tasks[0].port == "free"
	m.planned, m.plannedMaster = r.Nodes, r.Master
	return &plan{Token: Nonce(), Reach: r}, len(tasks)
}

func (c *step) planGroup() (*plan, int) {
	if !c.o.Live {
		return nil, 0
	}
	m := c.merge
	m.mu.Lock()
	defer m.mu.Unlock()
	tasks := m.byTask()
	g := groupOf(tasks, c.o)
	if g == nil {
		return nil, 0
	}
	return &plan{Group: g}, len(tasks)
}

func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

func itoa(n int) string { return strconv.Itoa(n) }

// lines cuts a stream into lines; of a line that is too long only the start is kept.
type lines struct {
	each func([]byte)
	max  int
	buf  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		l.buf = append(l.buf, part[:min(len(part), l.max-len(l.buf))]...)
		if i < 0 {
			break
		}
		l.each(l.buf)
		l.buf, p = l.buf[:0], p[i+1:]
	}
	return n, nil
}

func (l *lines) flush() {
	if len(l.buf) > 0 {
		l.each(l.buf)
		l.buf = nil
	}
}

// hearsay is what srun says of nodes on its standard error.
type hearsay struct {
	mu    sync.Mutex
	why   map[string]fact.NodeFault // by node
	task  map[string]int            // the task of a node that srun names
	tasks map[int]string            // what a probe itself said last
	tail  []string
	alloc bool
	start bool
	job   string // of the allocation that srun waits for
}

func newHearsay() *hearsay {
	return &hearsay{why: map[string]fact.NodeFault{}, task: map[string]int{}, tasks: map[int]string{}}
}

var (
	// srun: error: n3: task 2: Killed; srun: error: n[1-2]: tasks 0-1: Exited with exit code 2
	saysTask = lazyre.New(`^srun: error: (\S+): tasks? ([\d,-]+): (.+)$`)
	// srun: error: Node failure on n3; srun: error: Task launch for StepId=3.0 failed on node n3: Communication connection failure
	saysNode   = lazyre.New(`^srun: error: Node failure on (\S+)`)
	saysLaunch = lazyre.New(`^srun: error: Task launch for (?:StepId=)?\S+ failed on node (\S+): (.+)$`)
	saysQueued = lazyre.New(`^srun: job (\d{1,10}) queued and waiting for resources`)
	saysAlloc  = lazyre.New(`^srun: job \d+ has been allocated resources|^srun: Granted job allocation`)
	saysStep   = lazyre.New(`^srun: (?:error: )?(?:launch/slurm: )?(?:launch_p_step_launch: )?StepId=`)
)

// speaker is who says something on a node: not a part of the reason, which is to
// be the same on all nodes.
var speaker = lazyre.New(`^(?:ncclinic: |slurmstepd(?:-\S+)?: (?:error: )?)`)

const maxTail = 20

func (h *hearsay) line(raw []byte) {
	s := clean(string(raw))
	h.mu.Lock()
	defer h.mu.Unlock()
	mark := func(list, kind, why string) {
		h.start = true
		names, err := hostlist.Expand(list)
		if err != nil {
			return
		}
		for _, n := range names {
			if len(h.why) < hostlist.Max {
				h.why[n] = fact.NodeFault{Kind: kind, Why: why}
			}
		}
	}
	if x := saysLaunch.FindStringSubmatch(s); x != nil {
		mark(x[1], fact.FaultLaunch, x[2])
	} else if x := saysNode.FindStringSubmatch(s); x != nil {
		mark(x[1], fact.FaultNodeFailed, strings.TrimPrefix(s, "srun: error: "))
	} else if x := saysTask.FindStringSubmatch(s); x != nil {
		mark(x[1], fact.FaultKilled, x[3])
		// One task on each node, in the order of the nodes. What the task said may
		// come after this.
		names, err1 := hostlist.Expand(x[1])
		ids, err2 := hostlist.Expand("t[" + x[2] + "]")
		if err1 == nil && err2 == nil && len(names) == len(ids) && len(h.task) < hostlist.Max {
			for i, n := range names {
				if id, err := strconv.Atoi(ids[i][1:]); err == nil {
					h.task[n] = id
				}
			}
		}
	} else if x := saysQueued.FindStringSubmatch(s); x != nil {
		h.job = x[1]
	} else if saysAlloc.MatchString(s) {
		h.alloc = true
	} else if id, rest := label(raw); id >= 0 && len(h.tasks) < hostlist.Max {
		h.start = true
		h.tasks[id] = fact.Clip(clean(string(rest)), 200)
		return
	} else if saysStep.MatchString(s) {
		h.start = true
	}
	if len(h.tail) == maxTail {
		h.tail = h.tail[1:]
	}
	h.tail = append(h.tail, s)
}

// clean drops control characters: what is shown must not steer a terminal.
func clean(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	return fact.Clip(strings.TrimSpace(s), 300)
}

func (h *hearsay) allocated() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.alloc }
func (h *hearsay) launched() bool  { h.mu.Lock(); defer h.mu.Unlock(); return h.start }

func (h *hearsay) nodes() map[string]fact.NodeFault {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]fact.NodeFault, len(h.why))
	for n, f := range h.why {
		if !nodeName.MatchString(n) {
			continue
		}
		if id, ok := h.task[n]; ok && h.tasks[id] != "" {
			f.Why += ": " + speaker.ReplaceAllString(h.tasks[id], "")
		}
		out[n] = f
	}
	return out
}

func (h *hearsay) last(code int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var said []string
	for _, s := range h.tail {
		if s = strings.TrimPrefix(strings.TrimPrefix(s, "srun: "), "error: "); s != "" && len(said) < 4 {
			said = append(said, s)
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("it ended with status %d and said nothing", code)
	}
	return strings.Join(said, "; ")
}

// Executable is the path of this program, links resolved: the nodes must find
// the same file.
func Executable() (string, error) {
	p, err := os.Executable()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(p); err == nil {
		p = real
	}
	return p, nil
}
