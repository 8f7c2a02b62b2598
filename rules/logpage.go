package rules

import (
	"fmt"
	"strings"
)

var logWords = map[string]map[string]string{
	"en": {"cause": "names the fault by itself", "consequence": "printed because something else failed earlier or on another rank",
		"either": "needs other evidence", "context": "a fact, no fault", "noise": "never a cause",
		"literal": "Text", "proves": "Proves", "suggests": "Suggests", "versions": "Versions", "role": "Role", "low": "the wording was not found in a source",
		"title": "Messages in logs", "intro": "What `ncclinic explain` knows of the lines that programs print. A message that several causes print only suggests them: other evidence decides."},
	"zh": {"cause": "本身即可说明故障", "consequence": "因更早或其他 rank 的故障而打印", "either": "需要其他证据", "context": "只是事实，不是故障", "noise": "从不是原因",
		"literal": "文本", "proves": "可证实", "suggests": "提示可能", "versions": "版本", "role": "角色", "low": "尚未在源码中核实措辞",
		"title": "日志中的消息", "intro": "`ncclinic explain` 认识的程序输出。多种原因都会打印的消息只作为线索，由其他证据决定。"},
}

// Page renders one signature as Markdown; id is its id or its short name (S001).
func (b *LogBase) Page(id, lang string) (string, bool) {
	r := b.ByID(id)
	for i := range b.Rules {
		if r == nil && b.Rules[i].Sig == strings.ToUpper(id) {
			r = &b.Rules[i]
		}
	}
	if r == nil {
		return "", false
	}
	t, ok := b.Text(r.ID, lang)
	if !ok {
		return "", false
	}
	w := logWords[lang]
	var p strings.Builder
	fmt.Fprintf(&p, "# %s\n\n`%s` · %s · %s\n\n%s\n\n", names(t.Title), r.ID, r.Sig, w[r.Role], names(t.Message))
	for _, l := range r.Literals {
		fmt.Fprintf(&p, "- %s: `%s`\n", w["literal"], strings.ReplaceAll(l, "`", "'"))
	}
	list := func(key string, ids []string) {
		if len(ids) > 0 {
			fmt.Fprintf(&p, "- %s: %s\n", w[key], strings.Join(ids, ", "))
		}
	}
	list("proves", r.Proves)
	list("suggests", r.Suggests)
	if r.Versions != "" {
		fmt.Fprintf(&p, "- %s: %s\n", w["versions"], r.Versions)
	}
	if r.Certainty == "low" {
		fmt.Fprintf(&p, "- %s\n", w["low"])
	}
	return p.String(), true
}

// Messages renders all signatures as one Markdown page.
func (b *LogBase) Messages(lang string) (string, error) {
	w := logWords[lang]
	var p strings.Builder
	fmt.Fprintf(&p, "# %s\n\n%s\n", w["title"], w["intro"])
	for i := range b.Rules {
		page, ok := b.Page(b.Rules[i].ID, lang)
		if !ok {
			return "", fmt.Errorf("%s has no %s text", b.Rules[i].ID, lang)
		}
		fmt.Fprintf(&p, "\n#%s", page) // one level down
	}
	return p.String(), nil
}
