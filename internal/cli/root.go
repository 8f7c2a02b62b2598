package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/rules"
)

// app is one run of the program.
type app struct {
	Streams
	lang string
	out  outputFlags
	// askAnyway lets a test answer in place of a person at a terminal.
	askAnyway bool
	// planner is the command that plans a new torch for what is checked, "" when
	// there is none.
	planner string
	// logs, when set, gets what explain and job read, for a command that goes on from there.
	logs func(*fact.Logs)
	// held is a script that stands on standard input, where several looks are
	// needed at it; nil: there is none.
	held []byte
}

// outputFlags are the flags of every command that shows a report.
type outputFlags struct {
	format      string
	verbose     bool
	color       string
	maxEvidence int
}

func (a *app) root() *cobra.Command {
	check := a.checkCmd()
	root := &cobra.Command{
		Use:   "ncclinic",
		Short: a.tr("find out why distributed PyTorch training fails on a Slurm GPU cluster", "找出 Slurm GPU 集群上 PyTorch 分布式训练失败的原因"),
		Long: a.tr(`ncclinic says why distributed PyTorch training will not start, or died, on a
Slurm GPU cluster: one cause, the evidence, the exact fix.

Without a subcommand it examines the environment that it is started in, like
"ncclinic check". It never imports torch to look at torch; --live does.`,
			`ncclinic 说明 Slurm GPU 集群上的 PyTorch 分布式训练为什么无法启动或中途失败：
给出唯一的原因、证据和可以直接执行的解决办法。

不带子命令时检查当前环境，等同于 "ncclinic check"。检查 torch 时不会 import torch；
只有 --live 才会。`),
		Args:              check.Args,
		RunE:              check.RunE,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           Version,
		DisableAutoGenTag: true,
		Example: a.tr(`  ncclinic                                   # is this environment able to train?
  srun --gres=gpu:1 ncclinic                 # the same, where the job would run
  ncclinic check --python ./venv/bin/python  # another interpreter
  ncclinic demo                              # a whole verdict, without a cluster`,
			`  ncclinic                                   # 当前环境能不能训练？
  srun --gres=gpu:1 ncclinic                 # 在作业真正运行的节点上检查
  ncclinic check --python ./venv/bin/python  # 检查另一个解释器
  ncclinic demo                              # 没有集群也能看到完整的诊断结果`),
	}
	root.Flags().AddFlagSet(check.Flags())
	root.PersistentFlags().String("lang", "", a.tr("language of the output: en or zh (default: from LC_ALL, LC_MESSAGES, LANG)", "输出语言：en 或 zh（默认取自 LC_ALL、LC_MESSAGES、LANG）"))
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if f := c.Flags().Lookup("lang"); f != nil && f.Changed && f.Value.String() != "en" && f.Value.String() != "zh" {
			return a.notOneOf("--lang", f.Value.String(), "en", "zh")
		}
		return nil
	}
	root.SetFlagErrorFunc(a.wrongFlag)
	root.SetVersionTemplate("ncclinic {{.Version}}\n")
	root.SetUsageTemplate(a.usageTemplate())
	root.SetHelpCommand(a.helpCmd())
	root.InitDefaultHelpFlag()
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(check, a.lintCmd(), a.explainCmd(), a.jobCmd(), a.runCmd(), a.fixCmd(), a.factsCmd(), a.demoCmd(), a.rulesCmd(), a.completionCmd(), a.manCmd(), a.docsCmd(), a.versionCmd())
	for _, c := range append(root.Commands(), root) {
		c.InitDefaultHelpFlag()
		if f := c.Flags().Lookup("help"); f != nil {
			f.Usage = a.tr("show this help", "显示本帮助")
		}
	}
	root.InitDefaultVersionFlag()
	if f := root.Flags().Lookup("version"); f != nil {
		f.Usage = a.tr("print the version", "显示版本号")
	}
	return root
}

func (a *app) usageTemplate() string {
	r := strings.NewReplacer("@Usage", a.tr("Usage", "用法"), "@Examples", a.tr("Examples", "示例"),
		"@Commands", a.tr("Commands", "命令"), "@Flags", a.tr("Flags", "选项"), "@Global", a.tr("Flags of every command", "通用选项"),
		"@Exit", a.tr("Exit status: 0 nothing wrong, 1 a problem was found, 2 wrong usage or unreadable input, 3 could not decide.",
			"退出码：0 没有问题；1 发现问题；2 用法错误或输入无法读取；3 无法判断。"),
		"@More", a.tr(`Use "ncclinic COMMAND --help" for more about a command.`, `用 "ncclinic COMMAND --help" 查看各命令的详细说明。`))
	return r.Replace(`@Usage:
  {{if .Runnable}}{{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

@Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

@Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

@Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

@Global:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

@Exit{{if .HasAvailableSubCommands}}
@More{{end}}
`)
}

