package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/lint"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/tables"
	"github.com/ncclinic/ncclinic/rules"
)

type fixFlags struct {
	gatherFlags
	torch, arch, glibc, gres, index, indexURL, with, option, modules string
	driver                                                           string
	gpus, facts, projects                                            []string
	all, compat, apply                                               bool
}

func (a *app) fixCmd() *cobra.Command {
	var f fixFlags
	c := &cobra.Command{
		Use:   "fix [JOBID | FILE...]",
		Short: a.tr("the exact commands that repair it, right for the GPU node", "给出适合 GPU 节点的确切修复命令"),
		Long: a.tr(`fix plans the change and prints the commands. It chooses the build of PyTorch that
runs on the GPU node's driver, has kernels for its GPUs and a wheel for this Python,
says what each choice needs and gives up and why others do not do, and prints
commands for the installer in use that work over what is installed now, keep other
packages from undoing it, and end with the proof. On a login node describe the GPU
node: --driver, --gpu, or --facts with a file that "ncclinic facts" wrote there.

With the number of a job, a log (or a folder of logs), a batch script, a report
(--format json), facts or an environment's folder it starts from what is wrong there: other causes get their commands, settings, the patch
of the script, or the text for the administrator. Several files (log, pip list,
nvidia-smi, script, facts) are read together, as explain reads them. No network is used. Nothing is
run and no file is changed; --apply runs the package commands of a plan after asking,
in an environment of your own, with the state before saved.`,
			`fix 制定修复方案并给出命令：选择能在 GPU 节点驱动上运行、含有其 GPU 内核并提供该 Python 版本
wheel 的 PyTorch 构建，说明每个选择的前提和代价以及其他构建为何不行；针对正在使用的安装工具
给出命令，能覆盖现有安装，防止其他软件包把它改回去，最后以验证结束。在登录节点上请描述 GPU
节点：--driver、--gpu，或用 --facts 给出在该节点上由 "ncclinic facts" 写出的文件。

给出作业号、日志（或日志目录）、批处理脚本、报告（--format json）、事实文件或环境目录时，从其中的问题出发：其他原因
会得到相应的命令、设置、脚本补丁或发给管理员的内容。可以同时给出多个文件（日志、pip list、
nvidia-smi、脚本、事实文件），读法与 explain 相同。不使用网络，不执行任何操作，也不改动文件；--apply 在询问后于你自己的环境中执行方案里的软件包命令，并先保存原有状态。`),
		Example: `  ncclinic fix                                          # ` + a.tr("this environment, this node", "当前环境、当前节点") + `
  ncclinic fix --driver 535.161.08 --gpu H100           # ` + a.tr("on a login node, for the GPU node", "在登录节点上为 GPU 节点制定") + `
  ncclinic fix slurm-4711.out pip-list.txt nvidia-smi.txt
  ncclinic fix train.sbatch
  ncclinic fix --facts gpu-node.json --torch 2.9 --with uv --format sh > fix.sh`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.fix(cmd.Context(), args, &f) },
	}
	a.addGatherFlags(c, &f.gatherFlags)
	for _, n := range []string{"live", "live-timeout"} {
		if fl := c.Flags().Lookup(n); fl != nil {
			fl.Hidden = true
		}
	}
	fl := c.Flags()
	fl.Lookup("python").Usage = a.tr("the interpreter that the job uses (a path or an environment's folder), or its version: 3.11", "作业使用的解释器（路径或环境目录），或其版本：3.11")
	fl.StringVar(&a.out.format, "format", "text", a.tr("form of the plan: text, json, or sh (a commented script)", "方案格式：text、json 或 sh（带注释的脚本）"))
	fl.StringVar(&a.out.color, "color", "auto", a.tr("colours: auto (on a terminal, unless NO_COLOR is set), always, never", "颜色：auto（终端且未设置 NO_COLOR）、always、never"))
	fl.StringVar(&f.torch, "torch", "", a.tr("the torch that is wanted: 2.6.0, 2.9, '>=2.4,<2.8', 2.6.0+cu124, cu126, newest (default: the one that is installed)", "想要的 torch：2.6.0、2.9、'>=2.4,<2.8'、2.6.0+cu124、cu126、newest（默认为已安装的版本）"))
	fl.StringVar(&f.driver, "driver", "", a.tr("NVIDIA driver of the GPU node: 535.161.08", "GPU 节点的 NVIDIA 驱动版本：535.161.08"))
	fl.StringSliceVar(&f.gpus, "gpu", nil, a.tr("GPUs of the node: H100, V100, a compute capability such as 8.0, or a GRES type", "节点的 GPU：H100、V100、计算能力（如 8.0）或 GRES 类型"))
	fl.StringVar(&f.arch, "arch", "", a.tr("machine or GPU architecture of the node: x86_64, aarch64, sm_90", "节点的机器架构或 GPU 架构：x86_64、aarch64、sm_90"))
	fl.StringVar(&f.glibc, "glibc", "", a.tr("glibc where the job runs: 2.28", "作业运行处的 glibc 版本：2.28"))
	fl.StringVar(&f.gres, "gres", "", a.tr("the node's GRES as scontrol or sinfo show it, as a hint: gpu:a100:4", "scontrol 或 sinfo 显示的节点 GRES，作为线索：gpu:a100:4"))
	fl.StringSliceVar(&f.facts, "facts", nil, a.tr("facts of the GPU node (from ncclinic facts there); several for several kinds of nodes", "GPU 节点的事实文件（在该节点上由 ncclinic facts 写出）；有多种节点时可给多个"))
	fl.StringVar(&f.index, "index", "", a.tr("what the site's mirror has: a folder of wheels, or a file that names them", "站点镜像的内容：wheel 目录，或列出 wheel 名的文件"))
	fl.StringVar(&f.indexURL, "index-url", "", a.tr("address of the site's mirror for the commands (below it one index per build, or one that ends in /simple)", "命令中使用的镜像地址（其下每个构建一个索引，或以 /simple 结尾的单个索引）"))
	fl.StringSliceVar(&f.projects, "project", nil, a.tr("project files whose pins count: requirements.txt, pyproject.toml, environment.yml", "要遵守其版本限定的项目文件：requirements.txt、pyproject.toml、environment.yml"))
	fl.StringVar(&f.modules, "modules", "", a.tr(`file with what "module avail" printed ("module -t avail 2>&1")`, `保存 "module avail" 输出的文件（"module -t avail 2>&1"）`))
	fl.StringVar(&f.with, "with", "", a.tr("installer for the commands: ", "命令使用的安装工具：")+strings.Join(plan.Tools, ", "))
	fl.StringVar(&f.option, "option", "", a.tr("show the commands of this option: a number, keep, nearest or newest", "显示该方案的命令：序号、keep、nearest 或 newest"))
	fl.BoolVar(&f.all, "all", false, a.tr("show the commands of all options", "显示所有方案的命令"))
	fl.BoolVar(&f.compat, "allow-compat", false, a.tr("also plan with a cuda-compat package (data-centre GPUs)", "方案可以使用 cuda-compat 包（数据中心 GPU）"))
	fl.BoolVar(&f.apply, "apply", false, a.tr("run the package commands after asking (on a terminal only)", "询问后执行软件包命令（仅限终端）"))
	return c
}

