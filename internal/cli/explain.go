package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/render"
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
input; .gz, .xz and .zst are read as they are.`,
			`explain 可以读入任意组合的作业日志（合并的、srun --label 的、每个 rank 或节点一份的）、
批处理脚本以及各种命令输出（pip list、conda list、nvidia-smi、env、ldd、dmesg、sacct、
scontrol 等），按内容识别，并指出原因。也可以同时给出 "ncclinic facts" 在作业中保存的
文件。可以给目录和通配符（logs/*.err、'slurm-%j.out'）；
"-" 表示标准输入；.gz、.xz、.zst 可直接读取。`),
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
	c.Flags().StringVar(&since, "since", "", a.tr("leave out events before this time (2026-11-30T10:00 or 2h)", "忽略该时间之前的事件（2026-11-30T10:00 或 2h）"))
	return c
}

func (a *app) explain(cmd *cobra.Command, args []string, o logs.Options) error {
	base, err := a.load("cause")
	if err != nil {
		return err
	}
	lb, err := rules.LoadLog(rules.EmbeddedLog())
	if err != nil {
		return err
	}
	o.Signatures = signatures(lb)
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
	defer debug.SetGCPercent(debug.SetGCPercent(30)) // logs of any size in little memory
	l, err := logs.Collect(cmd.Context(), ins, o)
	if err != nil {
		for _, p := range l.Problems {
			return usagef("%s: %s", p.What, p.Why)
		}
		return usageError{err}
	}
	if f, ok := allBinary(l); ok {
		return usagef("%s: %s", f, a.tr("not a text file", "不是文本文件"))
	}
	sure := explain.TorchDir(l) != "" // asked before facts are added to what the log says
	facts = slices.DeleteFunc(facts, func(g given) bool { return !g.fits(l, a) })
	for _, g := range facts {
		g.addTo(l)
	}
	rep := explain.Explain(l, base.Set(), explain.Options{MaxEvidence: a.out.maxEvidence, Rules: func(id string) (explain.RuleInfo, bool) {
		r := lb.ByID(id)
		if r == nil {
			return explain.RuleInfo{}, false
		}
		return explain.RuleInfo{Sig: r.Sig, Role: r.Role, Certainty: r.Certainty, Proves: r.Proves, Suggests: r.Suggests}, true
	}})
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
	texts := bothTexts{base, lb}
	rep.Tool = Version
	switch a.out.format {
	case "json":
		err = render.JSON(a.Out, &rep, texts, a.lang)
	case "text":
		var st render.Style
		if st, err = a.style(); err != nil {
			return err
		}
		err = render.Text(a.Out, &rep, texts, render.TextOptions{Lang: a.lang, Style: st, Verbose: a.out.verbose, MaxEvidence: a.out.maxEvidence})
	case "sarif":
		err = render.SARIF(a.Out, &rep, texts, a.lang)
	default:
		return usagef("--format: %q is not text, json or sarif", a.out.format)
	}
	if err != nil {
		return err
	}
	if c := rep.ExitCode(); c != 0 {
		return exitError(c)
	}
	return nil
}

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

// inputs expands what the user names.
func (a *app) inputs(args []string) ([]logs.Input, error) {
	var out []logs.Input
	seen := map[string]bool{}
	add := func(path string) {
		if seen[path] || len(out) >= maxInputs {
			return
		}
		seen[path] = true
		in := logs.Input{Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
		if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
			in.Limit = streamLimit
		}
		out = append(out, in)
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
				if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") {
					add(p)
				}
				return nil
			})
			if err != nil {
				return nil, usageError{err}
			}
		case err == nil:
			add(arg)
		default:
			m := expand(arg)
			if len(m) == 0 {
				return nil, usageError{err}
			}
			for _, p := range m {
				add(p)
			}
		}
	}
	return out, nil
}

// expand finds the files of a pattern: shell globs, and Slurm's %j, %t, %N.
func expand(arg string) []string {
	pat := arg
	if strings.Contains(pat, "%") {
		var b strings.Builder
		for i := 0; i < len(pat); i++ {
			if pat[i] == '%' && i+1 < len(pat) && strings.IndexByte("AabJjNnstux", pat[i+1]) >= 0 {
				b.WriteByte('*')
				i++
				continue
			}
			b.WriteByte(pat[i])
		}
		pat = b.String()
	}
	m, err := filepath.Glob(pat)
	if err != nil {
		return nil
	}
	sort.Strings(m)
	return m
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

// when reads a time or an age.
func when(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	for _, f := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(f, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%q is neither a time nor an age", s)
}
