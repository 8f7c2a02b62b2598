package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lint"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/rules"
	rule "github.com/ncclinic/ncclinic/rules/lint"
)

// maxScript bounds what is read of one script.
const maxScript = 64 << 20

type lintFlags struct {
	recursive, notes, fix, diff, cluster bool
	slurm, config, stdinName, failOn     string
	enable, disable                      []string
}

func (a *app) lintCmd() *cobra.Command {
	var f lintFlags
	c := &cobra.Command{
		Use:   "lint FILE...",
		Short: a.tr("find what is wrong with a batch script before it waits in the queue", "在排队之前找出批处理脚本的问题"),
		Long: a.tr(`lint reads Slurm batch scripts that launch PyTorch: the #SBATCH lines exactly as
sbatch reads them, and the rest as its shell would run it, followed through
variables, functions, bash -c, here-documents, srun, containers and launchers.
Nothing is executed. What cannot be followed is not judged.

"# ncclinic: ignore=RULE" at the end of a line, or alone above it, silences a
rule; a .ncclinic.yaml beside the script or above it sets severities, what to
ignore, options of the site and the release of Slurm.`,
			`lint 检查启动 PyTorch 的 Slurm 批处理脚本：#SBATCH 行完全按 sbatch 的方式读取，其余部分按
shell 的执行方式跟踪变量、函数、bash -c、here-document、srun、容器和启动器。
不会执行任何内容；无法跟踪的部分不作判断。

在行尾或单独一行写 "# ncclinic: ignore=规则" 可以忽略某条规则；脚本所在目录或上级目录中的
.ncclinic.yaml 可设置严重级别、忽略项、站点选项和 Slurm 版本。`),
		Example: `  ncclinic lint train.sbatch
  ncclinic lint -r scripts/ --format sarif > lint.sarif
  ncclinic lint --diff train.sbatch    # what --fix would change
  sbatch_args… | ncclinic lint -`,
		Args: a.atLeastOne("lint"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.lint(cmd.Context(), args, f) },
	}
	c.Example = strings.Replace(c.Example, "sbatch_args… |", "cat train.sbatch |", 1)
	fl := c.Flags()
	fl.StringVar(&a.out.format, "format", "text", a.tr("form of the report: text, json, sarif, github, checkstyle", "报告格式：text、json、sarif、github、checkstyle"))
	fl.BoolVarP(&a.out.verbose, "verbose", "v", false, a.tr("say why, and what to do", "说明原因和解决办法"))
	fl.StringVar(&a.out.color, "color", "auto", a.tr("colours: auto (on a terminal, unless NO_COLOR is set), always, never", "颜色：auto（终端且未设置 NO_COLOR）、always、never"))
	fl.BoolVarP(&f.recursive, "recursive", "r", false, a.tr("lint the batch scripts below folders", "检查目录下的批处理脚本"))
	fl.BoolVar(&f.notes, "notes", false, a.tr("show notes too, not only errors and warnings", "除错误和警告外也显示提示"))
	fl.BoolVar(&f.fix, "fix", false, a.tr("apply the edits that need no decision, and say what they change", "应用无需人工判断的修改，并说明改了什么"))
	fl.BoolVar(&f.diff, "diff", false, a.tr("show the edits of --fix as a patch, change nothing", "以补丁形式显示 --fix 的修改，不改动文件"))
	fl.StringVar(&f.slurm, "slurm-version", "", a.tr("release of the cluster, such as 23.11 (default: scontrol --version, when present)", "集群的 Slurm 版本，如 23.11（默认取 scontrol --version，若可用）"))
	fl.BoolVar(&f.cluster, "cluster", false, a.tr("compare with partitions, GPUs and limits that sinfo reports", "与 sinfo 报告的分区、GPU 和限制对照"))
	fl.StringVar(&f.config, "config", "", a.tr("configuration to use instead of the nearest "+lint.ConfigName, "指定配置文件，代替最近的 "+lint.ConfigName))
	fl.StringSliceVar(&f.enable, "enable", nil, a.tr("rules that run only when asked for", "启用默认不运行的规则"))
	fl.StringSliceVar(&f.disable, "disable", nil, a.tr("rules to leave out", "不运行的规则"))
	fl.StringVar(&f.failOn, "fail-on", "warning", a.tr("exit status 1 from this level on: error, warning or note", "达到该级别时退出码为 1：error、warning 或 note"))
	fl.StringVar(&f.stdinName, "stdin-name", "<stdin>", a.tr("name to show for standard input", "标准输入显示的名称"))
	return c
}

