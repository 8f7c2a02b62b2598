package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/nodes"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/mask"
	judge "github.com/ncclinic/ncclinic/internal/nodes"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/rules"
)

// nodesFlags are the flags of check --nodes.
type nodesFlags struct {
	on        bool
	jobid     string
	nodelist  string
	partition string
	count     int
	srunArgs  string
	prefix    string
	bcast     string
	image     string
	mounts    string
	noReach   bool
	ranks     int
	limit     time.Duration
	wait      time.Duration
	save      string
}

// nodesOnly are flags that mean nothing without --nodes.
var nodesOnly = []string{"jobid", "nodelist", "partition", "node-count", "srun-args", "prefix", "bcast", "container-image", "container-mounts", "no-reach", "live-ranks", "node-timeout", "wait", "save"}

// addNodes gives check the flag --nodes and what goes with it.
func (a *app) addNodes(c *cobra.Command, g *gatherFlags) {
	var n nodesFlags
	a.addNodesFlags(c, &n)
	c.Long += a.tr(`

With --nodes it looks at all nodes of a Slurm job: one probe on each through a single
srun, judged and compared. Inside a job these are the job's nodes; --jobid names
another job, --nodelist or --partition make a short allocation. It names the nodes
that differ, those that do not answer, and those that the others cannot reach, and
ends with a list for sbatch --exclude. With --live a real process group is formed
over all ranks.`, `

加上 --nodes 时检查 Slurm 作业的所有节点：用一次 srun 在每个节点上启动一个探测进程，逐个诊断并
互相比较。在作业中检查本作业的节点；--jobid 指定其他作业；--nodelist 或 --partition 申请一个短时
分配。结果列出与众不同的节点、没有应答的节点、其他节点连不到的节点，最后给出可用于
sbatch --exclude 的列表。再加 --live 时，会在所有 rank 上建立真实的进程组。`)
	c.Example += "\n  ncclinic check --nodes\n  ncclinic check --nodes --jobid 4711 --live"
	single := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if n.on {
			if len(args) > 0 {
				return usagef("%s", a.tr("--nodes examines the nodes of a job and takes no other target", "--nodes 检查作业的各个节点，不接受其他对象"))
			}
			if f := c.Flags().Lookup("node-count"); f.Changed && n.count < 1 {
				return usagef("--node-count %d: %s", n.count, a.tr("must be 1 or more", "必须大于等于 1"))
			}
			return a.checkNodes(c.Context(), *g, n)
		}
		for _, name := range nodesOnly {
			if f := c.Flags().Lookup(name); f != nil && f.Changed {
				return usagef("--%s: %s", name, a.tr("only with --nodes", "只能与 --nodes 一起使用"))
			}
		}
		return single(c, args)
	}
}

