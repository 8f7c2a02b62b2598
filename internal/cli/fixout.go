package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

// fixJSON writes the plan by its schema.
func (a *app) fixJSON(v *render.FixView, s *start) error {
	type jsonFix struct {
		ID       string   `json:"id"`
		Kind     string   `json:"kind"`
		Commands []string `json:"commands"`
		Note     string   `json:"note"`
	}
	type jsonMore struct {
		ID      string    `json:"id"`
		Title   string    `json:"title"`
		File    string    `json:"file,omitempty"`
		Line    int       `json:"line,omitempty"`
		Message string    `json:"message,omitempty"`
		Fixes   []jsonFix `json:"fixes"`
	}
	type jsonPatch struct {
		Script string `json:"script"`
		Patch  string `json:"patch"`
	}
	out := struct {
		Schema    string          `json:"schema"`
		Tool      string          `json:"tool"`
		Subject   fact.Subject    `json:"subject"`
		Verdict   string          `json:"verdict,omitempty"`
		Cause     *string         `json:"cause"`
		Title     string          `json:"title,omitempty"`
		Line      int             `json:"line,omitempty"`
		Message   string          `json:"message,omitempty"`
		Certainty string          `json:"certainty,omitempty"`
		Needs     []string        `json:"needs,omitempty"`
		Actor     string          `json:"actor,omitempty"`
		Fixes     []jsonFix       `json:"fixes"`
		More      []jsonMore      `json:"more,omitempty"`
		Plan      json.RawMessage `json:"plan"`
		Option    int             `json:"option"`
		Patch     string          `json:"patch,omitempty"`
		Script    string          `json:"script,omitempty"`
		Patches   []jsonPatch     `json:"patches,omitempty"`
		Ask       string          `json:"ask,omitempty"`
	}{Schema: "ncclinic.fix/v1", Tool: Version, Subject: fact.Subject{Kind: s.kind, Name: s.name}, Verdict: v.Verdict, Fixes: []jsonFix{}, Option: v.Option + 1, Patch: v.Patch, Script: v.Script, Ask: v.Ask}
	if f := v.Cause; f != nil {
		out.Cause, out.Title, out.Actor = &f.ID, diag.Title(v.Texts, f, a.lang), f.Actor
		out.Certainty = string(f.Certainty)
		if f.Certainty != diag.Proven {
			out.Needs = f.Needs
		}
		for _, x := range f.Fixes {
			out.Fixes = append(out.Fixes, jsonFix{x.ID, x.Kind, x.Commands, diag.Section(v.Texts, f, "fix:"+x.ID, a.lang)})
		}
	}
	if v.Cause == nil {
		out.Needs = v.Decide
	}
	for _, p := range v.Rest {
		out.Patches = append(out.Patches, jsonPatch{p.Script, p.Patch})
	}
	if f := v.Cause; f != nil && v.Script != "" && len(f.Where) > 0 && f.Where[0].Line > 0 {
		out.Line, out.Message = f.Where[0].Line, diag.Message(v.Texts, f, a.lang)
	}
	for _, f := range v.More {
		m := jsonMore{ID: f.ID, Title: diag.Title(v.Texts, f, a.lang), Fixes: []jsonFix{}}
		if len(f.Where) > 0 {
			m.File, m.Line, m.Message = f.Where[0].File, f.Where[0].Line, diag.Message(v.Texts, f, a.lang)
		}
		for _, x := range f.Fixes {
			m.Fixes = append(m.Fixes, jsonFix{x.ID, x.Kind, x.Commands, diag.Section(v.Texts, f, "fix:"+x.ID, a.lang)})
		}
		out.More = append(out.More, m)
	}
	out.Plan = json.RawMessage("null")
	if v.Plan != nil {
		raw, err := v.Plan.JSON(a.lang)
		if err != nil {
			return err
		}
		out.Plan = raw
	}
	return a.writeJSON(out)
}

