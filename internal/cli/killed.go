package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

// signalNames are those of Linux on x86_64 and aarch64.
var signalNames = map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 30: "SIGPWR", 31: "SIGSYS"}

// sentSignals are those that end a command because somebody sent them.
var sentSignals = map[int]bool{1: true, 2: true, 9: true, 10: true, 12: true, 15: true, 24: true, 30: true}

// signalName is " (SIGTERM)", "" of a signal without a name.
func signalName(n int) string {
	if s := signalNames[n]; s != "" {
		return " (" + s + ")"
	}
	return ""
}

// howEnded says how a command ended. A shell ends with 128 and the number of the
// signal when that ended what it ran.
func (a *app) howEnded(end run.Ended) string {
	if end.Signal != 0 {
		return fmt.Sprintf(a.tr("killed by signal %d%s", "被信号 %d%s 终止"), end.Signal, signalName(end.Signal))
	}
	how := fmt.Sprintf(a.tr("exit status %d", "退出状态 %d"), end.Code)
	if s := signalNames[end.Code-128]; end.Code > 128 && s != "" {
		how += fmt.Sprintf(a.tr(" (a shell's word for %s)", "（shell 以此表示 %s）"), s)
	}
	return how
}

// controllerPatience is how long the controller may take to say why a step ends.
const controllerPatience = 3 * time.Second

// sayKilled says what is known of a command that somebody ended, once per job.
// What Slurm ends it ends on all nodes: then task 0 speaks, and it alone asks the
// controller. Where a task has said already why it failed, the rest follows from it.
func (a *app) sayKilled(ctx context.Context, m *source.Machine, who string, end run.Ended, oom oomKills) {
	if newClaim(m, "explained").taken() || newClaim(m, "unexplained").taken() {
		return
	}
	h, heard := end.Got(end.Signal)
	slurm := heard && h.Slurm()
	if slurm && m.Getenv("SLURM_PROCID") != "0" || !newClaim(m, "killed").take() {
		return
	}
	var j *fact.Job
	if id, err := slurmjob.ParseID(jobOf(m)); err == nil && slurm && m.Runner != nil {
		j = controllerOn(ctx, m, id)
	}
	fmt.Fprintf(a.Err, a.tr("ncclinic run: %s: %s: %s\n", "ncclinic run：%s：%s：%s\n"), who, a.howEnded(end), a.killer(end, oom, j))
}

