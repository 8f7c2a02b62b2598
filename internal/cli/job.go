package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

type jobFlags struct {
	watch             bool
	interval, silence time.Duration
	limit, cluster    string
}

// clusterName holds what names of clusters are made of.
const clusterName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// Bounds of --interval: the controller serves the whole cluster.
const minInterval = 5 * time.Second

func (a *app) jobCmd() *cobra.Command {
	var f jobFlags
	c := &cobra.Command{
		Use:   "job JOBID[_TASK]",
		Short: a.tr("name the cause of a dead job by its number", "给出作业号，说明作业失败的原因"),
		Long: a.tr(`job asks Slurm what it knows of a job (scontrol while the controller remembers it,
sacct where the site keeps accounting), takes the batch script that Slurm kept,
finds the files that the job wrote (--output with its %-patterns, those of srun,
redirections), and names one cause from all of it, as "ncclinic explain" does with
files. What is not to be had is said: accounting is off, the job is forgotten, it
is another user's.

Of an array without a task number the first task that failed is explained, and
the others are counted. --watch waits for a job that has not ended and reports
when it fails, ends, or writes nothing for a long time; it asks the controller once
per interval, and less often the longer nothing changes.`,
			`job 向 Slurm 查询作业信息（控制器还记得时用 scontrol，站点有记账时用 sacct），取出 Slurm
保存的批处理脚本，找到作业写出的文件（--output 及其 % 模式、srun 的输出、重定向），再像
"ncclinic explain" 处理文件那样，由全部信息给出唯一的原因。拿不到的信息会说明：没有启用
记账、作业已被遗忘、作业属于其他用户。

对没有给出任务号的作业数组，解释最先失败的任务，并统计其余任务。--watch 等待尚未结束的
作业，在它失败、结束或长时间没有输出时报告；每个间隔只询问控制器一次，长时间没有变化时
间隔会加长。`),
		Example: `  ncclinic job 4711
  ncclinic job 4711_3               # ` + a.tr("task 3 of an array", "作业数组的任务 3") + `
  ncclinic job 4711 --format json
  ncclinic job 4711 --watch`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s", a.tr("job needs the number of one job: ncclinic job 4711", "job 需要一个作业号：ncclinic job 4711"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			id, err := slurmjob.ParseID(args[0])
			if err != nil {
				zh := "不是作业号，例如 4711、4711_3（作业数组的任务 3）或 4711+1（异构作业的组件）"
				if errors.Is(err, slurmjob.ErrSeveral) {
					zh = "指定了多个作业；请只给一个：4711_3 为数组的一个任务，4711 为整个数组（解释其中最先失败的任务）"
				}
				return usagef("%q: %s", args[0], a.tr(err.Error(), zh))
			}
			if id.Cluster = f.cluster; strings.Trim(f.cluster, clusterName) != "" || f.cluster == "all" {
				return usagef("--clusters: %q: %s", f.cluster, a.tr("the name of one cluster", "应为一个集群的名称"))
			}
			switch {
			case f.interval < minInterval:
				return usagef("--interval: %s", fmt.Sprintf(a.tr("must be %s or more: the controller serves the whole cluster", "不能小于 %s：控制器为整个集群服务"), minInterval))
			case f.silence <= 0:
				return usagef("--silence: %s", a.tr("must be longer than 0, such as 15m", "必须大于 0，例如 15m"))
			}
			o := logs.Options{Mask: mask.Text}
			if o.Limit, err = size(f.limit); err != nil {
				return usagef("--limit: %v", err)
			}
			m, err := run.NewMachine()
			if err != nil {
				return err
			}
			if f.watch {
				return a.watchJob(c.Context(), m, id, o, f)
			}
			return a.job(c.Context(), m, id, o, 0, "")
		},
	}
	a.addOutputFlags(c)
	c.Flags().Lookup("format").Usage = a.tr("form of the report: text, json or sarif", "报告格式：text、json 或 sarif")
	c.Flags().BoolVar(&f.watch, "watch", false, a.tr("wait until the job fails, ends or is silent for long, then report", "等到作业失败、结束或长时间没有输出时再报告"))
	c.Flags().DurationVar(&f.interval, "interval", 30*time.Second, a.tr("with --watch: how often the controller is asked at first", "与 --watch 一起使用：最初询问控制器的间隔"))
	c.Flags().DurationVar(&f.silence, "silence", 15*time.Minute, a.tr("with --watch: report a running job that writes nothing for this long", "与 --watch 一起使用：作业多久没有输出就报告"))
	c.Flags().StringVarP(&f.cluster, "clusters", "M", "", a.tr("the cluster that the job is on, as for squeue (default: the one of this host)", "作业所在的集群，用法同 squeue（默认为本机所属集群）"))
	c.Flags().StringVar(&f.limit, "limit", "", a.tr("read at most this much of each file, after decompression (10M, 2G)", "每个文件最多读取的字节数（解压后），如 10M、2G"))
	return c
}