// torchCauses are the causes that another build of torch mends.
var torchCauses = []string{"torch-not-installed", "torch-cpu-build", "torch-built-without-nccl", "torch-built-without-distributed", "torch-wrong-accelerator",
	"torch-replaced-by-dependency", "torch-install-damaged", "torch-gpu-arch-unsupported", "torch-needs-newer-driver", "torch-needs-newer-glibc",
	"torch-other-machine", "env-user-site-shadows"}

func (a *app) fix(ctx context.Context, args []string, f *fixFlags) error {
	if err := a.checkFix(f); err != nil {
		return err
	}
	st, err := a.style()
	if err != nil {
		return err
	}
	start, err := a.fixStart(ctx, args, f)
	if err != nil {
		return err
	}
	v := render.FixView{All: f.all}
	if start.rep != nil {
		v.Verdict = start.rep.Verdict
		v.Cause = start.rep.Top()
		for _, f := range start.rep.Findings {
			if f.ID == "unknown" {
				v.Decide, v.Open = f.Needs, &f
			}
		}
	}
	base, err := a.load("cause", "lint")
	if err != nil {
		return err
	}
	lb, err := rules.LoadLog(rules.EmbeddedLog())
	if err != nil {
		return err
	}
	v.Texts = bothTexts{base, lb}
	v.Patch, v.Script, v.More, v.PatchSays = start.patch, start.script, start.more, start.said
	for _, x := range start.rest {
		v.Rest = append(v.Rest, render.ScriptPatch{Script: x.script, Patch: x.patch, Says: x.said})
	}
	if v.Decide != nil {
		v.Decide = uniq(v.Decide)
	}
	if v.Cause != nil && v.Cause.Actor == "admin" {
		v.Ask = a.askText(v.Cause, v.Texts)
	}
	var in plan.Input
	if a.wantsPlan(start, f, v.Cause) {
		if in, err = a.planInput(start, f); err != nil {
			return err
		}
		if v.Plan, err = plan.Make(in); err != nil {
			return usagef("--torch: %v", err)
		}
		v.Plan.Notes = append(start.notes, v.Plan.Notes...)
		if v.Option, err = a.pick(v.Plan, f.option); err != nil {
			return err
		}
	}
	hideCUDA(&v)
	if f.apply {
		return a.applyFix(ctx, &v, &in, f.option != "")
	}
	switch a.out.format {
	case "json":
		err = a.fixJSON(&v, start)
	case "sh":
		err = a.fixScript(&v, start)
	default:
		err = render.Fix(a.Out, &v, st, a.lang)
	}
	if err != nil {
		return err
	}
	return fixExit(&v)
}

// hideCUDA leaves out the knowledge base's commands where the GPUs are no
// NVIDIA's: they install CUDA builds.
func hideCUDA(v *render.FixView) {
	if v.Plan == nil || v.Cause == nil || len(v.Plan.Options) > 0 {
		return
	}
	for _, r := range v.Plan.Impossible {
		if strings.HasPrefix(r.ID, "maker") || r.ID == "rocm-machine" {
			c := *v.Cause
			c.Fixes = nil
			v.Cause = &c
			return
		}
	}
}

