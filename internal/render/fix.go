package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/plan"
)

// FixView is what "ncclinic fix" has to say.
type FixView struct {
	Cause     *diag.Finding // nil: no cause is known
	Texts     diag.Texts
	Plan      *plan.Plan      // nil: no other build of torch is wanted
	Option    int             // index of the option whose commands are shown
	All       bool            // the commands of all options
	More      []*diag.Finding // what else is wrong in a batch script
	Patch     string          // of the batch script
	Script    string          // its name
	PatchSays []string        // what it changes and what it leaves
	Rest      []ScriptPatch   // of further scripts
	Ask       string          // text for the administrator
	Decide    []string        // commands that would decide an undecided report
	Open      *diag.Finding   // of an undecided report: what was seen, nil for none
	Verdict   string          // of the report that the fix starts from, "" for none
}

// ScriptPatch is the patch of one batch script, "" when nothing is edited.
type ScriptPatch struct {
	Script, Patch string
	Says          []string // what it changes and what it leaves
}

type fixWords struct {
	nothing, undecided, plan, options, do, doOption, notTaken, see, unknown, impossible, nearest, now, needs, gives, noTorch, target, node, patch, ask, other, installed, table string
	how                                                                                                                                                                         map[string]string
	id                                                                                                                                                                          map[string]string
	alsoIn, inFile, patchIn, advised, inScript, more, also, atLine, decide, colon, comma, driver                                                                                string
}

var fixEN = fixWords{
	undecided: "the cause is not decided: ncclinic explain (or check) says more",
	nothing:   "nothing to change", plan: "FIX", options: "Options", do: "Do", doOption: "Do (option %d)", notTaken: "Why not another build", see: "Note", unknown: "What is not known",
	impossible: "Impossible", nearest: "The nearest that can be had", now: "now", needs: "needs: ", gives: "gives up: ", noTorch: "no torch", target: "for", node: "node",
	patch: "Patch of %s (safe edits; ncclinic lint --fix %s applies them)", ask: "For the administrator (copy and send)", other: "Fix", installed: "installed",
	table: "Tables: torch up to %s, CUDA up to %s, read %s. No network was used.", more: "… %d more (--format json)", also: "Also in this script", inScript: "In this script", alsoIn: "Also in %s", inFile: "In %s", patchIn: "Patch of the script on standard input (safe edits; ncclinic lint --fix - < SCRIPT > NEW applies them)", advised: "no error; some changes are advised", atLine: "line %d: ", decide: "What would decide", colon: ": ", comma: ", ", driver: "driver ",
	how: map[string]string{plan.Direct: "the driver is as new as its CUDA", plan.Minor: "by minor-version compatibility", plan.Forward: "with a cuda-compat package", plan.Unsaid: "if the driver does"},
	id:  map[string]string{plan.OptKeep: "keep", plan.OptNearest: "nearest", plan.OptNewest: "newest"},
}

var fixZH = fixWords{
	undecided: "原因尚未确定：详见 ncclinic explain（或 check）",
	nothing:   "无需更改", plan: "修复方案", options: "可选方案", do: "执行", doOption: "执行（方案 %d）", notTaken: "为什么不用其他构建", see: "注意", unknown: "尚不清楚",
	impossible: "无法满足", nearest: "最接近的可行方案", now: "当前", needs: "前提：", gives: "代价：", noTorch: "没有 torch", target: "目标", node: "节点",
	patch: "%s 的补丁（安全修改；可用 ncclinic lint --fix %s 应用）", ask: "发给管理员的内容（复制发送）", other: "解决办法", installed: "已安装",
	table: "表的范围：torch 至 %s，CUDA 至 %s，读取日期 %s。未使用网络。", more: "… 另有 %d 项（--format json）", also: "该脚本中的其他问题", inScript: "该脚本中的问题", alsoIn: "%s 中的其他问题", inFile: "%s 中的问题", patchIn: "标准输入中脚本的补丁（安全修改；可用 ncclinic lint --fix - < 脚本 > 新脚本 应用）", advised: "没有错误；建议作以下修改", atLine: "第 %d 行：", decide: "判定方法", colon: "：", comma: "，", driver: "驱动 ",
	how: map[string]string{plan.Direct: "驱动不低于其 CUDA", plan.Minor: "依靠次版本兼容", plan.Forward: "需要 cuda-compat 包", plan.Unsaid: "取决于驱动"},
	id:  map[string]string{plan.OptKeep: "保留版本", plan.OptNearest: "最小改动", plan.OptNewest: "最新可用"},
}