// job explains one job. silent is how long a running job wrote nothing, 0 when
// nobody asked for that.
func (a *app) job(ctx context.Context, m *source.Machine, id slurmjob.ID, o logs.Options, silent time.Duration, last string) error {
	switch a.out.format {
	case "text", "json", "sarif":
	default:
		return a.notOneOf("--format", a.out.format, "text", "json", "sarif")
	}
	ans, err := lookUp(ctx, m, id)
	if err != nil {
		return a.noJob(id, ans, err)
	}
	j := ans.Job
	slurmjob.EarlierRuns(ctx, m, j)

	base, lb, err := a.loadLogs("cause", "lint")
	if err != nil {
		return err
	}
	o.Signatures = signatures(lb)
	defer debug.SetGCPercent(debug.SetGCPercent(30)) // logs of any size in little memory
	l, err := logs.Collect(ctx, jobInputs(m, j, ans.Script), o)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && l == nil {
		return err
	}
	mask.Deep(j)
	l.Job = j
	rep := a.explained(l, base, lb)
	if a.logs != nil {
		a.logs(l)
	}
	rep.Subject = fact.Subject{Kind: "job", Name: j.ID}
	if rep.Verdict == diag.OK && fact.Phase(j.State.Or("")) == "" {
		rep.Verdict = diag.Unknown // a state that this version does not know
	}
	if silent > 0 {
		addSilence(&rep, base.Set(), j, silent, last)
	}
	rep.Ran = mergeRan(append(rep.Ran, contribute(&rep, l, base)...))
	rep.Problems = append(a.jobProblems(ans, id), rep.Problems...)
	rep.Job = j
	known := diag.Known{Job: j.ID, Cluster: id.Cluster, Running: fact.Phase(j.State.Or("")) != fact.JobEnded}
	if strings.HasPrefix(j.Script.From, "/") {
		known.Script = shellWord(j.Script.From)
	}
	diag.Concrete(&rep, known)
	rep.Tool = Version
	rep = rep.Normal()
	return a.showReport(&rep, bothTexts{base, lb})
}

// lookUp asks Slurm about a job and finds the files that it wrote. A job that is
// said to wait and has written something was started in between: then Slurm is
// asked once more.
func lookUp(ctx context.Context, m *source.Machine, id slurmjob.ID) (*slurmjob.Answer, error) {
	for again := false; ; again = true {
		ans, err := slurmjob.Ask(ctx, m, id)
		if err != nil {
			return ans, err
		}
		j := ans.Job
		var s *fact.Script
		if ans.Script != nil {
			s = script.Parse(scriptName(j), ans.Script, script.Options{Batch: true, Open: besideJob(m, j)})
		}
		slurmjob.Outputs(m, j, s)
		waits := fact.Phase(j.State.Or("")) == fact.JobWaits && j.Restarts.Or(0) == 0 && len(j.Before) == 0
		if again || !waits || !slices.ContainsFunc(j.Outputs, func(o fact.JobOutput) bool { return o.Unread == "" }) {
			return ans, nil
		}
	}
}

// neverStarted reports that a job ended, or waits, without having had a node.
func neverStarted(j *fact.Job) bool {
	return fact.Phase(j.State.Or("")) == fact.JobWaits || fact.Phase(j.State.Or("")) == fact.JobEnded && !j.Nodes.IsKnown() && !j.BatchHost.IsKnown() && len(j.Steps) == 0
}

// scriptName is the name under which the batch script is quoted: the file that
// was submitted when that is what was read, else a name that says what it is.
func scriptName(j *fact.Job) string {
	if strings.HasPrefix(j.Script.From, "/") {
		return j.Script.From
	}
	if p := j.Script.Path; p != "" {
		return path.Base(p) + "@" + j.ID
	}
	return "script@" + j.ID
}

// jobInputs are the script and the files that the job wrote.
func jobInputs(m *source.Machine, j *fact.Job, text []byte) []logs.Input {
	var ins []logs.Input
	if text != nil {
		ins = append(ins, logs.Input{Path: scriptName(j), Batch: true, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }})
	}
	for _, out := range j.Outputs {
		if out.Unread == "" && out.Size > out.Before {
			ins = append(ins, logs.Input{Path: out.Path, Open: func() (io.ReadCloser, error) { return slurmjob.OpenRun(m, j, &out) }})
		}
	}
	return ins
}