// fixExit is 0 when nothing has to change, 1 when something has, 3 when that
// cannot be told.
func fixExit(v *render.FixView) error {
	switch {
	case v.Plan != nil && len(v.Plan.Options) == 0 && len(v.Plan.Unknown) > 0 && len(v.Plan.Impossible) == 0:
		return exitError(exitUnsure)
	case v.Plan != nil && len(v.Plan.Options) > 0 && v.Plan.Options[v.Option].Installed && len(v.Plan.Options[v.Option].Steps) <= 1 && v.Cause == nil && len(v.Plan.Impossible) == 0:
		return nil
	case v.Plan == nil && v.Cause == nil && v.Patch == "" && !slices.ContainsFunc(v.Rest, func(p render.ScriptPatch) bool { return p.Patch != "" }):
		if v.Verdict == diag.Unknown {
			return exitError(exitUnsure)
		}
		return nil
	}
	return exitError(exitFound)
}

// glibcForm is a release of glibc. gresForm takes what scontrol, sinfo and sbatch
// show or take: gpu, gpu:4, gpu:a100:4(S:0-1),nvme:1, Gres=gpu:2, gres/gpu:h100=8.
var (
	glibcForm = lazyre.New(`^2\.[0-9]{1,3}(\.[0-9]{1,3})?$`)
	gresForm  = lazyre.New(`(?i)^(.*[, ])?(gres[=:/])?gpu([:=(, ]|$)`)
)

var pythonVersion = lazyre.New(`^3\.[0-9]{1,2}(\.[0-9]{1,3})?t?$`)

func (a *app) checkFix(f *fixFlags) error {
	switch a.out.format {
	case "text", "json", "sh":
	default:
		return a.notOneOf("--format", a.out.format, "text", "json", "sh")
	}
	if f.with != "" && !slices.Contains(plan.Tools, f.with) {
		return a.notOneOf("--with", f.with, plan.Tools...)
	}
	f.driver = driverOf(f.driver)
	if f.driver != "" && !driverForm.MatchString(f.driver) {
		return usagef("--driver: %q %s", f.driver, a.tr("is no driver version such as 535.161.08", "不是 535.161.08 这样的驱动版本"))
	}
	if err := plan.CheckWish(f.torch); err != nil {
		return usagef("--torch: %v", err)
	}
	if f.arch != "" && f.arch != "x86_64" && f.arch != "aarch64" && f.arch != "arm64" && f.arch != "amd64" && !capForm.MatchString(f.arch) {
		return usagef("--arch: %q %s", f.arch, a.tr("is neither x86_64 or aarch64 nor a GPU architecture such as sm_90", "既不是 x86_64 或 aarch64，也不是 sm_90 这样的 GPU 架构"))
	}
	if f.glibc != "" && !glibcForm.MatchString(f.glibc) {
		return usagef("--glibc: %q %s", f.glibc, a.tr("is no glibc version such as 2.28", "不是 2.28 这样的 glibc 版本"))
	}
	if f.gres != "" && !gresForm.MatchString(f.gres) && !slices.ContainsFunc(gresTypes(f.gres), func(t string) bool { return tables.Maker(t) != "" }) {
		return usagef("--gres: %q %s", f.gres, a.tr("names no GPU as GRES do, such as gpu:a100:4", "不是 GPU 的 GRES 写法，如 gpu:a100:4"))
	}
	if f.apply && a.out.format != "text" {
		return usagef("%s", a.tr("--apply asks on a terminal: not with --format", "--apply 需要在终端上确认，不能与 --format 同用"))
	}
	return nil
}

