package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/render"
)

func (a *app) factsCmd() *cobra.Command {
	var g gatherFlags
	var out string
	c := &cobra.Command{
		Use:   "facts [-o FILE]",
		Short: a.tr("save what check would look at, to be judged elsewhere or later", "保存 check 会检查的全部事实，供以后或在别处诊断"),
		Long: a.tr(`facts collects what check looks at and writes it as JSON, with secrets masked, so
that it can be attached to a ticket and judged on another machine:

  ncclinic facts -o facts.json
  ncclinic check facts.json`,
			`facts 收集 check 会检查的内容并写成 JSON，其中的密钥、口令已打码，可以附在工单里，
在另一台机器上诊断：

  ncclinic facts -o facts.json
  ncclinic check facts.json`),
		Example: `  srun --gres=gpu:1 ncclinic facts -o facts.json`,
		Args:    noArgs(a),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := a.gather(c.Context(), g)
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				return fact.WriteBundle(render.ControlFree(a.Out), b)
			}
			// Not world-readable: paths and settings of a site are nobody else's business.
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				return usageError{err}
			}
			if err := fact.WriteBundle(render.ControlFree(f), b); err != nil {
				f.Close()
				return usageError{err}
			}
			return f.Close()
		},
	}
	a.addGatherFlags(c, &g)
	c.Flags().StringVarP(&out, "output", "o", "", a.tr("write to this file (default: standard output)", "写入该文件（默认：标准输出）"))
	return c
}

func noArgs(a *app) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%s: %s", c.Name(), a.tr("takes no arguments", "不接受参数"))
		}
		return nil
	}
}