// controllerOn asks the controller about a job that is being ended. slurmstepd signals the
// step again and again, and so what asks: then it is asked once more.
func controllerOn(ctx context.Context, m *source.Machine, id slurmjob.ID) *fact.Job {
	ctx, cancel := context.WithTimeout(ctx, controllerPatience)
	defer cancel()
	for range 3 {
		if j, err := slurmjob.Poll(ctx, m, id); err == nil {
			return j
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// jobOf is the job of this task, as people write it.
func jobOf(m *source.Machine) string {
	if array, task := m.Getenv("SLURM_ARRAY_JOB_ID"), m.Getenv("SLURM_ARRAY_TASK_ID"); array != "" && task != "" {
		return array + "_" + task
	}
	return m.Getenv("SLURM_JOB_ID")
}

// killer says who ended a command: j is what the controller knows of the job, nil
// when it was not asked or did not answer.
func (a *app) killer(end run.Ended, oom oomKills, j *fact.Job) string {
	h, heard := end.Got(end.Signal)
	switch {
	case end.Signal == 9:
		return a.killed9(oom)
	case heard && h.Slurm() && (end.Signal == 10 || end.Signal == 12):
		return a.tr("Slurm sent it to the step, and the command does not handle it: --signal warns so before the time limit, scancel --signal at any time",
			"Slurm 向作业步发送了该信号，而命令没有处理它：--signal 在时间上限之前以此警告，scancel --signal 可随时发送")
	case heard && h.Slurm():
		return a.tr("Slurm ended the step", "Slurm 结束了作业步") + a.whyEnded(j)
	case heard && h.From == run.Terminal:
		return a.tr("it came from the terminal (Ctrl-C, or the connection was closed)", "来自终端（Ctrl-C，或连接被关闭）")
	case heard && h.From != "":
		return fmt.Sprintf(a.tr("the process %s sent it to ncclinic run, which passed it on", "进程 %s 把它发给 ncclinic run，后者转发给命令"), render.Clean(h.From, false))
	case heard:
		return a.tr("a process that is gone sent it to ncclinic run, which passed it on", "一个已退出的进程把它发给 ncclinic run，后者转发给命令")
	}
	return a.tr("sent to this command alone, so not by Slurm, which signals the whole step: another process or the command itself did",
		"只发给了该命令，因此不是 Slurm（它会通知整个作业步），而是另一个进程或命令自己发送的")
}

// killed9 says what is known of a SIGKILL that this process survived.
func (a *app) killed9(oom oomKills) string {
	switch {
	case !oom.hereOK && oom.nodeOK && oom.node > 0:
		return fmt.Sprintf(a.tr("the kernel killed %d process(es) of this node meanwhile because memory ran out, this one probably among them (dmesg -T | grep -i -e oom -e 'killed process')",
			"在此期间内核因内存耗尽终止了该节点上的 %d 个进程，很可能包括它（dmesg -T | grep -i -e oom -e 'killed process'）"), oom.node)
	case oom.hereOK:
		return a.tr("sent to this command alone, so not by Slurm, which kills the whole step, nor by the kernel for want of memory (its cgroup counted none): another process did (kill -9, timeout -k, a guard of the node's memory such as earlyoom), or the command itself",
			"只发给了该命令，因此不是 Slurm（它会终止整个作业步），也不是内核因内存不足所为（其 cgroup 没有计数），而是另一个进程（kill -9、timeout -k、earlyoom 之类的内存守护进程）或命令自己发送的")
	case oom.nodeOK:
		return a.tr("sent to this command alone, so not by Slurm, which kills the whole step, nor by the kernel for want of memory (it killed nothing on this node meanwhile): another process did (kill -9, timeout -k, a guard of the node's memory such as earlyoom), or the command itself",
			"只发给了该命令，因此不是 Slurm（它会终止整个作业步），也不是内核因内存不足所为（在此期间该节点上没有进程被它终止），而是另一个进程（kill -9、timeout -k、earlyoom 之类的内存守护进程）或命令自己发送的")
	}
	return a.tr("sent to this command alone, so not by Slurm, which kills the whole step; whether the kernel did for want of memory cannot be seen here (dmesg -T | grep -i -e oom -e 'killed process')",
		"只发给了该命令，因此不是 Slurm（它会终止整个作业步）；是否为内核因内存不足所为，在这里看不到（dmesg -T | grep -i -e oom -e 'killed process'）")
}

// whyEnded says why Slurm ends a step, as far as the controller tells: while a job
// is being ended it names the reason of few.
func (a *app) whyEnded(j *fact.Job) string {
	if j == nil {
		return a.tr(" (ncclinic job, or the line of slurmstepd, tells why)", "（原因见 ncclinic job 或 slurmstepd 的那一行）")
	}
	state, reason := j.State.Or(""), j.Reason.Or("")
	limit, limited := j.Limit.Get()
	switch {
	case state == "TIMEOUT" || reason == "TimeLimit" || state != "RUNNING" && limited && limit > 0 && j.Seconds.Or(0) >= limit:
		return fmt.Sprintf(a.tr(": the job has reached its time limit (%s)", "：作业达到时间上限（%s）"), clock(j.Limit.Or(0)))
	case state == "PREEMPTED" || strings.HasPrefix(reason, "Preempt"):
		return a.tr(": the job was preempted", "：作业被抢占")
	case state == "NODE_FAIL" || reason == "NodeDown":
		return a.tr(": a node of the job failed", "：作业的一个节点发生故障")
	case state == "CANCELLED":
		return a.tr(": the job was cancelled", "：作业被取消")
	case state == "RUNNING":
		return a.tr(" alone, the job goes on: another task failed (--kill-on-bad-exit, --wait), or somebody cancelled the step",
			"，作业仍在继续：另一个任务失败（--kill-on-bad-exit、--wait），或有人取消了该作业步")
	}
	return fmt.Sprintf(a.tr(" with the whole job %[1]s: cancelled, preempted or a failure elsewhere (ncclinic job %[1]s tells when it has ended)", "，整个作业 %[1]s 也在结束：被取消、被抢占或其他地方发生故障（结束后 ncclinic job %[1]s 会说明）"), j.ID)
}