// pick finds the option that was asked for.
func (a *app) pick(p *plan.Plan, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	var ids []string
	for i, o := range p.Options {
		if name == fmt.Sprint(i+1) || name == o.ID || slices.Contains(o.Also, name) {
			return i, nil
		}
		ids = append(ids, fmt.Sprint(i+1), o.ID)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return 0, a.notOneOf("--option", name, ids...)
}

// start is what a fix begins with.
type start struct {
	kind   string // here, facts, report, job, log, script
	name   string
	rep    *diag.Report
	b      *fact.Bundle // of the environment that is to be mended; nil when it was not looked at
	patch  string
	sum    string // SHA-256 of the script when its patch may lack context
	script string
	said   []string        // what lint says of the patch
	more   []*diag.Finding // what else is wrong in a script
	rest   []*start        // patches of further scripts
	logs   *fact.Logs      // what a log and what came with it say; nil when there is none
	notes  []plan.Reason
	kinds  []plan.Node // of an allocation's facts: every kind of node; nil for anything else
	glibc  string      // and the oldest glibc of the nodes
}

// fixStart finds out what the user named. Reports come from the commands that
// make them, so that fix says of a job or a log what they say.
func (a *app) fixStart(ctx context.Context, args []string, f *fixFlags) (*start, error) {
	s := &start{kind: "here"}
	version := pythonVersion.MatchString(f.python)
	g := f.gatherFlags
	if version {
		g.python = ""
	}
	here := func() error {
		var err error
		s.b, err = a.gather(ctx, g)
		return err
	}
	if len(args) == 1 && isEnvironment(args[0]) { // as check takes it
		if g.python != "" || version {
			return nil, usagef("%s: %s", args[0], a.tr("is an environment, and --python names another one", "是一个环境目录，而 --python 指定了另一个"))
		}
		g.python, args = args[0], nil
	}
	if len(args) == 0 {
		if err := here(); err != nil {
			return nil, err
		}
		if version && tables.PythonMinor(s.b.Python.Version.Or("")) != tables.PythonMinor(f.python) {
			// A plan for another Python is about an environment that is to be made,
			// not about the interpreter here, nor about what this machine lacks.
			s.b.Torch, s.b.Dists, s.b.Python = nil, nil, fact.Python{}
			return s, nil
		}
		b, err := a.described(s.b, f)
		if err != nil {
			return nil, err
		}
		s.rep, err = a.judged(b)
		return s, err
	}
	if len(args) > 1 {
		return s, a.severalStart(ctx, s, args, f, g, version)
	}
	name := args[0]
	s.name = name
	st, statErr := os.Stat(name)
	if id, err := slurmjob.ParseID(name); err == nil && statErr != nil {
		s.kind = "job"
		s.rep, s.logs, err = a.reportOf("job", id.String())
		if err != nil {
			return nil, err
		}
		return s, a.aroundReport(ctx, s, f, g, version)
	}
	logs := name == "-" || statErr == nil && st.IsDir() // explain reads what is in it
	if !logs && statErr != nil {
		if !strings.ContainsAny(name, "%*?[") {
			return nil, usageError{statErr}
		}
		logs = true // a pattern, which explain expands
	}
	if !logs {
		head, err := headOf(name)
		if err != nil {
			return nil, usageError{err}
		}
		switch {
		case isBundle(name):
			s.kind = "facts"
			if s.b, err = a.subject(ctx, []string{name}, g, targetFlags{}); err != nil {
				return nil, err
			}
			if s.b.Nodes != nil {
				if err := a.nodesStart(s, s.b); err != nil {
					return nil, err
				}
				return s, a.givenNode(s, f)
			}
			b, err := a.described(s.b, f)
			if err != nil {
				return nil, err
			}
			s.rep, err = a.judged(b)
			return s, err
		case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"ncclinic.report/v1"`)):
			s.kind = "report"
			if s.rep, err = savedReport(name); err != nil {
				return nil, err
			}
			return s, a.aroundReport(ctx, s, f, g, version)
		case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"ncclinic.`)):
			return nil, usagef("%s: %s", name, a.tr("neither a report nor facts of this program", "既不是本程序的报告，也不是事实文件"))
		case lint.Candidate(name, head):
			s.kind, s.script = "script", name
			return s, a.scriptStart(s, name)
		}
	}
	s.kind = "log"
	var err error
	if s.rep, s.logs, err = a.reportOf("explain", name); err != nil {
		return nil, err
	}
	return s, a.aroundReport(ctx, s, f, g, version)
}

// isEnvironment tells the folder of an environment from one with logs.
func isEnvironment(name string) bool {
	for _, p := range []string{"bin/python", "bin/python3"} {
		if st, err := os.Stat(filepath.Join(name, p)); err == nil && !st.IsDir() {
			return true
		}
	}
	return false
}

// judged runs the rules over a bundle.
func (a *app) judged(b *fact.Bundle) (*diag.Report, error) {
	base, err := a.load(rules.Environment...)
	if err != nil {
		return nil, fmt.Errorf("knowledge base: %w", err)
	}
	rep := diag.Run(base.Set(), b)
	return &rep, nil
}

// reportOf runs another command of this program and takes its report, and the
// logs that it read.
func (a *app) reportOf(args ...string) (*diag.Report, *fact.Logs, error) {
	var out, errs bytes.Buffer
	var read *fact.Logs
	sub := &app{Streams: Streams{In: a.In, Out: &out, Err: &errs, Getenv: a.Getenv}, lang: a.lang, logs: func(l *fact.Logs) { read = l }}
	code := sub.main(append(args, "--format", "json", "--lang", a.lang))
	if code == exitUsage || code > exitUnsure {
		return nil, nil, usagef("%s", strings.TrimPrefix(strings.TrimSpace(errs.String()), "ncclinic: "))
	}
	rep, err := decodeReport(args[0], &out)
	return rep, read, err
}

func savedReport(name string) (*diag.Report, error) {
	f, err := readableFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decodeReport(name, f)
}

func decodeReport(name string, r io.Reader) (*diag.Report, error) {
	var rep diag.Report
	raw, err := io.ReadAll(io.LimitReader(r, fact.MaxBundle+1))
	if err == nil && len(raw) > fact.MaxBundle {
		err = fmt.Errorf("larger than %d MiB", fact.MaxBundle>>20)
	}
	if err == nil {
		err = json.Unmarshal(raw, &rep)
	}
	if err == nil && rep.Schema != diag.ReportSchema {
		err = fmt.Errorf("schema %q is not %s", rep.Schema, diag.ReportSchema)
	}
	if err == nil && !slices.Contains([]string{diag.OK, diag.Warned, diag.Broken, diag.Unknown}, rep.Verdict) {
		err = fmt.Errorf("verdict %q", rep.Verdict)
	}
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	return &rep, nil
}