type fixText struct {
	p    *printer
	v    *FixView
	u    *fixWords
	lang string
}

// Fix writes a plan and the fixes of a cause for people.
func Fix(w io.Writer, v *FixView, st Style, lang string) error {
	x := fixText{p: newPrinter(w, st), v: v, u: &fixEN, lang: lang}
	if lang == "zh" {
		x.u = &fixZH
	}
	x.head()
	if v.Cause != nil {
		x.particular(v.Cause)
	}
	if v.Plan != nil {
		x.planned()
	}
	x.cause()
	x.open()
	x.decide()
	x.more()
	x.patch(&ScriptPatch{v.Script, v.Patch, v.PatchSays}, "")
	for i := range v.Rest {
		x.patch(&v.Rest[i], v.Rest[i].Script+x.u.colon)
	}
	if v.Ask != "" {
		x.section(x.u.ask)
		for _, l := range strings.Split(strings.TrimRight(v.Ask, "\n"), "\n") {
			x.p.line(strings.TrimRight("  "+Clean(l, false), " "))
		}
	}
	if v.Plan != nil {
		x.p.line("")
		x.p.line(x.p.paint(dim, fmt.Sprintf(x.u.table, v.Plan.Tables.Torch, v.Plan.Tables.CUDA, v.Plan.Tables.Read)))
	}
	return x.p.w.Flush()
}

// patch shows the patch of a script and what is said of it; of further scripts
// without a patch their name stands in front of that.
func (x *fixText) patch(p *ScriptPatch, label string) {
	if p.Patch != "" {
		label = ""
		word := p.Script
		if strings.HasPrefix(word, "-") {
			word = "./" + word
		}
		title := fmt.Sprintf(x.u.patch, p.Script, fact.ShellWord(word))
		if p.Script == "-" {
			title = x.u.patchIn
		}
		x.section(Clean(title, false))
		for _, l := range strings.Split(strings.TrimRight(p.Patch, "\n"), "\n") {
			x.p.line("  " + Clean(l, false))
		}
	}
	for i, l := range p.Says {
		if i == 0 {
			x.p.line("")
		}
		x.p.hang(2, "- ", Clean(label+l, false))
	}
}

// line tells the line of a finding, "" where there is none.
func (x *fixText) line(f *diag.Finding) string {
	if len(f.Where) == 0 || f.Where[0].Line == 0 {
		return ""
	}
	return fmt.Sprintf(x.u.atLine, f.Where[0].Line)
}

// place tells where a finding is: its line, and the file where that is not the
// only script.
func (x *fixText) place(f *diag.Finding) string {
	at := x.line(f)
	if at == "" {
		return ""
	}
	if file := f.Where[0].File; file != "" && file != "-" && (len(x.v.Rest) > 0 || file != x.v.Script) {
		at = Clean(f.Where[0].File, false) + ", " + at
		if x.lang == "zh" {
			at = strings.Replace(at, ", ", " ", 1)
		}
	}
	return at
}

// particular says what was found and where. What a plan is for, it says itself.
func (x *fixText) particular(f *diag.Finding) {
	at := x.place(f)
	if x.v.Plan != nil && (at == "" || x.v.Script == "") {
		return
	}
	if m := diag.Message(x.v.Texts, f, x.lang); m != "" {
		x.p.line("")
		x.p.para(0, at+Clean(m, true))
	}
}