// besideJob opens files that the script reads into its shell, as the job named
// them from its working directory; only for the job's owner.
func besideJob(m *source.Machine, j *fact.Job) func(string) ([]byte, error) {
	wd := j.WorkDir.Or("")
	if !strings.HasPrefix(wd, "/") || j.UID.Or(-1) != m.UID {
		return nil
	}
	return beside(path.Join(wd, "script"))
}

// addSilence tells that a running job writes nothing.
func addSilence(rep *diag.Report, set *diag.Set, j *fact.Job, silent time.Duration, last string) {
	f := set.Finding("", "run-silent", diag.Proven, diag.Args{"variant": "for", "minutes": fmt.Sprint(int(silent.Minutes())), "file": last, "job": j.ID}, fact.File(last))
	if rep.Cause != nil {
		f.Role = diag.Contributing
		rep.Findings = append(rep.Findings, f)
		return
	}
	rep.Cause, rep.Verdict = &f.ID, diag.Warned
	rep.Findings = append([]diag.Finding{f}, slices.DeleteFunc(rep.Findings, func(f diag.Finding) bool { return f.ID == "unknown" })...)
}

// noJob says why there is no job to explain.
func (a *app) noJob(id slurmjob.ID, ans *slurmjob.Answer, err error) error {
	switch {
	case errors.Is(err, slurmjob.ErrNoSlurm):
		return usagef("%s", a.tr("neither scontrol nor sacct is on PATH: run this on a host of the cluster, or give the files to ncclinic explain", "PATH 中没有 scontrol 和 sacct：请在集群的节点上运行，或把文件交给 ncclinic explain"))
	case errors.Is(err, slurmjob.ErrNobody) && outside(ans) != nil:
		return a.slurmError("", outside(ans))
	case errors.Is(err, slurmjob.ErrUnknown), errors.Is(err, slurmjob.ErrNobody):
		var parts []string
		for _, side := range []string{slurmjob.SideScontrol, slurmjob.SideSacct} {
			parts = append(parts, side+": "+a.sideWords(side, ans))
		}
		head := a.tr("Slurm knows no job %s", "Slurm 不知道作业 %s")
		if errors.Is(err, slurmjob.ErrNobody) {
			head = a.tr("Slurm did not answer about job %s", "Slurm 没有回答关于作业 %s 的查询")
		}
		return usagef("%s (%s)", fmt.Sprintf(head, id), strings.Join(parts, a.tr("; ", "；")))
	}
	return err
}

// outside is the error of commands that all reach no cluster, nil when one did
// or failed in another way.
func outside(ans *slurmjob.Answer) error {
	var out error
	for _, side := range []string{slurmjob.SideScontrol, slurmjob.SideSacct} {
		if ans.Sides[side] == slurmjob.NoTool {
			continue
		}
		o, ok := slurm.Outside(side, ans.Why[side])
		if !ok || ans.Sides[side] != slurmjob.Failing {
			return nil
		}
		if out == nil {
			out = o
		}
	}
	return out
}

// slurmError is an error of Slurm's commands; where they reach no cluster it
// says that first.
func (a *app) slurmError(label string, err error) error {
	var o *slurm.OutsideError
	if errors.As(err, &o) {
		return usagef(a.tr("%sSlurm's commands do not reach a cluster from this host: run this on a login node of the cluster (%v)", "%s本机上的 Slurm 命令连不到任何集群：请在集群的登录节点上运行（%v）"), label, o)
	}
	if label == "" || strings.HasPrefix(label, "--nodes") {
		return usageError{err}
	}
	return usagef("%s%v", label, err)
}

// sideWords says what became of asking a side.
func (a *app) sideWords(side string, ans *slurmjob.Answer) string {
	why := ans.Why[side]
	switch ans.Sides[side] {
	case slurmjob.NoTool:
		return a.tr("not on PATH", "不在 PATH 中")
	case slurmjob.Off:
		return a.tr("this site keeps no accounting", "该站点没有启用记账")
	case slurmjob.Forgot:
		if side == slurmjob.SideScontrol {
			return a.tr("the controller does not know it, or no longer", "控制器不知道该作业，或已不再记得")
		}
		return a.tr("no record, or none that you may see", "没有记录，或您无权查看")
	case slurmjob.Failing:
		return why
	}
	return a.tr("knows it", "有记录")
}

