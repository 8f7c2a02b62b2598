// Package slurm says where in Slurm a process is and what it was given there,
// from its environment and a few files of /proc.
package slurm

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

// versionLimit bounds "scontrol --version", which asks no daemon.
const versionLimit = 2 * time.Second

// Context fills b.Slurm. Variables of an outer or a past job lie about where a
// process is, so a job counts only with a sign of it: the cgroup, an ancestor
// that Slurm started, or the node's name.
func Context(ctx context.Context, m *source.Machine, b *fact.Bundle) error {
	c := &collector{m: m, s: &b.Slurm, b: b}
	c.commands(ctx)
	c.job()
	if c.s.Job.IsKnown() && !c.s.Stale.IsKnown() { // else the variables are those of another job
		c.resources()
	}
	if m.OS != nil {
		if n := m.OS.CPUs(); n > 0 {
			c.s.CPUs = fact.Of(n, fact.Command("sched_getaffinity", strconv.Itoa(n)))
		}
	}
	c.str("SLURM_EXPORT_ENV", &c.s.ExportEnv)
	return ctx.Err()
}

type collector struct {
	m *source.Machine
	b *fact.Bundle
	s *fact.Slurm
}

var versionLine = lazyre.New(`^slurm\S* (\d{1,3}\.\d{1,3}[\w.+-]{0,40})`)

func (c *collector) commands(ctx context.Context) {
	if c.m.Runner == nil {
		return
	}
	at := fact.EnvVarAt("PATH", c.m.Getenv("PATH"))
	if _, err := c.m.Runner.LookPath("srun"); err != nil {
		c.s.Commands = fact.Of(false, at)
		c.s.Version = fact.None[string](at)
		return
	}
	c.s.Commands = fact.Of(true, at)
	p, err := c.m.Runner.LookPath("scontrol")
	if err != nil {
		return
	}
	at = fact.Command("scontrol --version", "")
	res, err := c.m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--version"}, Timeout: versionLimit, MaxOut: 4 << 10})
	switch out := strings.TrimSpace(string(res.Stdout)); {
	case err != nil:
		c.s.Version = fact.Fail[string](err.Error(), at)
	case res.TimedOut:
		c.s.Version = fact.Fail[string](fmt.Sprintf("did not answer within %s", versionLimit), at)
	case versionLine.MatchString(out):
		c.s.Version = fact.Of(versionLine.FindStringSubmatch(out)[1], at.WithExcerpt(fact.Clip(out, 80)))
	default:
		c.s.Version = fact.Fail[string]("it printed no version", at)
	}
}

// job decides whether this process is in a job, and where.
func (c *collector) job() {
	name := "SLURM_JOB_ID"
	id := c.m.Getenv(name)
	if id == "" {
		name = "SLURM_JOBID"
		id = c.m.Getenv(name)
	}
	cg, step, cgLine := c.cgroup()
	if id == "" {
		if cg == "" {
			c.s.Job = fact.None[string](fact.Evidence{Source: fact.SrcEnv, Path: "SLURM_JOB_ID"})
			return
		}
		// pam_slurm_adopt puts a login into the job's extern step and sets no variables.
		c.s.Job = fact.Of(cg, fact.FileExcerpt("/proc/self/cgroup", cgLine))
		c.s.Where = "extern"
		if step != "extern" {
			c.s.Where = "step"
		}
		return
	}
	at := fact.EnvVarAt(name, id)
	if !jobID.MatchString(id) {
		c.s.Job = fact.Fail[string]("not a job id", at)
		return
	}
	node := c.m.Getenv("SLURMD_NODENAME")
	why := ""
	switch {
	case cg == id:
		c.s.Job = fact.Of(id, fact.FileExcerpt("/proc/self/cgroup", cgLine))
	case cg != "":
		c.s.Job = fact.Of(cg, fact.FileExcerpt("/proc/self/cgroup", cgLine))
		c.s.Stale = fact.Of(id, at)
		c.s.Where = "step"
		return
	case node == "" && c.m.Getenv("SLURM_JOB_NODELIST") != "":
		c.s.Job, c.s.Where = fact.Of(id, at), "interactive"
		return
	case node == "":
		c.s.Job = fact.None[string](at)
		c.s.Stale = fact.Of(id, at)
		return
	case c.startedBySlurm():
		c.s.Job = fact.Of(id, fact.EnvVarAt("SLURM_TASK_PID", c.m.Getenv("SLURM_TASK_PID")))
	case c.onNode(node):
		c.s.Job = fact.Of(id, at)
	default:
		why = fmt.Sprintf("SLURMD_NODENAME is %s, this host is %s, and no process of that job started this one", node, c.hostname())
		c.s.Job = fact.Fail[string](why, at)
		c.s.Stale = fact.Of(id, at)
		return
	}
	c.s.Where = c.where(step)
}