func (x *fixText) section(name string) {
	x.p.line("")
	x.p.line(x.p.paint(bold, name))
}

func (x *fixText) head() {
	v := x.v
	title, color := x.u.nothing, green
	switch {
	case v.Plan != nil && len(v.Plan.Options) == 0:
		title, color = x.u.impossible, red
	case v.Plan != nil && v.Option < len(v.Plan.Options) && len(v.Plan.Impossible) > 0:
		title, color = x.u.nearest+x.u.colon+x.build(&v.Plan.Options[v.Option]), yellow
	case v.Plan != nil && v.Option < len(v.Plan.Options):
		o := &v.Plan.Options[v.Option]
		if !o.Installed || len(o.Steps) > 1 {
			title, color = x.build(o), yellow
		} else if v.Cause != nil {
			title, color = Clean(diag.Title(v.Texts, v.Cause, x.lang), false), yellow
		}
	case v.Cause != nil:
		title, color = Clean(diag.Title(v.Texts, v.Cause, x.lang), false), yellow
	case v.Verdict == string(diag.Unknown):
		title, color = x.u.undecided, yellow
		if v.Open != nil {
			title = wordsFor(x.lang).openTitle(v.Texts, v.Open, x.lang, title)
		}
	case len(v.More) > 0:
		title, color = x.u.advised, yellow
	}
	x.p.line(x.p.paint(color, x.u.plan) + x.p.paint(bold, "  "+title))
	if v.Cause != nil {
		t := Clean(diag.Title(v.Texts, v.Cause, x.lang), false)
		sure := ""
		if c := v.Cause.Certainty; c != diag.Proven && c != "" {
			sure = " · " + wordsFor(x.lang).certainty[string(c)]
		}
		if t == title {
			x.p.line(x.p.paint(dim, v.Cause.ID+sure))
		} else {
			x.p.line(x.p.paint(dim, t+" ["+v.Cause.ID+"]"+sure))
		}
	}
}

func (x *fixText) build(o *plan.Option) string {
	if o.Module != "" {
		return Clean("module load "+o.Module, false)
	}
	s := "torch " + o.Torch + "+" + o.Tag
	if o.Tool != "" {
		s += " (" + o.Tool + ")"
	}
	return s
}

func (x *fixText) planned() {
	p := x.v.Plan
	x.p.line("")
	var t []string
	if p.Python != "" {
		t = append(t, "Python "+p.Python)
	}
	t = append(t, p.Machine)
	if p.Glibc != "" {
		t = append(t, "glibc "+p.Glibc)
	}
	x.p.hang(2, pad(x.u.target, 8), Clean(strings.Join(t, x.u.comma), false))
	for _, n := range p.Nodes {
		var s []string
		if n.Driver != "" {
			s = append(s, x.u.driver+n.Driver)
		}
		for _, g := range n.GPUs {
			s = append(s, g.Label())
		}
		if len(s) == 0 {
			s = []string{"?"}
		}
		name := ""
		if n.Name != "" {
			name = n.Name + x.u.colon
		}
		x.p.hang(2, pad(x.u.node, 8), Clean(name+strings.Join(s, x.u.comma), false))
	}
	now := x.u.noTorch
	if p.Have != nil {
		now = "torch " + p.Have.Version
		if p.Have.CUDA != "" {
			now += x.u.comma + "CUDA " + p.Have.CUDA
		} else if p.Have.Accel != "" {
			now += x.u.comma + strings.ToUpper(p.Have.Accel)
		}
	}
	x.p.hang(2, pad(x.u.now, 8), Clean(now, false))
	x.list(x.u.impossible, p.Impossible)
	if len(p.Options) > 0 {
		x.section(x.u.options)
		for i := range p.Options {
			x.option(i, &p.Options[i])
		}
	}
	x.list(x.u.unknown, p.Unknown)
	x.list(x.u.see, p.Notes)
	for i := range p.Options {
		if i != x.v.Option && !x.v.All {
			continue
		}
		name := x.u.do
		if len(p.Options) > 1 {
			name = fmt.Sprintf(x.u.doOption, i+1)
		}
		x.section(name)
		x.steps(&p.Options[i])
	}
	if len(p.Rejected) > 0 {
		x.section(x.u.notTaken)
		for i, r := range p.Rejected {
			if i == 10 {
				x.p.line("  " + fmt.Sprintf(x.u.more, len(p.Rejected)-i))
				break
			}
			x.p.hang(2, "- ", Clean(strings.TrimSpace("torch "+r.Torch+" "+r.Tag)+x.u.colon+r.Why.Text(x.lang), false))
		}
	}
}