func (a *app) lint(ctx context.Context, args []string, f lintFlags) error {
	switch a.out.format {
	case "text", "json", "sarif", "github", "checkstyle":
	default:
		return a.notOneOf("--format", a.out.format, "text", "json", "sarif", "github", "checkstyle")
	}
	switch f.failOn {
	case "error", "warning", "note":
	default:
		return a.notOneOf("--fail-on", f.failOn, "error", "warning", "note")
	}
	base, err := a.load("lint")
	if err != nil {
		return err
	}
	known := func(id string) bool { x := base.Set().ByID(id); return x != nil && x.Family == "lint" }
	for _, id := range append(append([]string{}, f.enable...), f.disable...) {
		if !known(id) {
			return usagef("%s: %q%s", a.tr("no such rule", "没有这条规则"), id, a.near(base, id))
		}
	}
	o := lint.Options{Set: base.Set()}
	if f.slurm != "" {
		v, ok := rule.ParseVersion(f.slurm)
		if !ok {
			return usagef("--slurm-version: %q %s", f.slurm, a.tr("is no version such as 23.11", "不是 23.11 这样的版本号"))
		}
		o.Slurm = v
	}
	names, bare, err := a.scripts(args, f.recursive)
	if err != nil {
		return err
	}
	for _, dir := range bare {
		fmt.Fprintf(a.Err, "ncclinic: %s: %s\n", dir, a.tr("no batch script in it or below it", "该目录及其子目录中没有批处理脚本"))
	}
	if len(names) == 0 {
		return a.noScripts(base, f)
	}
	if f.cluster {
		m, err := run.NewMachine()
		if err != nil {
			return err
		}
		cl, err := slurm.Offer(ctx, m)
		if err != nil {
			return a.slurmError("--cluster: ", err)
		}
		o.Cluster = clusterOf(cl)
	}
	scontrol := a.slurmVersion(ctx, f)
	jobs := make([]lintJob, len(names))
	cfgs := map[string]*lint.Config{}
	for i, name := range names {
		j := &jobs[i]
		j.name, j.shown, j.o = name, name, o
		if name == "-" {
			j.shown = f.stdinName
		} else {
			j.o.Open = beside(name)
			j.o.IsDir = submitDir(name)
		}
		if j.o.Config, err = config(name, f, cfgs, known); err != nil {
			return usageError{err}
		}
		if !j.o.Slurm.Known() {
			if v, ok := rule.ParseVersion(j.o.Config.Slurm); ok {
				j.o.Slurm = v
			} else {
				j.o.Slurm = scontrol
			}
		}
	}
	// Scripts are small and many: fewer collections cost little memory.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	a.lintAll(ctx, jobs, f)
	var rs []lint.Report
	var problems []fact.Problem
	for i := range jobs {
		j := &jobs[i]
		if _, err := a.Out.Write(j.out); err != nil {
			return err
		}
		if j.err == nil {
			for _, n := range j.notes {
				fmt.Fprintf(a.Err, "ncclinic: %s: %s\n", j.shown, n)
			}
		}
		switch {
		case j.err != nil:
			problems = append(problems, fact.Problem{What: j.name, Why: reason(j.err)})
		case j.report != nil:
			rs = append(rs, *j.report)
		}
	}
	if f.diff || f.fix && len(names) == 1 && names[0] == "-" || len(rs) == 0 && len(problems) > 0 && a.out.format == "text" {
		return a.lintEnd(nil, problems, f)
	}
	if err := a.showLint(rs, problems, base, f); err != nil {
		return err
	}
	return a.lintEnd(rs, problems, f)
}

// noScripts ends a run that found no script: nothing was judged.
func (a *app) noScripts(base *rules.Base, f lintFlags) error {
	if a.out.format != "text" && !f.diff {
		if err := a.showLint(nil, nil, base, f); err != nil {
			return err
		}
	}
	return exitError(exitUnsure)
}

// lintJob is one script on its way.
type lintJob struct {
	name, shown string
	o           lint.Options
	report      *lint.Report
	out         []byte   // a patch, or the mended standard input
	notes       []string // what --fix and --diff did
	err         error
}

// lintAll works on scripts at once, as many as there are CPUs.
func (a *app) lintAll(ctx context.Context, jobs []lintJob, f lintFlags) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				a.lintOne(&jobs[i], f)
			}
		})
	}
	wg.Wait()
}

