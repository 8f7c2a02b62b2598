package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/rules"
)

type runFlags struct {
	warnOnly, explain, env bool
	tail                   string
}

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [--env] [--explain] -- COMMAND...",
		Short: a.tr("check the task's environment, then become COMMAND", "先检查任务的环境，再变成 COMMAND 运行"),
		Long: a.tr(`run is a guard to be put in front of the training command of every task:
"srun ncclinic run -- python train.py". It looks at the environment in which the
task starts. When it is certain that the command cannot work it says why and ends
with status 1; otherwise it becomes the command: same process, signals, exit
status, standard input and output.

Certain means: a proven error of "ncclinic check" in the interpreter that the
command starts, that this command runs into (import torch fails; or GPUs were
granted, the program uses torch without gloo, and this torch cannot use them).

--env sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT from Slurm's variables where they are not set.

--explain stays as the parent, passes output on byte for byte, and when the command
fails explains why on standard error, once per job: the first task whose own
output names a cause does. Of a command that a signal ended it says who sent it, as
far as that can be known. Signals are passed on unless the command has got them
already. A terminal is handed to the command as it is, and then nothing of what it
shows is kept.`,
			`run 是放在每个任务训练命令之前的检查："srun ncclinic run -- python train.py"。它检查任务
启动时所处的环境，确定命令不可能成功时说明原因并以状态 1 结束；否则就变成该命令：进程、
信号、退出码、标准输入输出都不变。

“确定”是指：在命令所用的解释器中，"ncclinic check" 证实了一个错误，而且该命令必定会遇到它
（import torch 失败；或者分到了 GPU，程序使用 torch 且没有用 gloo，而这个 torch 无法使用 GPU）。

--env 根据 Slurm 的变量设置 RANK、WORLD_SIZE、LOCAL_RANK、LOCAL_WORLD_SIZE、MASTER_ADDR 和
MASTER_PORT，已经设置的不会改动。

--explain 作为父进程保留，逐字节转发输出，命令失败时在标准错误上说明原因，每个作业只有一次：
由第一个能从自身输出中得出原因的任务给出。命令被信号终止时，尽可能说明是谁发送的。命令尚未收到的信号会转发给它。终端原样交给命令，
此时不会保留其显示的内容。`),
		Example: `  srun ncclinic run -- python train.py
  srun ncclinic run --env --explain -- python train.py
  srun --ntasks-per-node=1 ncclinic run -- torchrun --nproc-per-node=8 train.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usagef("%s", a.tr("run needs a command: ncclinic run -- python train.py", "run 需要一条命令：ncclinic run -- python train.py"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.run(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // what stands behind the command is its own
	fl.BoolVar(&f.warnOnly, "warn-only", false, a.tr("say what is wrong and go on", "只说明问题，继续运行"))
	fl.BoolVar(&f.explain, "explain", false, a.tr("when the command fails, explain why", "命令失败时说明原因"))
	fl.BoolVar(&f.env, "env", false, a.tr("set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT from Slurm, never overriding", "根据 Slurm 设置 RANK、WORLD_SIZE、LOCAL_RANK、LOCAL_WORLD_SIZE、MASTER_ADDR、MASTER_PORT，不覆盖已有的值"))
	fl.StringVar(&f.tail, "tail", "4M", a.tr("with --explain: how much of the end of each stream is kept in memory", "与 --explain 一起使用：每个输出流末尾在内存中保留的大小"))
	return c
}

// guardLimit is the time that the guard may take. A file system that does not
// answer must not keep the job: then nothing is certain, and the command starts.
const guardLimit = 3 * time.Second

func (a *app) run(ctx context.Context, argv []string, f runFlags) error {
	tail, err := size(f.tail)
	if err != nil || tail > 1<<30 {
		return usagef("--tail: %q: %s", f.tail, a.tr("a size such as 4M, at most 1G", "应为大小，例如 4M，最大 1G"))
	}
	restore := quick()
	m, err := run.NewMachine()
	if err != nil {
		return err
	}
	env := os.Environ()
	if f.env {
		set := rankEnv(m)
		for _, kv := range set {
			env = append(env, kv.Name+"="+kv.Value)
			m.Env[kv.Name] = kv.Value
		}
		if len(set) == 0 {
			a.envUnset(m)
		}
	}
	if err := a.guard(ctx, m, argv, f.warnOnly); err != nil {
		return err
	}
	if f.explain {
		restore()
		return a.supervise(m, argv, env, int(tail))
	}
	return a.notStarted(run.Replace(argv, env))
}

// notStarted says why the command could not be started, and ends as a shell would.
func (a *app) notStarted(err error) error {
	fmt.Fprintf(a.Err, "ncclinic run: %s\n", render.Clean(diag.ErrorText(strings.TrimPrefix(err.Error(), "exec: "), a.lang), false))
	return exitError(run.ExecStatus(err))
}

// rankNames are what --env sets.
var rankNames = []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}

// envUnset says that --env had nothing to set, and why: silence would read as
// if the variables were there.
func (a *app) envUnset(m *source.Machine) {
	var missing []string
	for _, n := range rankNames {
		if _, has := m.Env[n]; !has {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return // all of them are set: nothing to do
	}
	fmt.Fprintf(a.Err, a.tr("ncclinic run: --env set nothing: this is no task of a Slurm step (SLURM_PROCID is not set); not set: %s\n",
		"ncclinic run：--env 没有设置任何变量：这不是 Slurm 作业步的任务（没有 SLURM_PROCID）；未设置：%s\n"), strings.Join(missing, " "))
}

// guard refuses a command that cannot work.
func (a *app) guard(ctx context.Context, m *source.Machine, argv []string, warnOnly bool) error {
	p := readProgram(m, argv)
	if !p.torch && gpusGranted(ctx, m) == 0 {
		return nil // a program that uses neither torch nor GPUs is none of our business
	}
	var base *rules.Base
	loaded := make(chan error, 1)
	go func() { // beside the looking, which waits for the file system
		var err error
		base, err = a.load(rules.Environment...)
		loaded <- err
	}()
	b := taskFacts(ctx, m, argv, guardLimit)
	if err := <-loaded; err != nil {
		return err
	}
	rep := diag.Run(base.Set(), b)
	f, certain := certainFault(&rep, p, b)
	if f == nil {
		return nil
	}
	title := render.Clean(diag.Title(base, f, a.lang), false)
	if !certain || warnOnly {
		if rank := m.Getenv("SLURM_PROCID"); certain || rank == "" || rank == "0" {
			fmt.Fprintf(a.Err, a.tr("ncclinic run: %s[%s] %s; going on\n", "ncclinic run：%s[%s] %s；继续运行\n"), a.taskName(m), f.ID, title)
		}
		return nil
	}
	if newClaim(m, "refused").take() {
		rep.Cause = &f.ID
		if err := render.Text(a.Err, &rep, base, render.TextOptions{Lang: a.lang, Style: render.Style{Width: 100}, MaxEvidence: 8, Summary: render.Summary(b, a.lang)}); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.Err, a.tr("ncclinic run: %s[%s] %s; %s was not started (--warn-only starts it all the same)\n", "ncclinic run：%s[%s] %s；没有启动 %s（--warn-only 可强制启动）\n"), a.taskName(m), f.ID, title, render.Clean(filepath.Base(argv[0]), false))
	return exitError(exitFound)
}

// gpusGranted is how many GPUs Slurm gave the task, by its variables.
func gpusGranted(ctx context.Context, m *source.Machine) int {
	quiet := *m
	quiet.Runner = nil
	var b fact.Bundle
	if err := slurm.Context(ctx, &quiet, &b); err != nil {
		return 1 // not known: look
	}
	return b.Slurm.GPUsGranted.Or(0)
}

// taskFacts collects what the guard needs; nothing is run.
func taskFacts(ctx context.Context, m *source.Machine, argv []string, limit time.Duration) *fact.Bundle {
	quiet := *m
	quiet.Runner = nil // nvidia-smi alone takes longer than the guard may
	g := gatherFlags{timeout: limit}
	known := false
	if g.python, known = interpreter(m, argv); !known {
		g.python = ""
	}
	b := collect(ctx, &quiet, g)
	if b.Python.By == fact.ByFlag {
		b.Python.By = "" // nobody gave --python: the command names it
	}
	if !known { // whatever "python" is here need not be what the command starts
		b.Python, b.Torch, b.Dists, b.Loads, b.Extensions = fact.Python{}, nil, nil, nil, nil
	}
	mask.Deep(b)
	b.Subject = fact.Subject{Kind: "environment", Name: b.Host.Name.Or("")}
	return b
}

// taskName says which task speaks: "task 3 on n2: ".
func (a *app) taskName(m *source.Machine) string {
	rank, node := m.Getenv("SLURM_PROCID"), m.Getenv("SLURMD_NODENAME")
	if rank == "" || node == "" {
		return ""
	}
	return render.Clean(fmt.Sprintf(a.tr("task %s on %s: ", "%[2]s 上的任务 %[1]s："), rank, node), false)
}

// launchers start Python programs that use torch.
var launchers = map[string]bool{"torchrun": true, "accelerate": true, "deepspeed": true, "composer": true, "lightning": true, "fabric": true, "colossalai": true}

// interpreter finds the Python that a command starts: it is Python, or a script
// that an environment's installer wrote.
func interpreter(m *source.Machine, argv []string) (string, bool) {
	if isPython(filepath.Base(argv[0])) {
		return argv[0], true
	}
	// What is neither a launcher nor a script by its name is not opened.
	if !launchers[filepath.Base(argv[0])] && !strings.HasSuffix(argv[0], ".py") {
		return "", false
	}
	p, err := run.Find(argv[0])
	if err != nil {
		return "", false
	}
	if p, err = filepath.Abs(p); err != nil {
		return "", false
	}
	head, err := source.ReadHead(m.FS, p, 4096)
	if err != nil || !strings.HasPrefix(string(head), "#!") {
		return "", false
	}
	first, rest, _ := strings.Cut(string(head[2:]), "\n")
	py := strings.Fields(first)
	if len(py) > 1 && filepath.Base(py[0]) == "env" { // "#!/usr/bin/env -S python3 -u" too
		py = py[1:]
		for len(py) > 1 && strings.HasPrefix(py[0], "-") {
			py = py[1:]
		}
	}
	if len(py) > 0 && isPython(filepath.Base(py[0])) {
		return py[0], true
	}
	// Installers write this for paths that are too long for "#!".
	if _, py, ok := strings.Cut(rest, "'''exec' "); ok && strings.HasPrefix(rest, "'''exec' ") {
		py = strings.TrimLeft(py, `"`)
		if i := strings.IndexAny(py, "\" \n"); i > 0 && isPython(filepath.Base(py[:i])) {
			return py[:i], true
		}
	}
	return "", false
}

func isPython(name string) bool {
	rest, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(rest, "0123456789.") == ""
}
