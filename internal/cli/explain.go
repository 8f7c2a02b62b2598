package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/rules"
)

// streamLimit bounds what is read of pipes and devices, which may have no end.
const streamLimit = 8 << 30

func (a *app) explainCmd() *cobra.Command {
	var limit, since string
	c := &cobra.Command{
		Use:   "explain FILE...",
		Short: a.tr("name the cause of a dead job from its logs and whatever was pasted", "根据日志和粘贴的各种输出，说明作业失败的原因"),
		Long: a.tr(`explain reads any mixture of job logs (merged, srun --label, one per rank or
node), batch scripts and listings (pip list, conda list, nvidia-smi, env, ldd,
dmesg, sacct, scontrol …), tells by content what each is, and names the cause.
The facts that "ncclinic facts" saved in the job may stand among them.
Folders and patterns (logs/*.err, 'slurm-%j.out') are expanded; "-" is standard
input; .gz, .bz2, .xz and .zst are read as they are, archives (.tar, .tar.gz,
.zip …) with all logs in them, and the JSON records of loggers as what was said.`,
			`explain 可以读入任意组合的作业日志（合并的、srun --label 的、每个 rank 或节点一份的）、
批处理脚本以及各种命令输出（pip list、conda list、nvidia-smi、env、ldd、dmesg、sacct、
scontrol 等），按内容识别，并指出原因。也可以同时给出 "ncclinic facts" 在作业中保存的
文件。可以给目录和通配符（logs/*.err、'slurm-%j.out'）；
"-" 表示标准输入；.gz、.bz2、.xz、.zst 可直接读取；归档（.tar、.tar.gz、.zip 等）会读取其中的全部日志；
以 JSON 记录的日志按其中的内容读取。`),
		Example: `  ncclinic explain slurm-123.out train.sbatch pip-list.txt
  ncclinic explain slurm-123.out facts.json
  ncclinic explain logs/          # ` + a.tr("one file per rank", "每个 rank 一个文件") + `
  kubectl logs pod | ncclinic explain -`,
		Args: a.atLeastOne("explain"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := logs.Options{Mask: mask.Text}
			var err error
			if o.Limit, err = size(limit); err != nil {
				return usagef("--limit: %v", err)
			}
			if o.Since, err = when(since, time.Now()); err != nil {
				return usagef("--since: %v", err)
			}
			return a.explain(cmd, args, o)
		},
	}
	a.addOutputFlags(c)
	c.Flags().Lookup("format").Usage = a.tr("form of the report: text, json or sarif", "报告格式：text、json 或 sarif")
	c.Flags().StringVar(&limit, "limit", "", a.tr("read at most this much of each input, after decompression (10M, 2G)", "每个输入最多读取的字节数（解压后），如 10M、2G"))
	c.Flags().StringVar(&since, "since", "", a.tr("leave out events before this time (2026-11-30T10:00, or an age: 2h, 3d)", "忽略该时间之前的事件（2026-11-30T10:00，或距今时长：2h、3d）"))
	return c
}

func (a *app) explain(cmd *cobra.Command, args []string, o logs.Options) error {
	if f := a.out.format; f != "text" && f != "json" && f != "sarif" {
		return a.notOneOf("--format", f, "text", "json", "sarif")
	}
	if a.out.maxEvidence < 1 {
		return usagef(a.tr("--max-evidence: %d is less than 1", "--max-evidence：%d 小于 1"), a.out.maxEvidence)
	}
	base, lb, err := a.loadLogs("cause")
	if err != nil {
		return err
	}
	o.Signatures = signatures(lb)
	args, own := reports(args)
	if len(args) == 0 && len(own) == 1 {
		return a.showAgain(own[0], lb)
	}
	if len(args) == 0 {
		return usagef("%s", a.tr("several reports of ncclinic and no log: show them one by one", "给了多个 ncclinic 报告而没有日志：请逐个查看"))
	}
	args, facts, err := bundles(args)
	if err != nil {
		return err
	}
	if len(args) == 0 { // no log: what check is for
		if len(facts) > 1 {
			return usagef("%s", a.tr("several facts files and no log: judge each with ncclinic check FILE", "给了多个 facts 文件而没有日志：请分别用 ncclinic check FILE 诊断"))
		}
		return a.judge(facts[0].b)
	}
	ins, err := a.inputs(args)
	if err != nil {
		return err
	}
	// Folders and patterns may hold facts and reports too.
	var more []given
	ins = slices.DeleteFunc(ins, func(in logs.Input) bool {
		if err != nil || in.Path == "-" || !isBundle(in.Path) {
			return false
		}
		var g []given
		_, g, err = bundles([]string{in.Path})
		more = append(more, g...)
		return true
	})
	if err != nil {
		return err
	}
	facts = append(facts, more...)
	if len(ins) == 0 && len(facts) == 1 {
		return a.judge(facts[0].b)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(30)) // logs of any size in little memory
	l, err := logs.Collect(cmd.Context(), ins, o)
	if err != nil {
		for _, p := range l.Problems {
			return usagef("%s: %s", p.What, p.Why)
		}
		return usageError{err}
	}
	if f, ok := allBinary(l); ok {
		why := "not a text file"
		if i := slices.IndexFunc(l.Problems, func(p fact.Problem) bool { return p.What == f }); i >= 0 {
			why = l.Problems[i].Why
		}
		return usagef("%s: %s", f, diag.Reason(why, a.lang))
	}
	for _, p := range own {
		l.Problems = append(l.Problems, fact.Problem{What: p, Why: a.tr(ownReport, ownReportZh)})
	}
	for _, f := range l.Files {
		if f.Kind == fact.KindReport {
			l.Problems = append(l.Problems, fact.Problem{What: f.Path, Why: a.tr(ownReport, ownReportZh)})
		}
	}
	sure := explain.TorchDir(l) != "" // asked before facts are added to what the log says
	facts = slices.DeleteFunc(facts, func(g given) bool { return !g.fits(l, a) })
	for _, g := range facts {
		g.addTo(l)
	}
	rep := a.explained(l, base, lb)
	if a.logs != nil {
		a.logs(l)
	}
	nothingToJudge(&rep, l)
	scripts := rep.Verdict != diag.OK && slices.ContainsFunc(l.Texts, func(t fact.SourceText) bool { return t.Script != nil && t.Script.Live() })
	families := []string{"cause"}
	if len(facts) > 0 {
		families = rules.Environment
	}
	if scripts {
		families = append(slices.Clone(families), "lint")
	}
	if len(families) > 1 {
		if base, err = a.load(families...); err != nil {
			return err
		}
	}
	var ran []diag.Ran
	for _, g := range facts {
		check := diag.Run(base.Set(), g.b)
		adopt(&rep, &check, sure)
		ran = append(ran, check.Ran...)
	}
	askBundles(&rep, facts)
	if scripts {
		ran = append(ran, contribute(&rep, l, base)...)
	}
	rep.Ran = append(explain.Ran(&rep, l, base.Set()), mergeRan(ran)...)
	known := diag.Known{Job: explain.JobNumber(l)}
	if p := explain.ScriptPath(l); p != "" {
		known.Script = shellWord(p)
	}
	diag.Concrete(&rep, known)
	texts := bothTexts{base, lb}
	rep.Tool = Version
	return a.showReport(&rep, texts)
}