// jobProblems says what could not be had: half of the facts must not look like all.
func (a *app) jobProblems(ans *slurmjob.Answer, id slurmjob.ID) []fact.Problem {
	var out []fact.Problem
	j := ans.Job
	if id.Step != "" {
		why := a.tr("a step; the whole job is explained", "是作业步；解释的是整个作业")
		if ans.Sides[slurmjob.SideSacct] == slurmjob.Knows && !slices.ContainsFunc(j.Steps, func(s fact.JobStep) bool { return s.ID == id.Step }) {
			why = a.tr("the job has no such step; the whole job is explained", "作业没有这个作业步；解释的是整个作业")
		}
		out = append(out, fact.Problem{What: id.String() + "." + id.Step, Why: why})
	}
	s := ans.Sides[slurmjob.SideSacct]
	early := s == slurmjob.Forgot && fact.Phase(j.State.Or("")) == fact.JobWaits // accounting hears of a job some seconds later
	if (s != slurmjob.Knows || ans.Why[slurmjob.SideSacct] != "") && !early {
		why := a.sideWords(slurmjob.SideSacct, ans)
		if s == slurmjob.Knows {
			why = ans.Why[slurmjob.SideSacct]
		} else {
			why += a.tr(": steps and memory are not known", "：作业步和内存用量未知")
		}
		out = append(out, fact.Problem{What: "sacct", Why: why})
	}
	switch s := ans.Sides[slurmjob.SideScontrol]; {
	case s == slurmjob.Failing:
		out = append(out, fact.Problem{What: "scontrol", Why: ans.Why[slurmjob.SideScontrol]})
	case s != slurmjob.Knows && fact.Phase(j.State.Or("")) != fact.JobEnded:
		out = append(out, fact.Problem{What: "sacct", Why: fmt.Sprintf(a.tr("says %s, but the controller does not know the job: the record was never closed (sacctmgr show runawayjobs)", "状态为 %s，但控制器不知道该作业：记录没有正常关闭（sacctmgr show runawayjobs）"), j.State.Or("?"))})
	}
	if j.UID.State == fact.Failed {
		out = append(out, fact.Problem{What: "scontrol", Why: a.tr("names several owners: the name of the job or a comment holds lines that look like scontrol's; its files are not read", "给出了多个所有者：作业名或注释中含有形似 scontrol 输出的行；不读取其文件")})
	}
	switch {
	case ans.Script == nil:
		out = append(out, fact.Problem{What: a.tr("batch script", "批处理脚本"), Why: a.tr("not to be had: Slurm did not keep it, or gives it to its owner only", "无法取得：Slurm 没有保存，或只提供给其所有者")})
	case j.Script.Changed:
		out = append(out, fact.Problem{What: j.Script.From, Why: a.tr("changed after the submission: the job ran an earlier version", "提交之后被修改过：作业运行的是之前的版本")})
	}
	for _, o := range j.Outputs {
		if o.Before > 0 {
			out = append(out, fact.Problem{What: o.Path, Why: fmt.Sprintf(a.tr("its first %s are of earlier runs of the job, before it was requeued: not judged (ncclinic explain FILE reads them)", "开头的 %s 来自作业重新排队之前的运行，未作判断（可用 ncclinic explain FILE 读取）"), byteCount(o.Before))})
		}
		if w := a.unreadWords(o.Unread); w != "" && !(o.Unread == fact.OutMissing && neverStarted(j)) {
			out = append(out, fact.Problem{What: o.Path, Why: w})
		}
	}
	return out
}

func (a *app) unreadWords(why string) string {
	switch why {
	case fact.OutMissing:
		return a.tr("no such file", "文件不存在")
	case fact.OutNoFolder:
		return a.tr("no such folder", "目录不存在")
	case fact.OutDenied:
		return a.tr("permission denied", "没有权限")
	case fact.OutDevice:
		return a.tr("a device: what the job wrote there is gone", "是设备文件：写到那里的内容已经丢失")
	case fact.OutSpecial:
		return a.tr("not a regular file: not read", "不是普通文件，未读取")
	case fact.OutForeign:
		return a.tr("belongs to another user than the job: not read", "不属于作业的用户，未读取")
	case fact.OutEarlier:
		return a.tr("older than the job, which did not write it: not read", "早于该作业，不是它写的，未读取")
	case fact.OutLater:
		return a.tr("written after the end of the job, so perhaps by a later one: not read (ncclinic explain FILE reads it)", "在作业结束之后被写入，可能来自后来的作业，未读取（可用 ncclinic explain FILE 读取）")
	case fact.OutUnknown:
		return a.tr("its name is known only when the script runs", "文件名在脚本运行时才能确定")
	case fact.OutTooMany:
		return a.tr("and more files: not read", "及更多文件，未读取")
	}
	return ""
}
