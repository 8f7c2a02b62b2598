package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/rules"
)

// generated stands at the top of every generated page.
const generated = "<!-- Generated from the rule files by `make docs`; edits here are lost. -->\n\n"

// docsCmd writes the generated documentation; it is for the project itself.
func (a *app) docsCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "docs DIR",
		Short:  a.tr("write the generated pages (rules, manual) into a folder", "把自动生成的文档（规则、手册页）写入目录"),
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			base, err := a.load(rules.All...)
			if err != nil {
				return err
			}
			logs, err := rules.LoadLog(rules.EmbeddedLog())
			if err != nil {
				return err
			}
			for _, lang := range rules.Languages {
				dir := filepath.Join(args[0], "rules", lang)
				if err := writePages(base, dir, lang); err != nil {
					return err
				}
				page, err := logs.Messages(lang)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(dir, "log-messages.md"), []byte(generated+page), 0o644); err != nil {
					return err
				}
			}
			return os.WriteFile(filepath.Join(args[0], "ncclinic.1"), []byte(manPage(a.english().root())), 0o644)
		},
	}
}

// english returns the same program speaking English, for generated files.
func (a *app) english() *app { return &app{Streams: a.Streams, lang: "en"} }

// writePages replaces a folder of rule pages: a page for each rule and an index.
func writePages(base *rules.Base, dir, lang string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	index := generated + "# " + rules.Index(lang) + "\n"
	for _, fam := range rules.All {
		index += "\n## " + rules.FamilyTitle(fam, lang) + "\n\n"
		for _, id := range base.Family(fam) {
			page, ok := base.Page(id, lang)
			if !ok {
				return fmt.Errorf("%s has no %s text", id, lang)
			}
			if err := os.WriteFile(filepath.Join(dir, id+".md"), []byte(generated+page), 0o644); err != nil {
				return err
			}
			index += fmt.Sprintf("- [`%s`](%s.md) %s\n", id, id, base.Headline(id, lang))
		}
	}
	index += fmt.Sprintf("\n## %s\n\n- [log-messages](log-messages.md)\n", rules.FamilyTitle("log", lang))
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(strings.TrimRight(index, "\n")+"\n"), 0o644)
}