// A report of this program among logs.
const (
	ownReport   = "a report of ncclinic, not a log: not used"
	ownReportZh = "是 ncclinic 的报告，不是日志，未采用"
)

// bothTexts finds the prose of causes, then that of log rules.
type bothTexts struct {
	causes *rules.Base
	logs   *rules.LogBase
}

func (t bothTexts) Text(id, lang string) (diag.Text, bool) {
	if x, ok := t.causes.Text(id, lang); ok {
		return x, true
	}
	return t.logs.Text(id, lang)
}

func signatures(b *rules.LogBase) []logs.Signature {
	out := make([]logs.Signature, 0, len(b.Rules))
	for i := range b.Rules {
		r := &b.Rules[i]
		out = append(out, logs.Signature{Rule: r.ID, Sig: r.Sig, Role: r.Role, Literals: r.Literals, Regex: r.Res, Strict: r.RegexRequired})
	}
	return out
}

// maxInputs bounds how many files a folder or pattern may yield.
const maxInputs = 200000

// maxFound bounds the archives of a folder that are looked into: larger ones hold
// data sets and environments.
const maxFound = 64 << 20

// archiveName matches the files of a folder that are looked into.
var archiveName = lazyre.New(`(?i)\.(?:zip|tar|tgz|tbz2?|txz|tzst|tar\.\w{2,4})$`)

// inputs expands what the user names.
func (a *app) inputs(args []string) ([]logs.Input, error) {
	var out []logs.Input
	seen := map[string]bool{}
	add := func(path string, from origin) {
		if seen[path] || len(out) >= maxInputs {
			return
		}
		seen[path] = true
		in := logs.Input{Path: path, Node: from.node, Task: from.task, Open: func() (io.ReadCloser, error) { return openFile(path) }}
		if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
			in.Limit = streamLimit
		}
		out = append(out, in)
	}
	open := func(path string) (bool, error) {
		ins, ok, err := archived(path)
		out = append(out, ins...)
		return ok, err
	}
	for _, arg := range args {
		if arg == "-" {
			out = append(out, logs.Input{Path: "-", Limit: streamLimit, Open: func() (io.ReadCloser, error) { return io.NopCloser(a.In), nil }})
			continue
		}
		st, err := os.Stat(arg)
		switch {
		case err == nil && st.IsDir():
			err := filepath.WalkDir(arg, func(p string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
					return nil
				}
				if st, err := d.Info(); err == nil && st.Size() <= maxFound && archiveName.MatchString(d.Name()) {
					if ok, err := open(p); ok || err != nil {
						return err
					}
				}
				add(p, origin{})
				return nil
			})
			if err != nil {
				return nil, usageError{err}
			}
		case err == nil:
			if ok, err := open(arg); err != nil {
				return nil, usageError{err}
			} else if !ok {
				add(arg, origin{})
			}
		case strings.ContainsAny(arg, "%*?["):
			m := expand(arg)
			if len(m) == 0 {
				return nil, usagef(a.tr("%s: no file has such a name", "%s：没有匹配的文件"), arg)
			}
			for _, x := range m {
				add(x.path, x.origin)
			}
		default:
			return nil, usageError{err}
		}
	}
	return out, nil
}

// size reads 10M, 2G, 4096.
func size(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	mul := int64(1)
	switch s[len(s)-1] {
	case 'k', 'K':
		mul = 1 << 10
	case 'm', 'M':
		mul = 1 << 20
	case 'g', 'G':
		mul = 1 << 30
	case 't', 'T':
		mul = 1 << 40
	}
	if mul > 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)/mul {
		return 0, usagef("%q is not a size", s)
	}
	return n * mul, nil
}

// when reads a time or an age as the clock on the wall shows it, which is what
// logs show too: 10:00 here is 10:00 UTC in the result, whatever the zone.
func when(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	wall := func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	}
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if k, err := strconv.Atoi(n); err == nil && k >= 0 && k < 1e5 {
			return wall(now.AddDate(0, 0, -k)), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return wall(now.Add(-d)), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return wall(t.In(now.Location())), nil
	}
	for _, f := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(f, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%q is neither a time nor an age", s)
}