// aroundReport looks at the environment that a report is about when it is here:
// the interpreter that it names, or the one that the user names.
func (a *app) aroundReport(ctx context.Context, s *start, f *fixFlags, g gatherFlags, version bool) error {
	if g.python == "" || version {
		g.python = ""
		var in plan.Input
		if top := s.rep.Top(); top != nil {
			in = fromArgs(top.Args)
		}
		fromLogs(s.logs, &in)
		if p := in.Env.Python; filepath.IsAbs(p) {
			if _, err := os.Stat(p); err == nil {
				g.python = p
			}
		}
	}
	if g.python == "" {
		return nil
	}
	var err error
	if s.b, err = a.gather(ctx, g); err != nil || s.rep.Top() != nil {
		return err
	}
	// The environment may decide what the log could not.
	b, err := a.described(s.b, f)
	if err != nil {
		return err
	}
	rep, err := a.judged(b)
	if err == nil && rep.Top() != nil && slices.Contains(torchCauses, rep.Top().ID) {
		s.rep = rep
	}
	return err
}

// scriptStart lints scripts and keeps their safe edits as patches.
func (a *app) scriptStart(s *start, names ...string) error {
	var err error
	if s.rep, _, err = a.reportOf(append([]string{"lint"}, names...)...); err != nil {
		return err
	}
	a.scriptPatch(s, names[0])
	for _, name := range names[1:] {
		x := &start{kind: "script", name: name}
		a.scriptPatch(x, name)
		s.rest = append(s.rest, x)
	}
	// The report of lint names no cause: the first error is what to mend, then the rest.
	for i := range s.rep.Findings {
		f := &s.rep.Findings[i]
		switch {
		case f.Severity == diag.Error && s.rep.Cause == nil:
			f.Role = diag.Cause
			s.rep.Cause = &f.ID
		case f.Severity == diag.Error || f.Severity == diag.Warning:
			s.more = append(s.more, f)
		}
	}
	slices.SortStableFunc(s.more, func(x, y *diag.Finding) int {
		e := map[bool]int{true: 0, false: 1}
		return e[x.Severity == diag.Error] - e[y.Severity == diag.Error]
	})
	return nil
}

// scriptPatch keeps the safe edits of a script, as lint --diff shows them.
func (a *app) scriptPatch(s *start, name string) {
	var out, errs bytes.Buffer
	s.script = name
	if code := Main([]string{"lint", "--diff", "--lang", a.lang, "--", name}, Streams{In: a.In, Out: &out, Err: &errs, Getenv: a.Getenv}); code == exitOK || code == exitFound {
		s.patch = out.String() // without secrets
		if src, err := os.ReadFile(name); err == nil && mask.Text(string(src)) != string(src) {
			s.sum = fmt.Sprintf("%x", sha256.Sum256(src))
		}
		for _, l := range strings.Split(strings.TrimSpace(errs.String()), "\n") {
			if l = strings.TrimPrefix(strings.TrimPrefix(l, "ncclinic: "), name+": "); l != "" {
				s.said = append(s.said, l)
			}
		}
	}
}