func pad(s string, n int) string {
	w := 0
	for _, r := range s {
		if r > 0x2E80 {
			w++
		}
		w++
	}
	return s + strings.Repeat(" ", max(1, n-w))
}

func (x *fixText) option(i int, o *plan.Option) {
	ids := []string{x.u.id[o.ID]}
	for _, a := range o.Also {
		ids = append(ids, x.u.id[a])
	}
	s := fmt.Sprintf("torch %s+%s%sCUDA %s", o.Torch, o.Tag, x.u.colon, o.CUDA)
	if o.ROCm != "" {
		s = fmt.Sprintf("torch %s+%s%sROCm %s", o.Torch, o.Tag, x.u.colon, o.ROCm)
	}
	if o.NCCL != "" {
		s += x.u.comma + "NCCL " + o.NCCL
	}
	s += x.u.comma + x.u.how[o.How]
	if o.Installed {
		s += " (" + x.u.installed + ")"
	}
	x.p.hang(2, fmt.Sprintf("%d ", i+1), strings.Join(ids, " = ")+"  "+s)
	for _, n := range o.Needs {
		x.p.hang(4, "", Clean(x.u.needs+n.Text(x.lang), false))
	}
	for _, n := range o.GivesUp {
		x.p.hang(4, "", Clean(x.u.gives+n.Text(x.lang), false))
	}
}

func (x *fixText) list(name string, rs []plan.Reason) {
	if len(rs) == 0 {
		return
	}
	x.section(name)
	for _, r := range rs {
		x.p.hang(2, "- ", Clean(r.Text(x.lang), false))
	}
}

func (x *fixText) steps(o *plan.Option) {
	for i, s := range o.Steps {
		if i > 0 {
			x.p.line("")
		}
		x.p.para(2, Clean(s.Why.Text(x.lang), true))
		if s.Text != "" {
			for _, l := range strings.Split(strings.TrimRight(s.Text, "\n"), "\n") {
				x.p.line("    " + x.p.paint(cyan, Clean(l, false)))
			}
		}
		for _, c := range s.Commands {
			x.p.line("    " + x.p.paint(cyan, Clean(c, false)))
		}
	}
}

// fileOf names the script that a finding is about.
func fileOf(f *diag.Finding) string {
	if f == nil || len(f.Where) == 0 {
		return ""
	}
	return f.Where[0].File
}

// byScript lists what else is wrong, the script of the cause first, then the
// others as they were named.
func (x *fixText) byScript() []*diag.Finding {
	names := []string{fileOf(x.v.Cause), x.v.Script}
	for _, p := range x.v.Rest {
		names = append(names, p.Script)
	}
	out := slices.Clone(x.v.More)
	slices.SortStableFunc(out, func(a, b *diag.Finding) int {
		return slices.Index(names, fileOf(a)) - slices.Index(names, fileOf(b))
	})
	return out
}

// heading names the script that a finding stands under, where there are several.
func (x *fixText) heading(f *diag.Finding) string {
	switch {
	case len(x.v.Rest) == 0 && x.v.Cause == nil:
		return x.u.inScript
	case len(x.v.Rest) == 0:
		return x.u.also
	case x.v.Cause != nil && fileOf(f) == fileOf(x.v.Cause):
		return Clean(fmt.Sprintf(x.u.alsoIn, fileOf(f)), false)
	}
	return Clean(fmt.Sprintf(x.u.inFile, fileOf(f)), false)
}