func (a *app) addNodesFlags(c *cobra.Command, n *nodesFlags) {
	f := c.Flags()
	f.BoolVar(&n.on, "nodes", false, a.tr("examine and compare all nodes of the allocation, one probe on each through a single srun", "检查并比较分配到的所有节点：用一次 srun 在每个节点上启动一个探测进程"))
	f.StringVar(&n.jobid, "jobid", "", a.tr("with --nodes: the nodes of this running job (default: the job that this shell is in)", "配合 --nodes：指定正在运行的作业（默认为当前 shell 所在的作业）"))
	f.StringVar(&n.nodelist, "nodelist", "", a.tr("with --nodes, outside a job: these nodes, such as n[1-8], in a short allocation of its own", "配合 --nodes，在作业之外：为这些节点（如 n[1-8]）申请一个短时分配"))
	f.StringVar(&n.partition, "partition", "", a.tr("with --nodes, outside a job: nodes of this partition", "配合 --nodes，在作业之外：使用该分区的节点"))
	f.IntVar(&n.count, "node-count", 0, a.tr("with --partition: how many nodes", "配合 --partition：节点数"))
	f.StringVar(&n.srunArgs, "srun-args", "", a.tr("with --nodes: further options of srun, such as '--account=x --gres=gpu:8'", "配合 --nodes：传给 srun 的其他选项，例如 '--account=x --gres=gpu:8'"))
	f.StringVar(&n.prefix, "prefix", "", a.tr("with --nodes: start the probe through this command, such as 'apptainer exec --nv X.sif'", "配合 --nodes：通过该命令启动探测进程，例如 'apptainer exec --nv X.sif'"))
	f.StringVar(&n.bcast, "bcast", "", a.tr("with --nodes: copy ncclinic to this path on each node first (it is removed again), when it is on no shared file system", "配合 --nodes：ncclinic 不在共享文件系统上时，先复制到各节点的该路径（结束后删除）"))
	f.StringVar(&n.image, "container-image", "", a.tr("with --nodes: run the probes in this image (pyxis)", "配合 --nodes：在该镜像中运行探测进程（pyxis）"))
	f.StringVar(&n.mounts, "container-mounts", "", a.tr("with --container-image: further mounts", "配合 --container-image：额外的挂载"))
	f.BoolVar(&n.noReach, "no-reach", false, a.tr("with --nodes: do not test whether the nodes reach each other", "配合 --nodes：不测试节点之间的连通性"))
	f.IntVar(&n.ranks, "live-ranks", 0, a.tr("with --nodes --live: ranks on each node (default: one for each GPU, or one)", "配合 --nodes --live：每个节点的 rank 数（默认每个 GPU 一个；没有 GPU 时为一个）"))
	f.DurationVar(&n.limit, "node-timeout", 60*time.Second, a.tr("with --nodes: time limit for a node to report", "配合 --nodes：节点报告的时间上限"))
	f.DurationVar(&n.wait, "wait", 10*time.Minute, a.tr("with --nodes, outside a job: time limit for the allocation", "配合 --nodes，在作业之外：等待分配的时间上限"))
	f.StringVar(&n.save, "save", "", a.tr("with --nodes: also write the facts to this file, to be judged again with: ncclinic check FILE", "配合 --nodes：同时把事实写入该文件，之后可用 ncclinic check FILE 再次诊断"))
}

// checkNodes looks at all nodes and judges them together.
func (a *app) checkNodes(ctx context.Context, g gatherFlags, n nodesFlags) error {
	m, err := run.NewMachine()
	if err != nil {
		return err
	}
	if m.Getenv(nodes.InStep) != "" { // a prolog, or the probe's own prefix
		return usagef("%s", a.tr("--nodes: inside of a step that check --nodes itself started: not started once more", "--nodes：位于 check --nodes 自己启动的作业步中，不再重复启动"))
	}
	if skip := a.oneOfMany(m); skip {
		return nil
	}
	o, err := a.stepOptions(ctx, m, g, n)
	if err != nil {
		return err
	}
	show := a.newProgress()
	o.Progress = show.update
	set, err := nodes.Run(ctx, m, *o)
	show.done()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var queued *nodes.QueueError
		if errors.As(err, &queued) {
			return a.notAllocated(queued)
		}
		return usageError{err}
	}
	b := &fact.Bundle{Schema: fact.BundleSchema, Tool: Version, Taken: time.Now().UTC().Truncate(time.Second), Nodes: set,
		Subject: fact.Subject{Kind: "allocation", Name: set.Expected}}
	if o.Version != "" {
		for _, g := range set.Groups { // the probes do not ask, so that they are quick
			if g.Bundle != nil && !g.Bundle.Slurm.Version.Looked() {
				g.Bundle.Slurm.Version = fact.Of(o.Version, fact.Command("scontrol --version", o.Version))
			}
		}
	}
	mask.Deep(b)
	if n.save != "" {
		f, err := os.OpenFile(n.save, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return usageError{err}
		}
		err = fact.WriteBundle(render.ControlFree(f), b)
		if err = errors.Join(err, f.Close()); err != nil {
			return usageError{err}
		}
	}
	return a.judge(b)
}