func (a *app) lintOne(j *lintJob, f lintFlags) {
	src, err := a.script(j.name)
	if err != nil {
		j.err = err
		return
	}
	if f.fix || f.diff {
		m := lint.Fix(j.shown, src, j.o)
		fixed := m.Src
		j.notes = a.mended(&m, f.diff)
		switch {
		case f.diff:
			patch, hidden := lint.Diff(j.shown, src, fixed)
			j.out = []byte(patch)
			if hidden != nil {
				j.notes = append(j.notes, fmt.Sprintf(a.tr("no patch is shown: edits touch secrets (line %s); this makes them: ncclinic lint --fix %s", "不显示补丁：修改涉及机密内容（第 %s 行）；请用 ncclinic lint --fix %s 应用"), numbers(hidden), shellWord(j.shown)))
			}
			return
		case j.name == "-":
			j.out = fixed
			return
		case !bytes.Equal(fixed, src):
			if j.err = replace(j.name, fixed); j.err != nil {
				return
			}
			src = fixed
		}
	}
	r := lint.File(j.shown, src, j.o)
	switch lint.Foreign(r.Script) {
	case lint.IsEmpty:
		j.err = errors.New(a.tr("is empty: sbatch refuses it (Batch script is empty!)", "是空文件：sbatch 会拒绝（Batch script is empty!）"))
		return
	case lint.IsLog:
		j.err = errors.New(a.tr("is not a batch script but a log: ncclinic explain reads it", "不是批处理脚本，而是日志：请用 ncclinic explain"))
		return
	case lint.IsOther:
		j.err = errors.New(a.tr("is not a batch script: no #! line, no #SBATCH line, no srun. A log? ncclinic explain reads it", "不是批处理脚本：没有 #! 行、没有 #SBATCH 行，也没有 srun。是日志的话，请用 ncclinic explain"))
		return
	}
	script.Recycle(r.Script) // thousands of scripts need not stay in memory
	r.Script, r.Src = nil, nil
	j.report = &r
}

// numbers lists numbers of lines.
func numbers(ns []int) string {
	var ls []string
	for _, n := range slices.Compact(ns) {
		ls = append(ls, strconv.Itoa(n))
	}
	return strings.Join(ls, ", ")
}

// mended says what edits did: the rules that made them, what is submitted
// otherwise than before, and what was left to a person.
// With only shown, nothing was changed.
func (a *app) mended(m *lint.Mended, shown bool) []string {
	list := func(cs []lint.Change) string {
		var out []string
		for _, c := range cs {
			t := c.Rule
			if len(c.Lines) > 0 {
				t += fmt.Sprintf(a.tr(" (line %s)", "（第 %s 行）"), numbers(c.Lines))
			}
			out = append(out, t)
		}
		return strings.Join(out, ", ")
	}
	var out []string
	say := func(what []string, did, would string) {
		if shown {
			did = would
		}
		if len(what) > 0 {
			out = append(out, did+strings.Join(what, ", "))
		}
	}
	if len(m.Done) > 0 {
		say([]string{list(m.Done)}, a.tr("mended: ", "已修改："), a.tr("would change: ", "将会修改："))
	}
	say(m.Adds, a.tr("this changes what is submitted; sbatch now reads: ", "提交的内容随之改变；sbatch 现在会读取："),
		a.tr("this changes what is submitted; sbatch would then read: ", "提交的内容会随之改变；sbatch 将会读取："))
	say(m.Drops, a.tr("this changes what is submitted; sbatch no longer reads: ", "提交的内容随之改变；sbatch 不再读取："),
		a.tr("this changes what is submitted; sbatch would no longer read: ", "提交的内容会随之改变；sbatch 将不再读取："))
	say(m.Refused, a.tr("gone is what sbatch refused: ", "已去掉 sbatch 会拒绝的写法："), a.tr("gone would be what sbatch refuses: ", "将会去掉 sbatch 会拒绝的写法："))
	for i := range m.Left {
		c := &m.Left[i]
		if c.Clash != "" {
			out = append(out, fmt.Sprintf(a.tr("left to you: %s; --%s has two values", "留给你处理：%s；--%s 有两个不同的值"), list(m.Left[i:i+1]), c.Clash))
			continue
		}
		out = append(out, fmt.Sprintf(a.tr("left to you: %s; the edit would bring up: %s", "留给你处理：%s；自动修改会引出：%s"), list(m.Left[i:i+1]), strings.Join(c.Brings, ", ")))
	}
	return out
}