// uniq drops what was named before.
func uniq(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// severalStart reads several files together, as explain does: a log with the
// listings, the script and the facts that go with it.
func (a *app) severalStart(ctx context.Context, s *start, args []string, f *fixFlags, g gatherFlags, version bool) error {
	s.kind, s.name = "log", strings.Join(args, " ")
	for _, name := range args {
		if _, err := os.Stat(name); err != nil {
			if id, err := slurmjob.ParseID(name); err == nil {
				return usagef(a.tr("%s: the number of a job stands alone", "%s：作业号只能单独给出"), id.String())
			}
		}
	}
	if scripts := uniq(args); !slices.ContainsFunc(scripts, func(name string) bool {
		head, err := headOf(name)
		return name == "-" || err != nil || isBundle(name) || !lint.Candidate(name, head)
	}) {
		s.kind, s.script = "script", scripts[0]
		return a.scriptStart(s, scripts...)
	}
	var err error
	if s.rep, s.logs, err = a.reportOf(append([]string{"explain"}, args...)...); err != nil {
		return err
	}
	for _, name := range uniq(args) {
		if name == "-" || isBundle(name) {
			continue
		}
		head, err := headOf(name)
		switch {
		case err != nil || !lint.Candidate(name, head):
		case s.script == "":
			a.scriptPatch(s, name)
		default:
			x := &start{kind: "script", name: name}
			a.scriptPatch(x, name)
			s.rest = append(s.rest, x)
		}
	}
	if _, facts, err := bundles(args); err == nil && len(facts) == 1 {
		ran := ""
		if top := s.rep.Top(); top != nil {
			ran = strings.Trim(top.Args["torch_dir"], "'")
		}
		if all := facts[0].b; all.Nodes != nil && len(groupsOf(all)) > 0 {
			s.kinds, s.glibc = kindsOf(all), oldestGlibc(all)
			facts[0].b = groupsOf(all)[0]
		}
		if t := facts[0].b.Winner(); ran == "" || t == nil || t.Dir == ran {
			s.b = facts[0].b
			return nil
		}
	}
	return a.aroundReport(ctx, s, f, g, version)
}

// described lays what the flags say of the GPU node over a copy of facts, so that
// a cause is sought for that node and not for this one.
func (a *app) described(b *fact.Bundle, f *fixFlags) (*fact.Bundle, error) {
	if f.driver == "" && len(f.gpus) == 0 && len(f.facts) == 0 && f.gres == "" && !capForm.MatchString(f.arch) {
		return b, nil
	}
	c := *b
	c.Node = fact.Node{} // what this machine has says nothing about that node
	if len(f.facts) > 0 {
		nb, err := readFacts(f.facts[0])
		if err != nil {
			return nil, err
		}
		if nb = hardest(nb); nb != nil {
			takeNode(&c, nb, f.facts[0])
		}
	}
	in := plan.Input{}
	flags := *f
	a.handNode(&start{}, withArch(&flags), &in)
	for _, n := range in.Nodes {
		if n.Driver != "" {
			c.Node.Driver = fact.Of(fact.Driver{Version: n.Driver}, fact.Evidence{Source: fact.SrcFlag, Path: "--driver", Excerpt: n.Driver})
		}
		var gs []fact.GPU
		for i, x := range n.GPUs {
			capa := x.Cap
			if capa == "" {
				capa = tables.GPUCap(x.Name)
			}
			if x.Name == "" {
				x.Name = "GPU " + capa
			}
			if m := tables.Maker(x.Name); capa != "" && (m == "" || m == tables.NVIDIA) {
				gs = append(gs, fact.GPU{Index: i, Name: x.Name, Cap: capa, CapFrom: "flag"})
			}
		}
		if len(gs) > 0 {
			c.Node.GPUs = fact.Of(gs, fact.Evidence{Source: fact.SrcFlag, Path: "--gpu", Excerpt: strings.Join(f.gpus, ",")})
		}
	}
	switch f.arch {
	case "x86_64", "amd64":
		c.Host.Arch = fact.Of("x86_64", fact.Evidence{Source: fact.SrcFlag, Path: "--arch", Excerpt: f.arch})
	case "aarch64", "arm64":
		c.Host.Arch = fact.Of("aarch64", fact.Evidence{Source: fact.SrcFlag, Path: "--arch", Excerpt: f.arch})
	}
	return &c, nil
}

// withArch turns --arch sm_90 into a GPU.
func withArch(f *fixFlags) *fixFlags {
	if m := capForm.FindStringSubmatch(f.arch); m != nil {
		f.gpus = withCap(f.gpus, m[1]+"."+m[2])
	}
	return f
}

// readFacts reads the facts of a GPU node.
func readFacts(name string) (*fact.Bundle, error) {
	fl, err := readableFile(name)
	if err != nil {
		return nil, err
	}
	defer fl.Close()
	b, err := fact.ReadBundle(fl)
	if err != nil {
		return nil, usagef("--facts %s: %v", name, err)
	}
	mask.Deep(b)
	return b, nil
}

// wantsPlan decides whether another build of torch is the question.
func (a *app) wantsPlan(s *start, f *fixFlags, cause *diag.Finding) bool {
	byHand := f.torch != "" || f.driver != "" || len(f.gpus) > 0 || f.arch != "" || len(f.facts) > 0 || f.gres != "" || f.index != "" || len(f.projects) > 0 || f.with != "" || f.modules != "" || f.apply
	if cause != nil && slices.Contains(torchCauses, cause.ID) {
		return true
	}
	return byHand || (s.kind == "here" || s.kind == "facts") && cause == nil
}

// planInput lays the flags over the facts.
func (a *app) planInput(s *start, f *fixFlags) (plan.Input, error) {
	var in plan.Input
	if s.b != nil {
		in = plan.FromBundle(s.b)
	} else if s.rep != nil && s.rep.Top() != nil {
		in = fromArgs(s.rep.Top().Args)
	}
	if s.kinds != nil {
		in.Nodes, in.Glibc = s.kinds, s.glibc
	}
	fromLogs(s.logs, &in)
	in.Wish, in.Forward = f.torch, f.compat
	if err := a.factNodes(s, f, &in); err != nil {
		return in, err
	}
	if pythonVersion.MatchString(f.python) {
		in.Python = f.python
		if in.Env.Python == "" {
			in.Env.Python, in.Env.Kind = "python"+tables.PythonMinor(f.python), "new"
		}
	}
	if f.glibc != "" {
		in.Glibc = f.glibc
	}
	switch f.arch {
	case "x86_64", "amd64":
		in.Machine = "x86_64"
	case "aarch64", "arm64":
		in.Machine = "aarch64"
	}
	a.handNode(s, withArch(f), &in)
	if f.gres != "" {
		ts := gresTypes(f.gres)
		t := strings.Join(ts, ", ")
		if len(ts) > 0 {
			in.Env.Gres = ts[0]
		}
		if t != "" && !hasGPU(in.Nodes) {
			if len(in.Nodes) == 0 {
				in.Nodes = []plan.Node{{}}
			}
			for i := range in.Nodes {
				for _, x := range ts {
					in.Nodes[i].GPUs = append(in.Nodes[i].GPUs, plan.GPU{Name: tables.GPUName(x), Cap: tables.GPUCap(x)})
				}
			}
			s.notes = append(s.notes, plan.Reason{ID: "gres-hint", Args: map[string]string{"type": t}})
		}
	}
	if f.with != "" {
		in.Env.Tool = f.with
	}
	if err := a.projectPins(f, &in); err != nil {
		return in, err
	}
	if err := a.siteIndex(f, &in); err != nil {
		return in, err
	}
	return in, a.siteModules(f, &in)
}

// factNodes takes the nodes of --facts files in place of this one.
func (a *app) factNodes(s *start, f *fixFlags, in *plan.Input) error {
	for i, name := range f.facts {
		b, err := readFacts(name)
		if err != nil {
			return err
		}
		ns := kindsOf(b)
		if len(ns) == 0 && (f.driver == "" && len(f.gpus) == 0 || len(groupsOf(b)) == 0) {
			return usagef("--facts %s: %s", name, a.tr("shows no NVIDIA driver and no GPU: were these facts taken on a GPU node?", "其中没有 NVIDIA 驱动和 GPU：这些事实是在 GPU 节点上采集的吗？"))
		}
		if i == 0 {
			in.Nodes = nil
		}
		in.Nodes = append(in.Nodes, ns...)
		host := &groupsOf(b)[0].Host
		if m := host.Arch.Or(""); m != "" {
			in.Machine = m
		}
		if g := oldestGlibc(b); g != "" && (i == 0 || in.Glibc == "" || tables.Compare(g, in.Glibc) < 0) {
			in.Glibc = g
		}
		if bd := host.Board.Or(""); bd != "" {
			in.Board = bd
		}
	}
	return nil
}

// handNode lays --driver and --gpu over the nodes; where they differ from facts
// that says a note.
func (a *app) handNode(s *start, f *fixFlags, in *plan.Input) {
	if f.driver == "" && len(f.gpus) == 0 {
		return
	}
	if len(in.Nodes) == 0 {
		in.Nodes = []plan.Node{{}}
	}
	differs := func(given, facts string) {
		s.notes = append(s.notes, plan.Reason{ID: "driver-other", Args: map[string]string{"given": given, "facts": facts}})
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		if f.driver != "" {
			if n.Driver != "" && n.Driver != f.driver {
				differs(f.driver, n.Driver)
			}
			n.Driver, n.Compat = f.driver, ""
		}
		if len(f.gpus) > 0 {
			var was []string
			for _, g := range n.GPUs {
				was = append(was, g.Label())
			}
			now := gpusOf(f.gpus)
			if len(was) > 0 && !slices.EqualFunc(now, n.GPUs, func(x, y plan.GPU) bool { return tables.GPUCap(x.Name) == y.Cap || x.Cap == y.Cap }) {
				differs(strings.Join(f.gpus, ", "), strings.Join(was, ", "))
			}
			n.GPUs = now
		}
	}
}

// gpusOf reads names and capabilities; "NAME=9.0" gives both.
func gpusOf(list []string) []plan.GPU {
	var out []plan.GPU
	for _, s := range list {
		name, c, both := strings.Cut(s, "=")
		m := capForm.FindStringSubmatch(name)
		switch {
		case both && capForm.MatchString(c):
			m = capForm.FindStringSubmatch(c)
			out = append(out, plan.GPU{Name: tables.GPUName(name), Cap: m[1] + "." + m[2]})
		case m != nil && !both:
			out = append(out, plan.GPU{Cap: m[1] + "." + m[2]})
		default:
			out = append(out, plan.GPU{Name: tables.GPUName(gresType(s))})
		}
	}
	return out
}

// withCap gives a capability to the GPUs that were named, or stands alone.
func withCap(gpus []string, c string) []string {
	if len(gpus) == 0 {
		return []string{c}
	}
	out := slices.Clone(gpus)
	for i := range out {
		if !strings.Contains(out[i], "=") && !capForm.MatchString(out[i]) {
			out[i] += "=" + c
		}
	}
	return out
}

func hasGPU(ns []plan.Node) bool {
	return slices.ContainsFunc(ns, func(n plan.Node) bool { return len(n.GPUs) > 0 })
}

// gresTypes lists the types of GPUs in a node's GRES: gpu:a100:4(S:0-1),gpu:v100:2,nvme:1.
func gresTypes(s string) []string {
	var out []string
	depth := 0
	for _, e := range strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	}) {
		e = strings.TrimPrefix(strings.TrimPrefix(e, "Gres="), "gres/")
		if strings.HasPrefix(e, "gpu:") || !strings.Contains(s, "gpu") {
			if t := gresType(e); t != "" && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// gresType takes the type out of gpu:a100:4, gpu:a100:4(S:0-1), gres/gpu:h100=8 or a bare type.
func gresType(s string) string {
	s, _, _ = strings.Cut(s, ",")
	s, _, _ = strings.Cut(s, "(")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "gres/"), "gres:")
	s, _, _ = strings.Cut(s, "=")
	p := strings.Split(s, ":")
	switch {
	case p[0] != "gpu":
		return p[0]
	case len(p) < 2 || strings.Trim(p[1], "0123456789") == "":
		return ""
	}
	return p[1]
}