// more shows what else is wrong in a script and what to do; edits that are safe
// stand in the patch.
func (x *fixText) more() {
	fixed := map[string]bool{} // said once for each kind
	last := ""
	for _, f := range x.byScript() {
		if name := x.heading(f); name != last {
			x.section(name)
			last = name
		}
		at := x.line(f)
		t := diag.Message(x.v.Texts, f, x.lang) // names the words that are wrong
		if t == "" || at == "" {
			t = diag.Title(x.v.Texts, f, x.lang)
		}
		x.p.hang(2, "- ", at+strings.Join(strings.Fields(Clean(t, true)), " ")+" ["+f.ID+"]")
		if fixed[f.ID] {
			continue
		}
		fixed[f.ID] = true
		for _, fix := range f.Fixes {
			if note := diag.Section(x.v.Texts, f, "fix:"+fix.ID, x.lang); note != "" {
				x.p.para(4, Clean(note, true))
			}
			for _, c := range fix.Commands {
				for _, l := range strings.Split(c, "\n") {
					x.p.line("      " + x.p.paint(cyan, Clean(l, false)))
				}
			}
		}
	}
}

// open tells what an undecided report saw, and the causes that it may have.
func (x *fixText) open() {
	f := x.v.Open
	if f == nil || x.v.Cause != nil || x.v.Plan != nil {
		return
	}
	w := wordsFor(x.lang)
	if len(f.Suggests) > 0 {
		x.section(w.candidates)
		for _, id := range f.Suggests {
			t := diag.Title(x.v.Texts, &diag.Finding{ID: id}, x.lang)
			if t != id {
				t += " [" + id + "]"
			}
			x.p.hang(2, "- ", Clean(t, false))
		}
	}
	if len(f.Evidence) > 0 {
		x.section(w.evidence)
		for i, e := range f.Evidence {
			if i == 3 {
				break
			}
			x.p.hang(2, "", (&textReport{ui: w}).evidenceLine(e))
		}
	}
}

// decide tells what would decide, where the report is not sure of the cause.
func (x *fixText) decide() {
	needs, text := x.v.Decide, ""
	if f := x.v.Cause; f != nil {
		if f.Certainty == diag.Proven {
			return
		}
		shown := map[string]bool{}
		for _, fix := range f.Fixes {
			for _, c := range fix.Commands {
				shown[c] = true
			}
		}
		needs, text = nil, diag.Section(x.v.Texts, f, "decide", x.lang)
		for _, n := range f.Needs {
			if !shown[n] {
				needs = append(needs, n)
			}
		}
	} else if x.v.Plan != nil {
		return
	}
	if text == "" && len(needs) == 0 {
		return
	}
	x.section(x.u.decide)
	if text != "" {
		x.p.para(2, Clean(text, true))
	}
	x.p.needs(2, needs, x.lang)
}

// cause shows the fixes of the knowledge base. Where a plan stands above, those
// that install another build say the same in short and are left out.
func (x *fixText) cause() {
	f := x.v.Cause
	if f == nil || x.v.Ask != "" && len(f.Fixes) == 0 {
		return
	}
	first := true
	for _, fix := range f.Fixes {
		if x.v.Plan != nil && len(x.v.Plan.Options) > 0 && fix.Kind == diag.FixCommand {
			continue
		}
		if first {
			x.section(x.u.other)
		} else {
			x.p.line("")
		}
		first = false
		if note := diag.Section(x.v.Texts, f, "fix:"+fix.ID, x.lang); note != "" {
			x.p.para(2, Clean(note, true))
		}
		for _, c := range fix.Commands {
			for _, l := range strings.Split(c, "\n") {
				x.p.line("    " + x.p.paint(cyan, Clean(l, false)))
			}
		}
	}
}