// lintEnd turns what was found into the exit status.
func (a *app) lintEnd(rs []lint.Report, problems []fact.Problem, f lintFlags) error {
	for _, p := range problems {
		fmt.Fprintf(a.Err, "ncclinic: %s: %s\n", p.What, diag.Reason(p.Why, a.lang))
	}
	if len(problems) > 0 {
		return exitError(exitUsage)
	}
	for i := range rs {
		n := rs[i].Count(diag.Error)
		if f.failOn != "error" {
			n += rs[i].Count(diag.Warning)
		}
		if f.failOn == "note" {
			n += rs[i].Count(diag.Note)
		}
		if n > 0 {
			return exitError(exitFound)
		}
	}
	return nil
}

func (a *app) showLint(rs []lint.Report, problems []fact.Problem, base *rules.Base, f lintFlags) error {
	switch a.out.format {
	case "json", "sarif":
		rep := lintReport(rs, problems)
		rep.Tool, rep.Rules = Version, base.Set().Version
		if a.out.format == "json" {
			return render.JSON(a.Out, rep, base, a.lang)
		}
		return render.SARIF(a.Out, rep, base, a.lang)
	}
	var files []render.LintFile
	for i := range rs {
		r := &rs[i]
		lf := render.LintFile{Name: r.Name, Line: func(n int) string { return r.Lines[n] }}
		for k := range r.Findings {
			lf.Findings = append(lf.Findings, r.Findings[k].Finding)
		}
		files = append(files, lf)
	}
	switch a.out.format {
	case "github":
		return render.LintGitHub(a.Out, files, base, a.lang)
	case "checkstyle":
		return render.LintCheckstyle(a.Out, files, base, a.lang)
	}
	st, err := a.style()
	if err != nil {
		return err
	}
	return render.LintText(a.Out, files, base, render.LintOptions{Lang: a.lang, Style: st, Verbose: a.out.verbose, Notes: f.notes})
}

// lintReport is one report of all files by the contract.
func lintReport(rs []lint.Report, problems []fact.Problem) *diag.Report {
	rep := &diag.Report{Schema: diag.ReportSchema, Subject: fact.Subject{Kind: "script"}, Verdict: diag.Unknown, Findings: []diag.Finding{}, Ran: []diag.Ran{}, Problems: problems}
	if problems == nil {
		rep.Problems = []fact.Problem{}
	}
	if len(rs) > 0 {
		rep.Verdict = diag.OK
	}
	if len(rs) == 1 {
		rep.Subject.Name = rs[0].Name
	}
	hit := map[string]bool{}
	for i := range rs {
		for k := range rs[i].Findings {
			f := rs[i].Findings[k].Finding
			if f.Fixes == nil {
				f.Fixes = []diag.Fix{}
			}
			hit[f.ID] = true
			switch {
			case f.Severity == diag.Error:
				rep.Verdict = diag.Broken
			case f.Severity == diag.Warning && rep.Verdict == diag.OK:
				rep.Verdict = diag.Warned
			}
			rep.Findings = append(rep.Findings, f)
		}
	}
	for id := range hit {
		rep.Ran = append(rep.Ran, diag.Ran{Rule: id, Status: diag.Hit})
	}
	sort.Slice(rep.Ran, func(i, j int) bool { return rep.Ran[i].Rule < rep.Ran[j].Rule })
	return rep
}

// slurmVersion asks scontrol, unless the caller said which release it is.
func (a *app) slurmVersion(ctx context.Context, f lintFlags) rule.Version {
	if f.slurm != "" || a.Getenv("NCCLINIC_NO_SCONTROL") != "" {
		return rule.Version{}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := run.NewMachine()
	if err != nil {
		return rule.Version{}
	}
	v, _ := rule.ParseVersion(slurm.ClientVersion(ctx, m))
	return v
}

// scripts expands what the user names. bare are folders without any script.
func (a *app) scripts(args []string, recursive bool) (out, bare []string, err error) {
	for _, arg := range args {
		if arg == "-" {
			out = append(out, arg)
			continue
		}
		st, err := os.Stat(arg)
		if err != nil && len(args) == 1 {
			return nil, nil, usageError{err}
		}
		if err != nil || !st.IsDir() || !recursive { // what is not there, or a folder, is named beside what is
			out = append(out, arg)
			continue
		}
		was := len(out)
		err = filepath.WalkDir(arg, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // what cannot be listed is left out, as find does
			case d.IsDir() && p != arg && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case d.Type().IsRegular() && len(out) < maxInputs:
				if head, err := headOf(p); err == nil && lint.Candidate(p, head) {
					out = append(out, p)
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, usageError{err}
		}
		if len(out) == was {
			bare = append(bare, arg)
		}
	}
	return out, bare, nil
}

// headOf reads the beginning of a file.
func headOf(name string) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 16<<10)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return b[:n], nil
}