// fromArgs plans from what a report says when the environment is not here.
func fromArgs(args diag.Args) plan.Input {
	in := plan.Input{Env: plan.Env{Companions: map[string]string{}, Login: true}}
	in.Env.Python = strings.Trim(args["python"], "'")
	in.Python, in.Env.Prefix = placeOf(strings.Trim(args["torch_dir"], "'"))
	if in.Env.Prefix == "" {
		_, in.Env.Prefix = placeOf(in.Env.Python)
	}
	if in.Env.Python == "" && in.Env.Prefix != "" && in.Env.Prefix != "/usr" && in.Env.Prefix != "/usr/local" {
		in.Env.Python = in.Env.Prefix + "/bin/python"
	}
	if in.Env.Prefix == "/usr" || in.Env.Prefix == "/usr/local" {
		in.Env.Kind, in.Env.Prefix = "system", ""
		if in.Env.Python == "" {
			in.Env.Python = "/usr/bin/python3"
		}
	}
	in.Have = plan.Have{Version: args["version"], CUDA: args["torch_cuda"]}
	if in.Have.Version == "?" {
		in.Have.Version = ""
	}
	if in.Have.CUDA != "" {
		in.Have.Accel = fact.AccelCUDA
	} else if strings.HasSuffix(in.Have.Version, "+cpu") {
		in.Have.Accel = fact.AccelCPU
	}
	if args["driver"] != "" || args["gpu"] != "" {
		n := plan.Node{}
		if driverForm.MatchString(args["driver"]) {
			n.Driver = args["driver"]
		}
		if args["gpu"] != "" || args["cap"] != "" {
			n.GPUs = []plan.GPU{{Name: args["gpu"], Cap: args["cap"]}}
		}
		in.Nodes = []plan.Node{n}
	}
	switch args["installer"] {
	case "uv":
		in.Env.Tool = plan.UV
	case "conda":
		in.Env.Tool, in.Env.Prefix, in.Env.Kind = plan.Conda, strings.Trim(args["conda_prefix"], "'"), "conda"
	}
	return in
}