var jobID = lazyre.New(`^\d{1,12}$`)

// where tells the batch shell from a step. Steps have numbers; the special ones
// are the last of 32 bits and come as such, or negative, or by name in the cgroup.
func (c *collector) where(cgStep string) string {
	switch cgStep {
	case "batch", "interactive", "extern":
		return cgStep
	case "":
	default:
		return "step"
	}
	switch id := c.m.Getenv("SLURM_STEP_ID"); id {
	case "":
		return "batch"
	case "4294967290", "-6":
		return "interactive"
	case "4294967291", "-5":
		return "batch"
	case "4294967292", "-4":
		return "extern"
	}
	return "step"
}

var cgroupPath = lazyre.New(`/job_(\d{1,12})(?:/step_(\w{1,20}))?(?:/|$)`)

// cgroup returns job and step as the cgroup of this process names them.
func (c *collector) cgroup() (job, step, line string) {
	const p = "/proc/self/cgroup"
	raw, err := source.ReadHead(c.m.FS, p, 64<<10)
	if err != nil {
		return "", "", ""
	}
	return parseCgroup(string(raw))
}

func parseCgroup(text string) (job, step, line string) {
	for _, l := range strings.Split(text, "\n") {
		if m := cgroupPath.FindStringSubmatch(l); m != nil && (job == "" || step == "") {
			job, step, line = m[1], m[2], fact.Clip(l, 200)
		}
	}
	return
}

// startedBySlurm reports whether the process that Slurm started is an ancestor
// of this one.
func (c *collector) startedBySlurm() bool {
	task := c.m.Getenv("SLURM_TASK_PID")
	if !jobID.MatchString(task) {
		return false
	}
	pid := "self"
	for range 64 {
		raw, err := source.ReadHead(c.m.FS, "/proc/"+pid+"/stat", 4<<10)
		if err != nil {
			return false
		}
		self, parent := parseStat(string(raw))
		if self == task || parent == task {
			return true
		}
		if parent == "" || parent == "0" || parent == "1" {
			return false
		}
		pid = parent
	}
	return false
}

// parseStat returns pid and parent's pid of /proc/PID/stat; the name between
// them may hold blanks and parentheses.
func parseStat(s string) (pid, parent string) {
	pid, _, _ = strings.Cut(s, " ")
	i := strings.LastIndexByte(s, ')')
	if i < 0 || !jobID.MatchString(pid) {
		return "", ""
	}
	if f := strings.Fields(s[i+1:]); len(f) > 1 && jobID.MatchString(f[1]) {
		parent = f[1]
	}
	return pid, parent
}