func (a *app) script(name string) ([]byte, error) {
	var r io.Reader = a.In
	if name != "-" {
		f, err := openFile(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		st, err := f.Stat()
		switch {
		case err == nil && st.IsDir():
			return nil, errors.New(a.tr("is a folder; -r lints what is below it", "是目录；用 -r 检查其中的脚本"))
		case err == nil && st.Mode().IsRegular() && st.Size() > 0 && st.Size() <= maxScript: // of /proc has none
			b := make([]byte, st.Size())
			if n, err := io.ReadFull(f, b); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
				return b[:n], nil
			}
		}
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	if err == nil && len(b) > maxScript {
		err = fmt.Errorf("larger than %d MiB", maxScript>>20)
	}
	return b, err
}

// beside opens files in the folder of a script and below it, never elsewhere.
func beside(name string) func(string) ([]byte, error) {
	dir := filepath.Dir(name)
	return func(p string) ([]byte, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		f, err := root.Open(filepath.Clean(strings.TrimPrefix(p, "./")))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > 1<<20 {
			return nil, errors.New("not a small regular file")
		}
		return io.ReadAll(io.LimitReader(f, 1<<20))
	}
}

// submitDir tells which folders exist already, seen from where a job would be
// submitted: the working folder or the folder of the script.
func submitDir(name string) func(string) bool {
	return func(p string) bool {
		for _, from := range []string{"", filepath.Dir(name)} {
			if !filepath.IsAbs(p) {
				p = filepath.Join(from, p)
			}
			if st, err := os.Stat(p); err == nil && st.IsDir() {
				return true
			}
		}
		return false
	}
}

// config finds the configuration of a script: the one named, or the nearest
// one in its folder or above.
func config(name string, f lintFlags, seen map[string]*lint.Config, known func(string) bool) (*lint.Config, error) {
	c, err := configFile(name, f, seen, known)
	if err != nil {
		return nil, err
	}
	out := *c
	out.Rules = map[string]string{}
	for k, v := range c.Rules {
		out.Rules[k] = v
	}
	for _, id := range f.enable {
		if out.Rules[id] == "" || out.Rules[id] == "off" {
			out.Rules[id] = "on"
		}
	}
	for _, id := range f.disable {
		out.Rules[id] = "off"
	}
	return &out, nil
}

func configFile(name string, f lintFlags, seen map[string]*lint.Config, known func(string) bool) (*lint.Config, error) {
	read := func(p string) (*lint.Config, error) {
		if c := seen[p]; c != nil {
			return c, nil
		}
		h, err := openFile(p)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		raw, err := io.ReadAll(io.LimitReader(h, 1<<20))
		if err != nil {
			return nil, err
		}
		c, err := lint.ReadConfig(raw, p, known)
		if err == nil {
			seen[p] = c
		}
		return c, err
	}
	if f.config != "" {
		return read(f.config)
	}
	dir := "."
	if name != "-" {
		dir = filepath.Dir(name)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return &lint.Config{}, nil
	}
	start := abs
	if c, ok := seen[start]; ok {
		return c, nil
	}
	found := &lint.Config{}
	for {
		p := filepath.Join(abs, lint.ConfigName)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			if found, err = read(p); err != nil {
				return nil, err
			}
			break
		}
		up := filepath.Dir(abs)
		if up == abs {
			break
		}
		abs = up
	}
	seen[start] = found
	return found, nil
}

// replace writes a file anew and keeps its mode; a crash leaves the old one.
func replace(name string, data []byte) error {
	if p, err := filepath.EvalSymlinks(name); err == nil {
		name = p
	}
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(name), ".ncclinic-*")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	if _, err = t.Write(data); err == nil {
		err = t.Chmod(st.Mode().Perm())
	}
	if e := t.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(t.Name(), name)
}

func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