// projectPins reads the pins of the project files that were named, and makes the
// first that fits the project of uv or pixi.
func (a *app) projectPins(f *fixFlags, in *plan.Input) error {
	for _, name := range f.projects {
		text, err := smallText(name, plan.MaxProject)
		if err != nil {
			return usagef("--project %s: %v", name, err)
		}
		in.Pins = append(in.Pins, plan.ParsePins(name, mask.Text(text))...)
		base := filepath.Base(name)
		tool := in.Env.Tool
		switch {
		case base == "pyproject.toml" && f.with == "" && strings.Contains(text, "[tool.poetry"):
			tool = plan.Poetry
		case base == "pyproject.toml" && f.with == "" && (strings.Contains(text, "[tool.uv") || besideFile(name, "uv.lock")):
			tool = plan.UVProject
		case (base == "pixi.toml" || base == "pyproject.toml" && strings.Contains(text, "[tool.pixi")) && f.with == "":
			tool = plan.Pixi
		}
		in.Env.Tool = tool
		if base == "pyproject.toml" && tool == plan.UVProject {
			in.Env.Project, in.Env.Text = name, text
		}
	}
	// What a project pins the plan of uv rewrites: its pins are no bound there
	// when the user asks for a release.
	return nil
}

func besideFile(name, other string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(name), other))
	return err == nil
}

func smallText(name string, limit int64) (string, error) {
	fl, err := readableFile(name)
	if err != nil {
		return "", err
	}
	defer fl.Close()
	raw, err := io.ReadAll(io.LimitReader(fl, limit+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(raw)) > limit:
		return "", fmt.Errorf("larger than %d KiB", limit>>10)
	case bytes.IndexByte(raw, 0) >= 0:
		return "", fmt.Errorf("not a text file")
	}
	return string(raw), nil
}

// siteIndex reads what a mirror has.
func (a *app) siteIndex(f *fixFlags, in *plan.Input) error {
	in.Env.IndexURL = f.indexURL
	if f.index == "" {
		return nil
	}
	st, err := os.Stat(f.index)
	if err != nil {
		return usagef("--index: %v", err)
	}
	var text strings.Builder
	if st.IsDir() {
		n := 0
		err = filepath.WalkDir(f.index, func(p string, d os.DirEntry, err error) error {
			if n++; n > maxInputs {
				return filepath.SkipAll
			}
			if err == nil && !d.IsDir() && strings.HasSuffix(d.Name(), ".whl") {
				text.WriteString(d.Name() + "\n")
			}
			return nil
		})
		if err == nil && f.indexURL == "" {
			in.Env.FindLinks = f.index
		}
	} else {
		var s string
		s, err = smallText(f.index, 64<<20)
		text.WriteString(s)
	}
	if err != nil {
		return usagef("--index %s: %v", f.index, err)
	}
	if in.Index = plan.ParseIndex(f.index, text.String()); in.Index == nil {
		return usagef("--index %s: %s", f.index, a.tr("names no torch wheel for Linux (torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl)", "没有列出 Linux 的 torch wheel（如 torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl）"))
	}
	return nil
}

// siteModules reads what "module avail" printed.
func (a *app) siteModules(f *fixFlags, in *plan.Input) error {
	if f.modules == "" {
		if in.Env.Tool == plan.Module {
			return usagef("%s", a.tr(`--with module needs --modules FILE: module -t avail 2>&1 | tee FILE`, `--with module 需要 --modules 文件：module -t avail 2>&1 | tee 文件`))
		}
		return nil
	}
	text, err := smallText(f.modules, 8<<20)
	if err != nil {
		return usagef("--modules %s: %v", f.modules, err)
	}
	in.Env.Modules = plan.ParseModules(text)
	in.Env.Loaded = strings.FieldsFunc(a.Getenv("LOADEDMODULES"), func(r rune) bool { return r == ':' })
	if f.with == "" {
		in.Env.Tool = plan.Module
	}
	return nil
}