func (c *collector) hostname() string {
	raw, err := source.ReadHead(c.m.FS, "/proc/sys/kernel/hostname", 1<<10)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// onNode compares host names without their domains.
func (c *collector) onNode(node string) bool {
	short := func(s string) string { s, _, _ = strings.Cut(strings.ToLower(s), "."); return s }
	h := c.hostname()
	return h != "" && short(h) == short(node)
}

func (c *collector) str(name string, v *fact.Val[string]) {
	if s, ok := c.m.Env[name]; ok {
		*v = fact.Of(fact.Clip(s, 1000), fact.EnvVarAt(name, s))
	} else {
		*v = fact.None[string](fact.Evidence{Source: fact.SrcEnv, Path: name})
	}
}

// num reads the first of the variables that is set.
func (c *collector) num(v *fact.Val[int], names ...string) {
	for _, name := range names {
		s, ok := c.m.Env[name]
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(s); err == nil && n >= 0 {
			*v = fact.Of(n, fact.EnvVarAt(name, s))
		} else {
			*v = fact.Fail[int]("not a number", fact.EnvVarAt(name, s))
		}
		return
	}
	*v = fact.None[int](fact.Evidence{Source: fact.SrcEnv, Path: names[0]})
}

// resources reads what the job, or this step of it, was given.
func (c *collector) resources() {
	s := c.s
	c.num(&s.JobNodes, "SLURM_JOB_NUM_NODES")
	c.str("SLURM_JOB_PARTITION", &s.Partition)
	c.str("SLURMD_NODENAME", &s.NodeName)
	c.num(&s.CPUsPerTask, "SLURM_CPUS_PER_TASK")
	if s.Where != "step" {
		c.num(&s.Nodes, "SLURM_JOB_NUM_NODES", "SLURM_NNODES")
		c.str("SLURM_JOB_NODELIST", &s.NodeList)
		c.num(&s.Tasks, "SLURM_NTASKS")
		c.gpus("SLURM_JOB_GPUS")
		return
	}
	c.str("SLURM_STEP_ID", &s.Step)
	c.num(&s.Nodes, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
	c.str("SLURM_STEP_NODELIST", &s.NodeList)
	c.num(&s.Tasks, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
	c.num(&s.Rank, "SLURM_PROCID")
	c.num(&s.LocalRank, "SLURM_LOCALID")
	c.tasksHere()
	// A step inherits SLURM_JOB_GPUS of the batch shell even with --gres=none, so
	// only its own variables count.
	c.gpus("SLURM_STEP_GPUS")
}

func (c *collector) tasksHere() {
	name := "SLURM_STEP_TASKS_PER_NODE"
	list := c.m.Getenv(name)
	node, err := strconv.Atoi(c.m.Getenv("SLURM_NODEID"))
	if list == "" || err != nil {
		return
	}
	if n, ok := nthTasks(list, node); ok {
		c.s.TasksHere = fact.Of(n, fact.EnvVarAt(name, list))
	} else {
		c.s.TasksHere = fact.Fail[int]("cannot be read", fact.EnvVarAt(name, list))
	}
}

var tasksItem = lazyre.New(`^(\d{1,7})(?:\(x(\d{1,7})\))?$`)

// nthTasks returns the number of tasks on the nth node (from 0) of a list such as "2(x3),1".
func nthTasks(list string, node int) (int, bool) {
	if node < 0 {
		return 0, false
	}
	for _, it := range strings.Split(list, ",") {
		m := tasksItem.FindStringSubmatch(it)
		if m == nil {
			return 0, false
		}
		n, _ := strconv.Atoi(m[1])
		times := 1
		if m[2] != "" {
			times, _ = strconv.Atoi(m[2])
		}
		if node < times {
			return n, true
		}
		node -= times
	}
	return 0, false
}

// gpus counts the GPUs that were granted on this node. On the host of a salloc
// nothing was granted that could be counted, and an adopted login has no variables.
func (c *collector) gpus(list string) {
	if c.s.Where == "extern" || c.s.Where == "interactive" && c.m.Getenv("SLURMD_NODENAME") == "" {
		return
	}
	if c.m.Getenv("SLURM_STEP_ID") == "" && c.s.Where == "step" {
		return // known from the cgroup alone
	}
	v, ok := c.m.Env[list]
	if ok {
		c.s.GPUIDs = fact.Of(fact.Clip(v, 500), fact.EnvVarAt(list, v))
		if n, ok := countList(v); ok {
			c.s.GPUsGranted = fact.Of(n, fact.EnvVarAt(list, v))
			return
		}
	} else {
		c.s.GPUIDs = fact.None[string](fact.Evidence{Source: fact.SrcEnv, Path: list})
	}
	if cvd := c.m.Getenv("CUDA_VISIBLE_DEVICES"); cvd == "NoDevFiles" {
		// What old Slurm says for "none".
		c.s.GPUsGranted = fact.None[int](fact.EnvVarAt("CUDA_VISIBLE_DEVICES", cvd))
		return
	}
	c.num(&c.s.GPUsGranted, "SLURM_GPUS_ON_NODE")
	if n, ok := c.s.GPUsGranted.Get(); ok && n == 0 {
		c.s.GPUsGranted = fact.None[int](c.s.GPUsGranted.At)
	}
	if c.s.GPUsGranted.IsAbsent() {
		c.s.GPUsGranted.At.Excerpt = path.Base(list) + " and SLURM_GPUS_ON_NODE are not set"
	}
}

// countList counts "0,1,4-7".
func countList(s string) (int, bool) {
	total := 0
	for _, it := range strings.Split(s, ",") {
		a, b, isRange := strings.Cut(it, "-")
		from, err := strconv.Atoi(a)
		if err != nil {
			return 0, false
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(b); err != nil {
				return 0, false
			}
		}
		if from < 0 || to < from || to > 1<<16 {
			return 0, false
		}
		total += to - from + 1
	}
	return total, total > 0
}
