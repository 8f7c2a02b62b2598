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
			return usagef("completion: %q is not bash, zsh or fish", args[0])
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
