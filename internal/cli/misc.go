package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: a.tr("print the version", "显示版本号"),
		Args:  noArgs(a),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "ncclinic %s\n", Version)
			return err
		},
	}
}

// helpCmd is what people type who know "git help": the same as --help.
func (a *app) helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Hidden: true,
		Short:  a.tr("show the help of a command", "显示命令的帮助"),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			if len(args) == 0 {
				return root.Help()
			}
			for _, k := range root.Commands() {
				if k.Name() == args[0] {
					return k.Help()
				}
			}
			return usagef("help: %q: %s%s", args[0], a.tr("no such command", "没有这个命令"), a.perhaps(args[0], commandNames(root)))
		},
	}
}

func (a *app) completionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: a.tr("print a completion script for a shell", "输出 shell 补全脚本"),
		Example: `  source <(ncclinic completion bash)
  ncclinic completion zsh > "${fpath[1]}/_ncclinic"
  ncclinic completion fish > ~/.config/fish/completions/ncclinic.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s", a.tr("completion needs the name of a shell: bash, zsh or fish", "completion 需要 shell 名称：bash、zsh 或 fish"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(a.Out, true)
			case "zsh":
				return c.Root().GenZshCompletion(a.Out)
			case "fish":
				return c.Root().GenFishCompletion(a.Out, true)
			}
			return a.notOneOf("completion", args[0], "bash", "zsh", "fish")
		},
	}
}

// writeJSON writes a value as the forms for programs have it.
func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