// fixScript writes the commands of one option as a script that says what it does.
func (a *app) fixScript(v *render.FixView, s *start) error {
	w := bufio.NewWriter(a.Out)
	comment := func(text string) {
		for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
			fmt.Fprintln(w, strings.TrimRight("# "+render.Clean(l, false), " "))
		}
	}
	fmt.Fprintln(w, "#!/bin/sh")
	comment(fmt.Sprintf(a.tr("Written by ncclinic %s. Read it before you run it; running it twice does no harm.", "由 ncclinic %s 生成。执行前请先阅读；重复执行没有害处。"), Version))
	if v.Cause != nil {
		comment(diag.Title(v.Texts, v.Cause, a.lang) + " [" + v.Cause.ID + "]")
		if f := v.Cause; v.Script != "" && len(f.Where) > 0 && f.Where[0].Line > 0 {
			comment(fmt.Sprintf("%s:%d: %s", f.Where[0].File, f.Where[0].Line, diag.Message(v.Texts, f, a.lang)))
		}
	}
	fmt.Fprintln(w, "set -eu")
	if v.Plan != nil && v.Option < len(v.Plan.Options) {
		o := &v.Plan.Options[v.Option]
		fmt.Fprintln(w)
		comment(fmt.Sprintf("torch %s, CUDA %s", o.Requirement(), o.CUDA))
		for _, rs := range [][]plan.Reason{v.Plan.Impossible, o.Needs, o.GivesUp, v.Plan.Unknown, v.Plan.Notes} {
			for _, r := range rs {
				comment("- " + r.Text(a.lang))
			}
		}
		for _, st := range o.Steps {
			a.scriptStep(w, comment, &st)
		}
	} else if v.Plan != nil {
		for _, r := range append(v.Plan.Impossible, v.Plan.Unknown...) {
			comment("- " + r.Text(a.lang))
		}
	}
	if f := v.Cause; f != nil && (v.Plan == nil || len(v.Plan.Options) == 0) {
		for _, x := range f.Fixes {
			fmt.Fprintln(w)
			comment(diag.Section(v.Texts, f, "fix:"+x.ID, a.lang))
			for _, c := range x.Commands {
				comment(c) // the short form knows less than a plan: to be read first
			}
		}
	}
	needs := v.Decide
	if f := v.Cause; f != nil {
		needs = nil
		if f.Certainty != diag.Proven {
			needs = f.Needs
		}
	}
	if len(needs) > 0 {
		fmt.Fprintln(w)
		comment(a.tr("What would decide:", "判定方法："))
		for _, n := range needs {
			comment("    " + diag.NeedText(n, a.lang))
		}
	}
	a.shellPatch(w, comment, &render.ScriptPatch{Script: v.Script, Patch: v.Patch, Says: v.PatchSays}, s.sum)
	for i := range v.Rest {
		a.shellPatch(w, comment, &v.Rest[i], s.rest[i].sum)
	}
	if v.Ask != "" {
		fmt.Fprintln(w)
		comment(v.Ask)
	}
	return w.Flush()
}

// shellPatch writes the commands that apply a script's patch once. sum is the
// script's checksum when its patch may lack context.
func (a *app) shellPatch(w *bufio.Writer, comment func(string), p *render.ScriptPatch, sum string) {
	if p.Script != "" && p.Patch == "" && len(p.Says) > 0 {
		fmt.Fprintln(w)
		for _, l := range p.Says {
			comment(l)
		}
	}
	if p.Patch == "" {
		return
	}
	fmt.Fprintln(w)
	if p.Script == "-" { // nothing here can be changed
		comment(a.tr("The safe edits of the script on standard input: ncclinic lint --fix - < SCRIPT > NEW", "标准输入中脚本的安全修改：ncclinic lint --fix - < 脚本 > 新脚本"))
		comment(p.Patch)
		return
	}
	comment(a.tr("The safe edits of the batch script; applied once.", "批处理脚本的安全修改；只应用一次。"))
	sc := shellWord(p.Script)
	eof := ender(p.Patch)
	// A patch without context beside a secret seems to be applied when it is not.
	test := fmt.Sprintf("patch -R -p0 -s -f --dry-run %[1]s < %[1]s.patch >/dev/null 2>&1 ||", sc)
	if sum != "" {
		test = fmt.Sprintf("! sha256sum < %s | grep -q %s ||", sc, sum)
	}
	fmt.Fprintf(w, "cat > %[1]s.patch <<'%[2]s'\n%[3]s%[2]s\n%[4]s patch %[1]s < %[1]s.patch\n", sc, eof, withNewline(p.Patch), test)
}

