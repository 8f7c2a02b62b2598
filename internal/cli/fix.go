package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/lazyre"
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