// addOutputFlags gives a command the flags of a report.
func (a *app) addOutputFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.out.format, "format", "text", a.tr("form of the report: text or json", "报告格式：text 或 json"))
	f.BoolVarP(&a.out.verbose, "verbose", "v", false, a.tr("list all facts and all findings in full", "列出全部事实和全部发现"))
	f.StringVar(&a.out.color, "color", "auto", a.tr("colours: auto (on a terminal, unless NO_COLOR is set), always, never", "颜色：auto（终端且未设置 NO_COLOR）、always、never"))
	f.IntVar(&a.out.maxEvidence, "max-evidence", 8, a.tr("lines of evidence shown for each finding", "每个发现最多显示的证据行数"))
}

// style decides on colours and width.
func (a *app) style() (render.Style, error) {
	tty, width := false, 0
	if a.Terminal != nil {
		tty, width = a.Terminal()
	}
	if width <= 0 || width > 120 {
		width = 100
	}
	st := render.Style{Width: width}
	switch a.out.color {
	case "always":
		st.Color = true
	case "auto":
		st.Color = tty && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
	case "never":
	default:
		return st, a.notOneOf("--color", a.out.color, "auto", "always", "never")
	}
	return st, nil
}

// load reads the knowledge base of the named families.
func (a *app) load(families ...string) (*rules.Base, error) {
	return rules.Load(rules.Embedded(), Version, families...)
}

// show writes a report in the form asked for and returns its exit status.
func (a *app) show(rep *diag.Report, base *rules.Base, b *fact.Bundle) error {
	rep.Tool = Version
	var err error
	switch a.out.format {
	case "json":
		err = render.JSON(a.Out, rep, base, a.lang)
	case "text":
		var st render.Style
		if st, err = a.style(); err != nil {
			return err
		}
		o := render.TextOptions{Lang: a.lang, Style: st, Verbose: a.out.verbose, MaxEvidence: a.out.maxEvidence}
		if top := rep.Top(); top != nil && slices.Contains(torchCauses, top.ID) && rep.Nodes == nil && b != nil && b.Target.Kind == "" {
			o.Planner = a.planner
		}
		if b != nil {
			o.Summary = render.Summary(b, a.lang)
			if k := b.Target.Kind; k != "" && !b.Node.Limits.Memlock.Looked() { // not a folder that is looked at where it lies
				o.Artefact, o.Packages, o.NodeNamed = true, !b.Target.IsImage() && k != source.KindEnv, b.Target.Node != ""
			}
			if rep.Nodes != nil {
				o.Summary = render.NodesSummary(rep.Nodes, a.lang)
			}
		}
		err = render.Text(a.Out, rep, base, o)
		if err == nil && a.out.verbose && b != nil {
			fmt.Fprintf(a.Out, "\n%s\n", a.tr("Facts", "事实"))
			err = render.Facts(a.Out, b, st)
		}
	default:
		return a.notOneOf("--format", a.out.format, "text", "json")
	}
	if err != nil {
		return err
	}
	if c := rep.ExitCode(); c != 0 {
		return exitError(c)
	}
	return nil
}

// readableFile opens a regular file for reading; anything else is an error that says what it is.
func readableFile(name string) (*os.File, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, usageError{err}
	}
	if !st.Mode().IsRegular() {
		return nil, usagef("%s: not a regular file but a %s", name, kindOf(st.Mode()))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usageError{err}
	}
	return f, nil
}

// openFile opens what the user named for reading. A named pipe is an error, as
// nobody need ever write to it; one that another program opened already, as
// <(command) of a shell is, stands under /dev or /proc.
func openFile(name string) (*os.File, error) {
	if st, err := os.Stat(name); err == nil && st.Mode()&fs.ModeNamedPipe != 0 {
		if abs, err := filepath.Abs(name); err == nil && !strings.HasPrefix(abs, "/dev/") && !strings.HasPrefix(abs, "/proc/") {
			return nil, errors.New(diag.NamedPipe)
		}
	}
	return os.Open(name)
}

// kindOf names what is in the place of a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