func withNewline(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// ender is the end mark of a here-document that the text does not hold.
func ender(text string) string {
	e := "NCCLINIC_END"
	for strings.Contains("\n"+text, "\n"+e+"\n") {
		e += "_"
	}
	return e
}

func (a *app) scriptStep(w *bufio.Writer, comment func(string), s *plan.Step) {
	fmt.Fprintln(w)
	comment(s.Why.Text(a.lang))
	switch {
	case s.Kind == plan.StepBack || s.Kind == plan.StepSetting:
		for _, c := range s.Commands {
			comment("    " + c)
		}
		return
	case s.Kind == plan.StepEdit && s.Whole:
		f := shellWord(s.File)
		eof := ender(s.Text)
		fmt.Fprintf(w, "[ ! -e %[1]s ] || [ -e %[1]s.before ] || cp %[1]s %[1]s.before\ncat > %[1]s <<'%[2]s'\n%[3]s%[2]s\n", f, eof, withNewline(s.Text))
		return
	case s.Kind == plan.StepEdit:
		comment(s.Text)
		return
	}
	for i, c := range s.Commands {
		if s.Kind == plan.StepCheck && (i > 0 || strings.HasPrefix(c, "srun ")) {
			// Verdicts about this machine, and what needs a GPU, are not for here.
			comment("    " + c)
			continue
		}
		fmt.Fprintln(w, c)
	}
}

// askText is what to send to the people who can change it.
func (a *app) askText(f *diag.Finding, t diag.Texts) string {
	var b strings.Builder
	line := func(format string, x ...any) { fmt.Fprintf(&b, format+"\n", x...) }
	line(a.tr("Subject: %s", "主题：%s"), diag.Title(t, f, a.lang))
	line("")
	if m := diag.Message(t, f, a.lang); m != "" {
		line("%s", m)
	}
	nodes := map[string]bool{}
	var ns []string
	for _, w := range f.Where {
		if w.Node != "" && !nodes[w.Node] {
			nodes[w.Node] = true
			ns = append(ns, w.Node)
		}
	}
	if len(ns) > 0 {
		line(a.tr("Nodes: %s", "节点：%s"), strings.Join(ns, ", "))
	}
	if len(f.Evidence) > 0 {
		line(a.tr("Evidence:", "证据："))
		for i, e := range f.Evidence {
			if i == 8 {
				break
			}
			s := e.Path
			if e.Line > 0 {
				s += fmt.Sprintf(":%d", e.Line)
			}
			if e.Node != "" {
				s = "[" + e.Node + "] " + s
			}
			if e.Excerpt != "" {
				s += ": " + strings.TrimSpace(e.Excerpt)
			}
			line("  %s", s)
		}
	}
	for _, x := range f.Fixes {
		note := diag.Section(t, f, "fix:"+x.ID, a.lang)
		if note == "" && len(x.Commands) == 0 {
			continue
		}
		line(a.tr("What should help: %s", "应当有用的做法：%s"), note)
		for _, c := range x.Commands {
			line("  %s", c)
		}
	}
	line(a.tr("(certainty: %s; cause %s of ncclinic %s)", "（把握程度：%s；ncclinic %[3]s 的原因 %[2]s）"), f.Certainty, f.ID, Version)
	return b.String()
}

// applyFix runs the package commands of one option, after asking.
func (a *app) applyFix(ctx context.Context, v *render.FixView, in *plan.Input, chosen bool) error {
	if v.Plan == nil || len(v.Plan.Options) == 0 {
		return usagef("%s", a.tr("--apply: there is no plan to apply", "--apply：没有可执行的方案"))
	}
	tty := false
	if a.Terminal != nil {
		tty, _ = a.Terminal()
	}
	if !tty || !a.asks() {
		return usagef("%s", a.tr("--apply asks before it does anything, so it needs a terminal; --format sh writes a script instead", "--apply 在执行前要询问，因此需要终端；可改用 --format sh 生成脚本"))
	}
	if err := a.ownEnvironment(in); err != nil {
		return err
	}
	if len(v.Plan.Impossible) > 0 && !chosen {
		return usagef(a.tr("--apply: what was asked for cannot be had (%s); name what to apply instead with --option", "--apply：无法满足要求（%s）；请用 --option 指定要执行的方案"), v.Plan.Impossible[0].Text(a.lang))
	}
	o := v.Plan.Options[v.Option]
	if o.Certainty != "proven" {
		return usagef("%s", a.tr("--apply: what this build needs is not all known; give --driver, --gpu and --python first", "--apply：该构建的前提并非全部已知；请先给出 --driver、--gpu 和 --python"))
	}
	in.Env.Before = filepath.Join(in.Env.Prefix, "ncclinic-before-"+time.Now().Format("20060102-150405")+".txt")
	p, err := plan.Make(*in)
	if err != nil || v.Option >= len(p.Options) {
		return fmt.Errorf("plan: %w", err)
	}
	o = p.Options[v.Option]
	switch o.Tool {
	case plan.Pip, plan.UV, plan.Conda, plan.Mamba, plan.Micromamba:
	default:
		return usagef("%s", fmt.Sprintf(a.tr("--apply runs the commands of pip, uv, conda, mamba and micromamba only, not of %s", "--apply 只执行 pip、uv、conda、mamba、micromamba 的命令，不执行 %s 的"), o.Tool))
	}
	var cmds []string
	back := ""
	for _, s := range o.Steps {
		switch s.Kind {
		case plan.StepSave, plan.StepRemove, plan.StepInstall, plan.StepPin:
			cmds = append(cmds, s.Commands...)
		case plan.StepCheck:
			cmds = append(cmds, s.Commands[0])
		case plan.StepBack:
			back = strings.Join(s.Commands, "\n")
		}
	}
	st, err := a.style()
	if err != nil {
		return err
	}
	if err := render.Fix(a.Out, v, st, a.lang); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\n%s\n", fmt.Sprintf(a.tr("These commands will run in %s:", "将在 %s 中执行以下命令："), in.Env.Prefix))
	for _, c := range cmds {
		fmt.Fprintln(a.Out, "  "+render.Clean(c, false))
	}
	fmt.Fprint(a.Out, a.tr("Run them? Type yes: ", "是否执行？输入 yes 确认："))
	answer, _ := bufio.NewReader(a.In).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		fmt.Fprintln(a.Out, a.tr("Nothing was run.", "未执行任何操作。"))
		return exitError(exitFound)
	}
	for _, c := range cmds {
		fmt.Fprintln(a.Out, "+ "+render.Clean(c, false))
		code, err := run.Foreground(ctx, source.Cmd{Path: "/bin/sh", Args: []string{"-c", c}}, a.Out, a.Err)
		if err != nil || code != 0 {
			if _, e := os.Stat(in.Env.Before); e != nil {
				fmt.Fprintln(a.Err, a.tr("That failed before anything was changed.", "执行失败，尚未改动任何内容。"))
			} else if back != "" {
				fmt.Fprintf(a.Err, "%s\n  %s\n", a.tr("That did not go through. To go back:", "未能完成。恢复方法："), strings.ReplaceAll(back, "\n", "\n  "))
			}
			if err != nil {
				return err
			}
			return exitError(exitFound)
		}
	}
	fmt.Fprintln(a.Out, a.tr("Done.", "完成。"))
	if back != "" {
		fmt.Fprintf(a.Out, "%s\n  %s\n", a.tr("To go back:", "恢复方法："), strings.ReplaceAll(back, "\n", "\n  "))
	}
	return nil
}

