package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/render"
)

func (a *app) factsCmd() *cobra.Command {
	var g gatherFlags
	var t targetFlags
	var out string
	c := &cobra.Command{
		Use:   "facts [TARGET] [-o FILE]",
		Short: a.tr("save what check would look at, to be judged elsewhere or later", "保存 check 会检查的全部事实，供以后或在别处诊断"),
		Long: a.tr(`facts collects what check looks at and writes it as JSON, with secrets masked, so
that it can be attached to a ticket and judged on another machine:

  ncclinic facts -o facts.json
  ncclinic check facts.json

With a TARGET, such as an image or a wheel, they are those of the target.`,
			`facts 收集 check 会检查的内容并写成 JSON，其中的密钥、口令已打码，可以附在工单里，
在另一台机器上诊断：

  ncclinic facts -o facts.json
  ncclinic check facts.json

给出镜像、wheel 等对象时，保存的是该对象的事实。`),
		Example: `  srun --gres=gpu:1 ncclinic facts -o facts.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s", a.tr("facts takes one target at most", "facts 最多接受一个对象"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			g.timeoutSet, g.also = c.Flags().Changed("timeout"), t.explain
			b, err := a.subject(c.Context(), args, g, t)
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
	a.addTargetFlags(c, &t)
	_ = c.Flags().MarkHidden("explain-load") // it adds a fact here, and shows nothing
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
