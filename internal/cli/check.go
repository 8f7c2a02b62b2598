package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/rules"
)

// gatherFlags say what to look at and how hard.
type gatherFlags struct {
	python      string
	live        bool
	liveTimeout time.Duration
	timeout     time.Duration
	timeoutSet  bool   // by the caller
	also        string // a library whose search is explained
	inTurn      bool   // one part after the other, not beside each other: see probeCmd
}

func (a *app) addGatherFlags(c *cobra.Command, g *gatherFlags) {
	f := c.Flags()
	f.StringVar(&g.python, "python", "", a.tr("examine this interpreter (a path, a name on PATH, or an environment's folder) instead of the one that would run",
		"检查指定的解释器（路径、PATH 中的名字或环境目录），而不是默认会运行的那个"))
	f.BoolVar(&g.live, "live", false, a.tr("also ask the interpreter itself: import torch in a subprocess and open a one-process gloo group",
		"同时询问解释器本身：在子进程中 import torch 并建立单进程 gloo 组"))
	f.DurationVar(&g.liveTimeout, "live-timeout", 120*time.Second, a.tr("time limit of --live", "--live 的时间上限"))
	f.DurationVar(&g.timeout, "timeout", 30*time.Second, a.tr("time limit for looking at files and the node (a hung file system must not hang the check)",
		"检查文件和节点的时间上限（文件系统卡住时检查不会跟着卡住）"))
}

func (a *app) checkCmd() *cobra.Command {
	var g gatherFlags
	var t targetFlags
	c := &cobra.Command{
		Use:   "check [TARGET...]",
		Short: a.tr("find out why this environment cannot train", "检查当前环境为什么不能训练"),
		Long: a.tr(`check examines the environment that it is started in: which Python the job would
run, which torch that imports and from where, whether NCCL is compiled in, which
libnccl the loader takes, the driver, the GPUs, limits, network, RDMA devices and
the Slurm context. It names one cause, with evidence and fix.

Run it where the job runs: srun --gres=gpu:1 ncclinic check. On a login node it
says what cannot be known there.

With a file that "ncclinic facts" wrote it judges those facts instead, and with
the folder of a venv or conda environment that environment. A TARGET may also be
what a job will run: a container image (.sif, .sqsh, OCI layout or archive, docker
save, an unpacked root file system), a wheel, a conda package, an archive of an
environment (conda-pack). Nothing of it is run, mounted or unpacked. --driver,
--gpu and --with-node say on which node it has to work.

Two targets are compared: which facts differ that matter; the exit status is that
of the worse verdict: 0 when both are healthy, however they differ. Several, or a
folder of wheels, give a table.

--explain-load takes wheels as they are installed together: torch's, and NVIDIA's
or a folder of them. Exit status 0: it is found; 1: it is nowhere; 3: that depends
on a wheel that was not given, which is named.`,
			`check 检查它所处的环境：作业会运行哪个 Python，实际导入哪个 torch、来自哪里，
是否编入 NCCL，加载器会选中哪个 libnccl，以及驱动、GPU、资源限制、网络、RDMA 设备
和 Slurm 上下文。最后给出唯一的原因、证据和解决办法。

请在作业真正运行的地方执行：srun --gres=gpu:1 ncclinic check。在登录节点上，它会说明
哪些信息在那里无法得知。

参数为 "ncclinic facts" 写出的文件时，改为诊断该文件；参数为 venv 或 conda 环境目录时，
检查该环境。参数也可以是作业将要使用的内容：容器镜像（.sif、.sqsh、OCI 目录或归档、
docker save、解开的根文件系统）、wheel、conda 包、环境归档（conda-pack）。检查时不运行、
不挂载、不解包。用 --driver、--gpu、--with-node 指定它要在什么样的节点上工作。

给出两个对象时进行比较，列出有影响的差异；退出码取两者中较差的结论：两者都正常时为 0，
与差异多少无关。给出多个对象或一个装有 wheel 的目录时列成表格。

--explain-load 可以给出要一起安装的多个 wheel：torch 的 wheel，加上 NVIDIA 的 wheel 或
装有它们的目录。退出码 0：找得到；1：哪里都没有；3：取决于未给出的 wheel，会写明是哪一个。`),
		Example: `  ncclinic check
  srun --gres=gpu:1 ncclinic check --live
  ncclinic check --python /opt/envs/llm/bin/python --format json
  ncclinic check facts.json
  ncclinic check image.sif --with-node gpu-node.json
  ncclinic check torch-2.6.0-cp311-cp311-manylinux1_x86_64.whl --driver 535.161.08 --gpu V100
  ncclinic check --explain-load libnccl.so.2 ./venv
  ncclinic check --explain-load libnccl.so.2 torch-2.6.0-cp311-cp311-manylinux1_x86_64.whl wheels/
  ncclinic check works.sqsh fails.sqsh`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			g.timeoutSet = c.Flags().Changed("timeout")
			return a.check(c.Context(), args, g, t)
		},
	}
	a.addGatherFlags(c, &g)
	a.addTargetFlags(c, &t)
	a.addOutputFlags(c)
	a.addNodes(c, &g)
	return c
}