// asks reports whether the answer to a question comes from a terminal.
func (a *app) asks() bool {
	f, ok := a.In.(*os.File)
	if !ok {
		return a.In != nil && a.askAnyway
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// ownEnvironment refuses what is not the user's own to change.
func (a *app) ownEnvironment(in *plan.Input) error {
	e := &in.Env
	if e.Kind != "venv" && e.Kind != "conda" || e.Prefix == "" || e.Image != "" {
		return usagef("%s", a.tr("--apply changes a venv or conda environment of your own only; this interpreter is the system's, an image's, or not known", "--apply 只修改你自己的 venv 或 conda 环境；这个解释器属于系统或镜像，或者尚不清楚"))
	}
	for _, own := range []string{"condabin", "bin/conda", "bin/mamba"} {
		if _, err := os.Stat(filepath.Join(e.Prefix, own)); err == nil {
			return usagef("--apply: %s: %s", e.Prefix, a.tr("is conda's base environment; make one of its own for torch: conda create", "是 conda 的 base 环境；请用 conda create 为 torch 单独建一个"))
		}
	}
	if !ownedHere(e.Prefix) {
		return usagef("--apply: %s: %s", e.Prefix, a.tr("belongs to somebody else, or may not be written", "属于其他用户，或没有写权限"))
	}
	return nil
}
