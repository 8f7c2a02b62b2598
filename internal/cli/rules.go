package cli

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/rules"
)

func (a *app) rulesCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "rules [ID]",
		Short: a.tr("list the rules, or explain one", "列出规则，或解释某条规则"),
		Long: a.tr(`rules lists every cause that ncclinic can name and every check that proves one.
With an id it explains: what it means, why it happens, what to do.`,
			`rules 列出 ncclinic 能给出的全部原因，以及证明这些原因的检查项。
带上 id 时给出解释：含义、成因和处理办法。`),
		Example: "  ncclinic rules\n  ncclinic rules torch-cpu-build",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s", a.tr("rules takes one id at most", "rules 最多接受一个 id"))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			base, err := a.load(rules.All...)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return base.IDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			base, err := a.load(rules.All...)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				page, ok := base.Page(args[0], a.lang)
				if !ok {
					logs, err := rules.LoadLog(rules.EmbeddedLog())
					if err != nil {
						return err
					}
					page, ok = logs.Page(args[0], a.lang)
				}
				if !ok {
					return usagef("%s: %q%s", a.tr("no such rule", "没有这条规则"), args[0], a.near(base, args[0]))
				}
				st, err := a.style()
				if err != nil {
					return err
				}
				return render.Page(a.Out, page, st)
			}
			for _, fam := range rules.All {
				fmt.Fprintf(a.Out, "%s\n", rules.FamilyTitle(fam, a.lang))
				for _, id := range base.Family(fam) {
					fmt.Fprintf(a.Out, "  %-36s %s\n", id, base.Headline(id, a.lang))
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&a.out.color, "color", "auto", a.tr("colours: auto, always, never", "颜色：auto、always、never"))
	return c
}

// near suggests ids that share a part with a wrong one.
func (a *app) near(base *rules.Base, id string) string {
	score := map[string]int{}
	var out []string
	for _, k := range base.IDs() {
		for _, w := range strings.Split(id, "-") {
			if len(w) > 2 && strings.Contains(k, w) {
				score[k]++
			}
		}
		if strings.HasPrefix(k, id) {
			score[k] += 9
		}
		if score[k] > 0 {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return ""
	}
	sort.SliceStable(out, func(i, j int) bool { return score[out[i]] > score[out[j]] })
	out = out[:min(len(out), 5)]
	return a.tr("; perhaps ", "；也许是 ") + strings.Join(out, ", ")
}
