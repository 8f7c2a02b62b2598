package rules

import (
	"fmt"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// pageWords are the headings of generated pages.
var pageWords = map[string]map[string]string{
	"en": {"why": "Why", "fix": "Fix", "decide": "To be sure", "checks": "What proves it", "causes": "Proves", "leads": "Leads to", "refs": "Sources",
		"explains": "Explains", "index": "Rules", "variants": "Seen in other forms",
		"cause": "Causes: what is wrong, why, and what to do", "install": "Checks of an installation", "node": "Checks of a node and its Slurm context", "nodes": "Checks that compare the nodes of an allocation",
		"log": "Messages in logs", "lint": "Checks of batch scripts",
		"user": "who acts: the user", "admin": "who acts: the administrator", "hardware": "who acts: the administrator (hardware)", "upstream": "a fault of the software",
		"error": "error", "warning": "warning", "note": "note", "since": "since"},
	"zh": {"why": "原因", "fix": "解决办法", "decide": "如何确认", "checks": "由哪些检查证实", "causes": "可证实的原因", "leads": "会导致", "refs": "资料来源",
		"explains": "可解释的其他现象", "index": "规则", "variants": "其他表现形式",
		"cause": "原因：哪里错了、为什么、怎么办", "install": "对安装环境的检查", "node": "对节点和 Slurm 上下文的检查", "nodes": "对同一分配内各节点的比较",
		"log": "日志中的消息", "lint": "对批处理脚本的检查",
		"user": "处理者：用户", "admin": "处理者：管理员", "hardware": "处理者：管理员（硬件）", "upstream": "软件缺陷",
		"error": "错误", "warning": "警告", "note": "提示", "since": "始于"},
}

// FamilyTitle names a family of rules for people.
func FamilyTitle(family, lang string) string { return pageWords[lang][family] }

// Family lists the ids of a family in order.
func (b *Base) Family(family string) []string {
	var ids []string
	for id, f := range b.Files {
		if strings.HasPrefix(f.Name, family+"/") {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids
}

// Headline is one line about a rule: its title, or the first sentence of its message.
func (b *Base) Headline(id, lang string) string {
	t, _ := b.Text(id, lang)
	if t.Title != "" {
		return names(t.Title)
	}
	line := strings.Join(strings.Fields(t.Message), " ")
	for _, stop := range []string{". ", "。", "; ", "；"} {
		if i := strings.Index(line, stop); i > 0 {
			line = line[:i]
		}
	}
	return names(strings.TrimSuffix(line, "."))
}

// names shows placeholders as ‹name›.
func names(s string) string {
	for _, p := range diag.Placeholders(s) {
		s = strings.ReplaceAll(s, "{"+p+"}", "‹"+p+"›")
	}
	return s
}

// Page renders a rule as Markdown.
func (b *Base) Page(id, lang string) (string, bool) {
	f := b.Files[id]
	t, ok := b.Text(id, lang)
	if f == nil || !ok {
		return "", false
	}
	w := pageWords[lang]
	var p strings.Builder
	title := t.Title
	if title == "" {
		title = id
	}
	fmt.Fprintf(&p, "# %s\n\n`%s`", names(title), id)
	for _, k := range []string{f.Header.Severity, f.Header.Actor} {
		if w[k] != "" {
			fmt.Fprintf(&p, " · %s", w[k])
		}
	}
	fmt.Fprintf(&p, " · %s %s\n", w["since"], f.Header.Since)
	if t.Message != "" {
		fmt.Fprintf(&p, "\n%s\n", names(t.Message))
	}
	section := func(head, body string) {
		if strings.TrimSpace(body) != "" {
			fmt.Fprintf(&p, "\n## %s\n\n%s\n", w[head], strings.TrimSpace(body))
		}
	}
	section("variants", variants(t))
	section("why", names(t.Sections["why"]))
	section("fix", fixPage(f, t, lang))
	section("decide", names(t.Sections["decide"]))
	section("checks", b.checksOf(id, lang))
	section("causes", links(f.Header.Proves))
	if f.Header.Cause != "" {
		section("leads", links([]string{f.Header.Cause}))
	}
	section("explains", links(f.Header.Explains))
	var refs []string
	for _, r := range f.Header.Refs {
		refs = append(refs, fmt.Sprintf("- %s (%s)", r.What, r.Date))
	}
	section("refs", strings.Join(refs, "\n"))
	return p.String(), true
}

func variants(t diag.Text) string {
	var keys []string
	for k := range t.Sections {
		if strings.HasPrefix(k, "message:") {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	var out []string
	for _, k := range keys {
		out = append(out, "- "+names(strings.Join(strings.Fields(t.Sections[k]), " ")))
	}
	return strings.Join(out, "\n")
}

func fixPage(f *File, t diag.Text, lang string) string {
	var p strings.Builder
	for _, x := range f.Header.Fixes {
		if c := conditions(x.When, lang); c != "" {
			fmt.Fprintf(&p, "**%s**\n\n", c)
		}
		if note := t.Sections["fix:"+x.ID]; note != "" {
			fmt.Fprintf(&p, "%s\n\n", names(note))
		}
		if len(x.Commands) > 0 {
			lang := "sh"
			if x.Kind == diag.FixAsk {
				lang = "text"
			}
			fmt.Fprintf(&p, "```%s\n%s\n```\n\n", lang, names(strings.Join(x.Commands, "\n")))
		}
	}
	return p.String()
}

func (b *Base) checksOf(cause, lang string) string {
	var out []string
	for _, id := range b.IDs() {
		f := b.Files[id]
		for _, c := range f.Header.Proves {
			if c == cause && !strings.HasPrefix(f.Name, "log/") {
				out = append(out, fmt.Sprintf("- [`%s`](%s.md): %s", id, id, b.Headline(id, lang)))
				break
			}
		}
	}
	return strings.Join(out, "\n")
}

func links(ids []string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf("- [`%s`](%s.md)", id, id))
	}
	return strings.Join(out, "\n")
}

// Index is the title of the list of all rules.
func Index(lang string) string { return pageWords[lang]["index"] }