// oneOfMany reports that this process is one of several tasks of a step which all
// were started with the same command: the first one looks at all nodes, and the
// others have nothing to do.
func (a *app) oneOfMany(m *source.Machine) bool {
	n, err := strconv.Atoi(m.Getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || n < 2 || m.Getenv("SLURM_STEP_ID") == "" {
		return false
	}
	if m.Getenv("SLURM_PROCID") != "0" {
		return true
	}
	fmt.Fprintf(a.Err, a.tr("ncclinic: --nodes starts one probe on each node by itself: task 0 does it, the other %d tasks of this step end (no srun is needed in front)\n",
		"ncclinic：--nodes 会自行在每个节点上启动一个探测进程：由任务 0 执行，本作业步的其余 %d 个任务直接结束（前面不需要 srun）\n"), n-1)
	return false
}

// notAllocated says why an allocation of its own did not start. That is no
// verdict on the nodes.
func (a *app) notAllocated(q *nodes.QueueError) error {
	reason := q.Reason
	if reason == "" {
		reason = a.tr("squeue gives no reason", "squeue 没有给出原因")
	}
	reason = render.Clean(reason, false)
	if q.Never {
		return usagef("%s", fmt.Sprintf(a.tr("job %s will never start as it is requested (%s): ask for fewer nodes or another partition (sinfo -o '%%P %%D %%l' lists them)",
			"作业 %s 按现在的请求永远不会开始（%s）：请减少节点数或换一个分区（sinfo -o '%%P %%D %%l' 列出各分区）"), q.Job, reason))
	}
	fmt.Fprintf(a.Err, "ncclinic: %s\n", fmt.Sprintf(a.tr("no allocation within %s (--wait): job %s waited, reason %s; it was cancelled, no node was looked at",
		"%s（--wait）内没有得到分配：作业 %s 在排队，原因 %s；已取消，没有检查任何节点"), q.Wait, q.Job, reason))
	return exitError(exitUnsure)
}

// stepOptions turns flags and surroundings into one step.
func (a *app) stepOptions(ctx context.Context, m *source.Machine, g gatherFlags, n nodesFlags) (*nodes.Options, error) {
	if g.timeout <= 0 || g.liveTimeout <= 0 || n.limit <= 0 || n.wait <= 0 {
		return nil, usagef("%s", a.tr("time limits must be longer than 0, such as 30s or 2m", "时间上限必须大于 0，例如 30s 或 2m"))
	}
	own := n.nodelist != "" || n.partition != "" || n.count > 0
	if n.bcast != "" && n.prefix != "" {
		return nil, usagef("%s", a.tr("--bcast copies what srun starts, which is the --prefix command: put ncclinic where the nodes see it", "--bcast 复制的是 srun 启动的程序，即 --prefix 的命令：请把 ncclinic 放在各节点可见的位置"))
	}
	if n.bcast != "" && !strings.HasPrefix(n.bcast, "/") {
		return nil, usagef("--bcast: %s", a.tr("a full path, such as /tmp/ncclinic", "需要完整路径，例如 /tmp/ncclinic"))
	}
	o := &nodes.Options{JobID: n.jobid, NodeLimit: n.limit, Wait: n.wait, Reach: !n.noReach, Live: g.live, LiveLimit: g.liveTimeout, LiveRanks: n.ranks, Bcast: n.bcast, Count: n.count}
	if o.JobID == "" && !own {
		o.JobID = m.Getenv("SLURM_JOB_ID")
	}
	switch {
	case o.JobID != "" && own:
		return nil, usagef("%s", a.tr("--jobid names an allocation; --nodelist, --partition and --node-count make one", "--jobid 指定已有的分配；--nodelist、--partition、--node-count 用于新建分配，不能同时使用"))
	case o.JobID == "" && !own:
		return nil, usagef("%s", a.tr("--nodes: not inside a job. Use it in the batch script or in salloc, or say --jobid N, or --partition P --node-count N for a short allocation of its own",
			"--nodes：不在作业中。请在批处理脚本或 salloc 中使用，或指定 --jobid N，或用 --partition P --node-count N 申请短时分配"))
	}
	var err error
	if o.SrunArgs, err = words(n.srunArgs); err != nil {
		return nil, usagef("--srun-args: %v", err)
	}
	if o.Prefix, err = words(n.prefix); err != nil {
		return nil, usagef("--prefix: %v", err)
	}
	if o.Exe, err = nodes.Executable(); err != nil {
		return nil, err
	}
	if n.image != "" {
		mounts := o.Exe + ":" + o.Exe + ":ro"
		if n.mounts != "" {
			mounts = n.mounts + "," + mounts
		}
		o.Container = []string{"--container-image=" + n.image, "--container-mounts=" + mounts}
	}
	if _, v, ok := strings.Cut(slurm.ClientVersion(ctx, m), " "); ok {
		o.Version = v
	}
	switch {
	case own:
		if n.nodelist != "" {
			if o.Nodes, err = hostlist.Expand(n.nodelist); err != nil {
				return nil, usagef("--nodelist: %v", err)
			}
			if n.count > 0 && n.count != len(o.Nodes) {
				return nil, usagef("--node-count %d, %s %d", n.count, a.tr("and --nodelist names", "而 --nodelist 中的节点数为"), len(o.Nodes))
			}
			o.AllocArgs = append(o.AllocArgs, "--nodelist="+hostlist.Fold(o.Nodes))
			if fold, err := hostlist.Expand(hostlist.Fold(o.Nodes)); err == nil {
				o.Nodes = fold // Slurm sorts them
			}
		}
		if n.partition != "" {
			o.AllocArgs = append(o.AllocArgs, "--partition="+n.partition)
		}
		minutes := int((n.limit+g.liveTimeout)/time.Minute) + 2
		o.AllocArgs = append(o.AllocArgs, "--time="+strconv.Itoa(minutes))
	case n.jobid == "" || n.jobid == m.Getenv("SLURM_JOB_ID"):
		list := m.Getenv("SLURM_JOB_NODELIST")
		if o.Nodes, err = hostlist.Expand(list); err != nil || len(o.Nodes) == 0 {
			o.Nodes, err = slurm.JobNodes(ctx, m, o.JobID)
		}
	default:
		o.Nodes, err = slurm.JobNodes(ctx, m, o.JobID)
	}
	if err != nil {
		return nil, a.slurmError("--nodes: ", err)
	}
	o.ProbeArgs = a.probeArgs(g, o)
	return o, nil
}

func (a *app) probeArgs(g gatherFlags, o *nodes.Options) []string {
	life := o.NodeLimit + 30*time.Second
	if o.Live {
		life += o.LiveLimit + 10*time.Second
	}
	args := []string{probeName, "--timeout=" + g.timeout.String(), "--life=" + life.String()}
	if g.python != "" {
		args = append(args, "--python="+g.python)
	}
	if o.Reach {
		args = append(args, "--reach")
	}
	if o.Live {
		args = append(args, "--live")
	}
	if o.Bcast != "" {
		args = append(args, "--remove")
	}
	return args
}

// words splits options as a shell would do in the simple case: blanks, and
// quotes around blanks.
func words(s string) ([]string, error) {
	var out []string
	var w strings.Builder
	in, quote := false, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			w.WriteByte(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				out = append(out, w.String())
				w.Reset()
			}
			in = false
		default:
			w.WriteByte(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if in {
		out = append(out, w.String())
	}
	return out, nil
}

// probeName is the subcommand that check --nodes starts on every node.
const probeName = "node-probe"

// probeCmd is one node's part of check --nodes. It is no part of the tree of
// commands: nobody types it.
func (a *app) probeCmd() *cobra.Command {
	var g gatherFlags
	var o nodes.ProbeOptions
	var life time.Duration
	var remove bool
	c := &cobra.Command{
		Use:           probeName,
		Args:          noArgs(a),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			if remove {
				if exe, err := os.Executable(); err == nil {
					os.Remove(exe) // the copy that srun --bcast made
				}
			}
			quick()
			// One core at a time, for a job may be running on the others: what it
			// looks at comes in turn. With a single P instead, each longer system
			// call would hand that over to another thread (sysmon retakes it when no
			// other is idle), which costs a tenth of the probe.
			runtime.GOMAXPROCS(2)
			g.inTurn = true
			// A collector that hangs in the kernel must not keep the step alive.
			time.AfterFunc(life, func() { os.Exit(exitUnsure) })
			m, err := run.NewMachine()
			if err != nil {
				return err
			}
			o.In, o.Out = a.In, a.Out
			return nodes.Probe(c.Context(), m, o, func(ctx context.Context) (*fact.Bundle, error) {
				own := *m
				own.Runner = quickRunner{m.Runner}
				return a.gatherOn(ctx, &own, g)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Nonce, "nonce", "", "")
	f.BoolVar(&o.Reach, "reach", false, "")
	f.BoolVar(&o.Live, "live", false, "")
	f.BoolVar(&remove, "remove", false, "")
	f.StringVar(&g.python, "python", "", "")
	f.DurationVar(&g.timeout, "timeout", 30*time.Second, "")
	f.DurationVar(&life, "life", 5*time.Minute, "")
	g.liveTimeout = time.Second
	return c
}

// quickRunner leaves out a command that says the same on every node.
type quickRunner struct{ source.Runner }

func (r quickRunner) LookPath(name string) (string, error) {
	if name == "scontrol" {
		return "", errors.New("asked once, by the parent")
	}
	return r.Runner.LookPath(name)
}

// progress is a line on the terminal while nodes report.
type progress struct {
	a     *app
	on    bool
	shown string
	last  time.Time
}

func (a *app) newProgress() *progress {
	return &progress{a: a, on: a.ErrTerminal != nil && a.ErrTerminal() && a.out.format == "text"}
}

func (p *progress) update(phase nodes.Phase, n nodes.Progress) {
	if !p.on || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	of := "?"
	if n.Expected > 0 {
		of = strconv.Itoa(n.Expected)
	}
	var s string
	switch phase {
	case nodes.PhaseQueue:
		s = p.a.tr("waiting for the allocation", "等待资源分配")
	case nodes.PhaseReport:
		s = fmt.Sprintf(p.a.tr("%d of %s nodes have reported", "%d/%s 个节点已报告"), n.Reported, of)
		if n.Slowest != "" {
			s += fmt.Sprintf(p.a.tr(", last %s", "，最近一个：%s"), n.Slowest)
		}
	case nodes.PhaseReach:
		s = fmt.Sprintf(p.a.tr("%d of %d nodes have tried to reach others", "%d/%d 个节点已完成连通性测试"), n.Reached, n.Reported)
	case nodes.PhaseGroup:
		s = fmt.Sprintf(p.a.tr("process group: %d of %d nodes are done", "进程组：%d/%d 个节点已完成"), n.Grouped, n.Reported)
	}
	if s != p.shown {
		p.shown = s
		fmt.Fprintf(p.a.Err, "\r\x1b[K%s", s)
	}
}

func (p *progress) done() {
	if p.shown != "" {
		fmt.Fprint(p.a.Err, "\r\x1b[K")
	}
}

// judgeNodes runs the rules over an allocation.
func (a *app) judgeNodes(b *fact.Bundle) error {
	base, err := a.load(rules.Allocation...)
	if err != nil {
		return fmt.Errorf("knowledge base: %w", err)
	}
	rep := judge.Judge(base.Set(), b)
	return a.show(&rep, base, b)
}
