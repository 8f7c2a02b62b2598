package cli

import (
	"fmt"
	"sort"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// jobTitle is the headline of a report about a job that names no cause.
func (a *app) jobTitle(j *fact.Job) string {
	state := j.State.Or("?")
	switch fact.Phase(state) {
	case fact.JobWaits:
		return fmt.Sprintf(a.tr("Job %s has not started", "作业 %s 尚未开始"), j.ID)
	case fact.JobRuns:
		return fmt.Sprintf(a.tr("Job %s is running; nothing failed so far", "作业 %s 正在运行，目前没有发现失败"), j.ID)
	}
	return fmt.Sprintf(a.tr("Job %s ended without a sign of a failure", "作业 %s 已结束，没有发现故障迹象"), j.ID)
}

// jobSummary says in a few lines what Slurm knows of the job.
func (a *app) jobSummary(rep *diag.Report) []string {
	j := rep.Job
	var out []string
	comma := a.tr(", ", "，")
	add := func(name, text string) {
		if text != "" {
			out = append(out, name+strings.Repeat(" ", max(1, 8-displaywidth.String(name)))+text)
		}
	}
	head := j.ID
	if n, ok := j.Name.Get(); ok {
		head += fmt.Sprintf(" %q", fact.Clip(n, 80))
	}
	if u, ok := j.User.Get(); ok {
		head += comma + fmt.Sprintf(a.tr("user %s", "用户 %s"), u)
	}
	if p, ok := j.Partition.Get(); ok {
		head += comma + fmt.Sprintf(a.tr("partition %s", "分区 %s"), p)
	}
	add(a.tr("job", "作业"), head)
	add(a.tr("state", "状态"), a.jobState(rep))
	add(a.tr("time", "时间"), a.jobTime(j))
	add(a.tr("nodes", "节点"), a.jobNodes(j))
	add(a.tr("memory", "内存"), a.jobMemory(j))
	if j.Script.From != "" {
		add(a.tr("script", "脚本"), j.Script.From)
	}
	read, bytes := 0, int64(0)
	first := ""
	for _, o := range j.Outputs {
		if o.Unread == "" {
			if read == 0 {
				first = o.Path
			}
			read++
			bytes += o.Size
		}
	}
	switch {
	case read == 1:
		add(a.tr("output", "输出"), fmt.Sprintf("%s (%s)", first, byteCount(bytes)))
	case read > 1:
		add(a.tr("output", "输出"), fmt.Sprintf(a.tr("%d files, %s: %s …", "%d 个文件，共 %s：%s 等"), read, byteCount(bytes), first))
	}
	add(a.tr("array", "数组"), a.jobOthers(j))
	return out
}

func (a *app) jobState(rep *diag.Report) string {
	j := rep.Job
	s := j.State.Or("?")
	if e, ok := j.Exit.Get(); ok && !e.OK() {
		s += a.tr(", ", "，") + a.exitWords(e)
	}
	if r, ok := j.Reason.Get(); ok && r != "NonZeroExitCode" {
		s += fmt.Sprintf(a.tr(", reason %s", "，原因 %s"), r)
	}
	var steps []string
	for _, st := range j.Steps {
		if fact.Phase(st.State) != fact.JobEnded || st.State == "COMPLETED" || st.ID == "batch" || st.ID == "extern" {
			continue
		}
		t := fmt.Sprintf(a.tr("step %s %s", "作业步 %s %s"), st.ID, st.State)
		if e, ok := st.Exit.Get(); ok && !e.OK() {
			t += fmt.Sprintf(" (%d:%d)", e.Code, e.Signal)
		}
		if steps = append(steps, t); len(steps) == 4 {
			break
		}
	}
	if s == "COMPLETED" && len(steps) == 0 && rep.Verdict == diag.Broken {
		s += a.tr(", exit status 0: that of the last command, which does not show that another one failed", "，退出状态 0：那是最后一条命令的状态，看不出其他命令失败")
	}
	if len(steps) > 0 {
		s += a.tr("; ", "；") + strings.Join(steps, a.tr(", ", "，"))
	}
	if n := len(j.Before); n > 0 {
		s += fmt.Sprintf(a.tr("; ran %d times before, the last run ended as %s", "；之前已运行 %d 次，上一次以 %s 结束"), n, j.Before[n-1].State)
	} else if n := j.Restarts.Or(0); n > 0 {
		s += fmt.Sprintf(a.tr("; requeued %d times", "；已重新排队 %d 次"), n)
	}
	return s
}

func (a *app) exitWords(e fact.ExitStatus) string {
	if e.Signal != 0 {
		return fmt.Sprintf(a.tr("exit code %d:%d", "退出码 %d:%d"), e.Code, e.Signal)
	}
	return fmt.Sprintf(a.tr("exit status %d", "退出状态 %d"), e.Code)
}

func (a *app) jobTime(j *fact.Job) string {
	var parts []string
	if e, ok := j.End.Get(); ok && fact.Phase(j.State.Or("")) == fact.JobEnded && neverStarted(j) {
		return fmt.Sprintf(a.tr("never started, ended %s", "从未开始，结束于 %s"), e)
	}
	if s, ok := j.Start.Get(); ok {
		if fact.Phase(j.State.Or("")) == fact.JobWaits && len(j.Before) == 0 { // Slurm's guess
			return fmt.Sprintf(a.tr("expected to start at %s", "预计开始于 %s"), s)
		}
		parts = append(parts, fmt.Sprintf(a.tr("started %s", "开始于 %s"), s))
	}
	if n, ok := j.Seconds.Get(); ok && j.Start.IsKnown() {
		t := fmt.Sprintf(a.tr("ran %s", "运行 %s"), clock(n))
		if lim, ok := j.Limit.Get(); ok && lim > 0 {
			t += fmt.Sprintf(a.tr(" of %s", "，上限 %s"), clock(lim))
		}
		parts = append(parts, t)
	}
	return strings.Join(parts, a.tr(", ", "，"))
}

// clock writes seconds as Slurm does: 1-02:03:04.
func clock(sec int64) string {
	s := fmt.Sprintf("%02d:%02d:%02d", sec/3600%24, sec/60%60, sec%60)
	if d := sec / 86400; d > 0 {
		s = fmt.Sprintf("%d-%s", d, s)
	}
	return s
}

func (a *app) jobNodes(j *fact.Job) string {
	n, ok := j.Nodes.Get()
	if !ok {
		return ""
	}
	n = fact.Clip(n, 200)
	if f, ok := j.FailedNode.Get(); ok {
		n += fmt.Sprintf(a.tr(" (%s failed)", "（%s 故障）"), f)
	}
	switch {
	case j.GPUs.IsAbsent():
		n += a.tr(", no GPU granted", "，没有分到 GPU")
	case j.GPUs.Or(0) == 1:
		n += a.tr(", 1 GPU granted", "，分到 1 个 GPU")
	case j.GPUs.Or(0) > 1:
		n += fmt.Sprintf(a.tr(", %d GPUs granted", "，共分到 %d 个 GPU"), j.GPUs.V)
	}
	return n
}

func (a *app) jobMemory(j *fact.Job) string {
	var most *fact.JobStep
	for i := range j.Steps {
		s := &j.Steps[i]
		if s.MaxRSS.IsKnown() && (most == nil || s.MaxRSS.V > most.MaxRSS.V) {
			most = s
		}
	}
	text := ""
	if m, ok := j.MemMiB.Get(); ok && m > 0 {
		text = fmt.Sprintf(a.tr("%s allowed on each node", "每个节点可用 %s"), byteCount(m<<20))
	}
	if most != nil {
		if text != "" {
			text += a.tr("; ", "；")
		}
		text += fmt.Sprintf(a.tr("the biggest task was seen with %s (step %s", "采样到的最大任务为 %s（作业步 %s"), byteCount(most.MaxRSS.V), most.ID)
		if most.MaxRSSNode != "" {
			text += fmt.Sprintf(a.tr(", %s", "，%s"), most.MaxRSSNode)
		}
		text += a.tr(")", "）")
	}
	return text
}

// byteCount writes an amount of memory or of text.
func byteCount(b int64) string {
	switch {
	case b >= 10<<30:
		return fmt.Sprintf("%d GiB", b>>30)
	case b >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
	case b >= 10<<20:
		return fmt.Sprintf("%d MiB", b>>20)
	case b >= 10<<10:
		return fmt.Sprintf("%d KiB", b>>10)
	}
	return fmt.Sprintf("%d B", b)
}

// jobOthers counts the other tasks of an array, or the other components.
func (a *app) jobOthers(j *fact.Job) string {
	if len(j.Others) == 0 {
		return ""
	}
	n := map[string]int{j.State.Or("?"): 1}
	var failed []string
	for _, o := range j.Others {
		n[o.State]++
		if fact.Phase(o.State) == fact.JobEnded && o.State != "COMPLETED" && len(failed) < 5 {
			failed = append(failed, o.ID)
		}
	}
	var states []string
	for s := range n {
		states = append(states, s)
	}
	sort.Slice(states, func(i, k int) bool {
		return n[states[i]] > n[states[k]] || n[states[i]] == n[states[k]] && states[i] < states[k]
	})
	for i, s := range states {
		states[i] = fmt.Sprintf("%d %s", n[s], s)
	}
	text := strings.Join(states, a.tr(", ", "，")) + fmt.Sprintf(a.tr("; this is about %s", "；此处说明的是 %s"), j.ID)
	if len(failed) > 0 {
		text += fmt.Sprintf(a.tr("; see also %s", "；另见 %s"), strings.Join(failed, " "))
	}
	return text
}