// check examines nothing named, one target, two that are compared, or many.
func (a *app) check(ctx context.Context, args []string, g gatherFlags, t targetFlags) error {
	if err := a.checkSoname(t.explain); err != nil {
		return err
	}
	if t.explain != "" && len(args) > 0 {
		if files, ok, err := a.wheelSet(ctx, args); ok && err == nil {
			return a.explainWheels(ctx, files, t.explain)
		} else if err != nil {
			return err
		}
		if len(args) > 1 {
			return usagef("--explain-load: %s", a.tr("one target, or wheels that are installed together", "只能给出一个对象，或一起安装的多个 wheel"))
		}
	}
	if t.platform != "" && !platformForm.MatchString(t.platform) {
		return usagef("--platform: %q %s", t.platform, a.tr("is no platform such as linux/amd64 or linux/arm64", "不是 linux/amd64、linux/arm64 这样的平台"))
	}
	if len(args) > 2 {
		if err := a.noCommand(args[0]); err != nil && a.perhaps(args[0], commandNames(a.root())) != "" {
			return err
		}
		return a.table(ctx, args, g, t)
	}
	if len(args) == 1 {
		if files := wheelsIn(args[0]); len(files) > 0 {
			return a.table(ctx, files, g, t)
		}
	}
	if len(args) == 1 && isLibrary(args[0]) {
		return a.checkLibrary(args[0], t.explain)
	}
	g.also = t.explain
	a.planner = planner(args, g, t)
	var bs []*fact.Bundle
	for i := range max(1, len(args)) {
		b, err := a.subject(ctx, args[min(i, len(args)):min(i+1, len(args))], g, t)
		if err != nil {
			return err
		}
		bs = append(bs, b)
	}
	switch {
	case t.explain != "" && len(bs) == 1:
		return a.explainLoad(bs[0], t.explain)
	case len(bs) == 2:
		return a.compare(bs[0], bs[1])
	}
	return a.judge(bs[0])
}

// planner is the call of fix for what check was asked about, "" for what fix
// does not take.
func planner(args []string, g gatherFlags, t targetFlags) string {
	cmd := "ncclinic fix"
	switch {
	case len(args) > 1:
		return ""
	case len(args) == 1 && isBundle(args[0]):
		cmd += " " + shellWord(args[0])
	case len(args) == 1:
		py := filepath.Join(args[0], "bin", "python")
		if _, err := os.Stat(py); err != nil {
			return ""
		}
		cmd += " --python " + shellWord(py)
	case g.python != "":
		cmd += " --python " + shellWord(g.python)
	}
	if t.driver != "" {
		cmd += " --driver " + shellWord(t.driver)
	}
	if len(t.gpus) > 0 {
		cmd += " --gpu " + shellWord(strings.Join(t.gpus, ","))
	}
	if t.withNode != "" && t.withNode != "here" {
		cmd += " --facts " + shellWord(t.withNode)
	}
	return cmd
}

// noCommand is the error of a word that names nothing that is there, and may have
// been meant as a command; nil for any other.
func (a *app) noCommand(name string) error {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(name, "/.") {
		return nil
	}
	return usagef("%q: %s%s", name, a.tr("no such command, file or folder (ncclinic --help lists the commands)", "没有这个命令、文件或目录（ncclinic --help 列出全部命令）"), a.perhaps(name, commandNames(a.root())))
}

// subject turns what the user named into facts: a bundle that was saved, an
// environment's folder, an artefact, or the environment of this process.
func (a *app) subject(ctx context.Context, args []string, g gatherFlags, t targetFlags) (*fact.Bundle, error) {
	if len(args) == 0 {
		b, err := a.gather(ctx, g)
		if err == nil && t.node() {
			err = a.addNode(ctx, b, t)
		}
		return b, err
	}
	name := args[0]
	if err := a.noCommand(name); err != nil {
		return nil, err
	}
	st, err := os.Stat(name)
	if err != nil {
		return nil, usageError{err}
	}
	target, err := isTarget(name)
	if err != nil {
		return nil, usageError{err}
	}
	if target {
		return a.readTarget(ctx, name, g, t)
	}
	if st.IsDir() { // an environment; of its interpreter, a link to nowhere is one too, a broken one
		g.python = filepath.Join(name, "bin/python")
		if _, err := os.Lstat(g.python); err != nil {
			g.python += "3"
		}
		b, err := a.gather(ctx, g)
		if err == nil {
			b.Subject.Name = name
			if t.node() {
				err = a.addNode(ctx, b, t)
			}
		}
		return b, err
	}
	f, err := readableFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() == 0 {
		return nil, usagef("%s: an empty file", name)
	}
	b, err := fact.ReadBundle(f)
	if errors.Is(err, fact.ErrNotBundle) {
		return nil, usagef("%s: %v; %s", name, err, fmt.Sprintf(a.tr("check takes a file that \"ncclinic facts\" wrote, or the folder of an environment (a log? ncclinic explain %s; a batch script? ncclinic lint %s)",
			"check 接受 \"ncclinic facts\" 写出的文件，或环境目录（日志请用 ncclinic explain %s，批处理脚本请用 ncclinic lint %s）"), shellWord(name), shellWord(name)))
	}
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	mask.Deep(b) // it may come from another version, or from an editor
	if t.node() {
		err = a.addNode(ctx, b, t)
	}
	return b, err
}

// judge runs the rules over a bundle and shows the report.
func (a *app) judge(b *fact.Bundle) error {
	if b.Nodes != nil {
		return a.judgeNodes(b)
	}
	base, err := a.load(rules.Environment...)
	if err != nil {
		return fmt.Errorf("knowledge base: %w", err)
	}
	rep := diag.Run(base.Set(), b)
	return a.show(&rep, base, b)
}
