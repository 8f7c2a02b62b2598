package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/rules"
)

// difference is one fact in which two targets differ.
type difference struct {
	Fact string `json:"fact"`
	A    string `json:"a"` // "" : not there
	B    string `json:"b"`
}

// side is what a comparison says of one target.
type side struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"`
	Cause   *string `json:"cause"`
}

// compare says in which facts that matter two targets differ. Its exit status is
// that of the worse verdict.
func (a *app) compare(x, y *fact.Bundle) error {
	base, err := a.load(rules.Environment...)
	if err != nil {
		return err
	}
	sides := make([]side, 2)
	code := exitOK // differing is no fault: one of them has to have one
	for i, b := range []*fact.Bundle{x, y} {
		rep := diag.Run(base.Set(), b)
		sides[i] = side{b.Subject.Name, string(rep.Verdict), rep.Cause}
		if c := rep.ExitCode(); code == exitOK || c == exitFound {
			code = c
		}
	}
	ds := a.differences(x, y)
	switch a.out.format {
	case "json":
		err = a.writeJSON(struct {
			Schema      string       `json:"schema"`
			Tool        string       `json:"tool"`
			A           side         `json:"a"`
			B           side         `json:"b"`
			Differences []difference `json:"differences"`
		}{"ncclinic.compare/v1", Version, sides[0], sides[1], ds})
	case "text":
		err = a.textCompare(sides, ds)
	default:
		return a.notOneOf("--format", a.out.format, "text", "json")
	}
	if err == nil && code != exitOK {
		err = exitError(code)
	}
	return err
}

func (a *app) textCompare(sides []side, ds []difference) error {
	st, err := a.style()
	if err != nil {
		return err
	}
	for i, s := range sides {
		line := string(rune('A'+i)) + "  " + render.Clean(s.Name, false) + "  " + a.verdictWord(s.Verdict)
		if s.Cause != nil {
			line += " " + *s.Cause
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	if len(ds) == 0 {
		_, err := fmt.Fprintf(a.Out, "\n%s\n", a.tr("No fact that matters differs.", "没有发现有影响的差异。"))
		return err
	}
	fmt.Fprintln(a.Out)
	rows := [][]string{{"", "A", "B"}}
	for _, d := range ds {
		rows = append(rows, []string{a.factName(d.Fact), a.factValue(d.A), a.factValue(d.B)})
	}
	return render.Pairs(a.Out, rows, st)
}

// factValue shows one side of a difference.
func (a *app) factValue(v string) string {
	if zh, ok := valuesZH[v]; ok {
		v = a.tr(v, zh)
	}
	return fact.Clip(orDash(v), 200)
}

// valuesZH are values that are words.
var valuesZH = map[string]string{"yes": "是", "no": "否", "none": "无", noCUDA: "无（CPU 构建）", "not found": "未找到"}

const noCUDA = "none (CPU build)"

// factsZH are the names of facts in Chinese; those that are missing are the same in both languages.
var factsZH = map[string]string{
	"platform": "平台", "distribution": "发行版", "python": "解释器", "python version": "Python 版本", "torch version": "torch 版本", "torch CUDA": "torch 的 CUDA",
	"torch HIP": "torch 的 HIP", "torch folder": "torch 目录", "torch origin": "torch 来源", "torch: others on the path": "路径上其他 torch 的个数",
	"NCCL compiled in": "编入 NCCL", "NCCL asked for": "要求的 NCCL", "GPU kernels": "GPU 架构", "network plugins": "网络插件", "driver": "驱动", "GPUs": "GPU", "container": "容器",
}

func (a *app) factName(s string) string {
	if rest, ok := strings.CutPrefix(s, "package "); ok {
		return a.tr(s, "软件包 "+rest)
	}
	if zh, ok := factsZH[s]; ok {
		return a.tr(s, zh)
	}
	return s
}

// differences compares what decides how training starts, the torch itself first.
func (a *app) differences(x, y *fact.Bundle) []difference {
	out := []difference{}
	add := func(name, u, v string) {
		if u != v {
			out = append(out, difference{name, u, v})
		}
	}
	fx, fy := facts(x), facts(y)
	for i := range fx {
		add(fx[i][0], fx[i][1], fy[i][1])
	}
	for _, n := range sortedNames(loadsOf(x), loadsOf(y)) {
		add(n, loadsOf(x)[n], loadsOf(y)[n])
	}
	dx, dy := distsOf(x), distsOf(y)
	for _, n := range sortedNames(dx, dy) {
		add(n, dx[n], dy[n])
	}
	ex, ey := envOf(x), envOf(y)
	for _, n := range sortedNames(ex, ey) {
		add(n, ex[n], ey[n])
	}
	sx, sy := confOf(x), confOf(y)
	for _, n := range sortedNames(sx, sy) {
		add(n, sx[n], sy[n])
	}
	return out
}

// facts lists single facts by name, in the same order for every bundle.
func facts(b *fact.Bundle) [][2]string {
	t := b.Winner()
	if t == nil {
		t = &fact.Torch{}
	}
	driver := b.Node.Driver.V.Version
	if b.Node.Driver.IsAbsent() {
		driver = "none"
	}
	gpus := ""
	if g, ok := b.Node.GPUs.Get(); ok {
		var names []string
		for _, x := range g {
			names = append(names, x.Name)
		}
		gpus = strings.Join(names, ", ")
	}
	return [][2]string{
		{"platform", strings.Trim(b.Host.OS.Or("")+"/"+b.Host.Arch.Or(t.Machine.Or("")), "/")},
		{"distribution", b.Host.Distro.Or("")},
		{"glibc", b.Host.Glibc.Or("")},
		{"python", b.Python.Exe.Or("")},
		{"python version", b.Python.Version.Or(pythonOf(b))},
		{"torch version", t.Version.Or("")},
		{"torch CUDA", absentAs(t.CUDA, noCUDA)},
		{"torch HIP", absentAs(t.HIP, "")},
		{"torch folder", t.Dir},
		{"torch origin", strings.TrimSpace(t.Origin.V.Kind + " " + t.Origin.V.Package + " " + t.Origin.V.Build)},
		{"torch: others on the path", fmt.Sprint(max(0, len(b.Torch)-1))},
		{"torch.distributed", boolOf(t.Distributed)},
		{"NCCL compiled in", boolOf(t.NCCL)},
		{"NCCL asked for", t.NCCLVersion.Or("")},
		{"GPU kernels", shortArchs(t.Archs.Or(nil))},
		{"network plugins", strings.Join(b.Node.Plugins.Or(nil), ", ")},
		{"driver", driver},
		{"GPUs", gpus},
		{"container", b.Container.Kind.Or("")},
	}
}

func absentAs(v fact.Val[string], none string) string {
	if v.IsAbsent() {
		return none
	}
	return v.Or("")
}

func boolOf(v fact.Val[bool]) string {
	if b, ok := v.Get(); ok {
		return map[bool]string{true: "yes", false: "no"}[b]
	}
	return ""
}

func loadsOf(b *fact.Bundle) map[string]string {
	out := map[string]string{}
	for _, l := range b.Loads {
		switch {
		case l.Path.IsAbsent():
			out[l.Soname] = "not found"
		case l.Path.IsKnown():
			out[l.Soname] = strings.TrimSpace(l.Version.Or("") + " " + l.Path.V)
		}
	}
	return out
}

func distsOf(b *fact.Bundle) map[string]string {
	out := map[string]string{}
	for _, d := range b.Dists {
		if _, dup := out["package "+d.Name]; !dup && d.Name != "torch" {
			out["package "+d.Name] = strings.TrimSpace(d.Version + " " + d.Build)
		}
	}
	return out
}

// envOf leaves out what differs between any two shells and decides nothing.
func envOf(b *fact.Bundle) map[string]string {
	skip := []string{"PWD", "HOME", "USER", "SHELL", "HOSTNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"}
	out := map[string]string{}
	for _, v := range b.Env {
		if !slices.Contains(skip, v.Name) && !strings.HasPrefix(v.Name, "PIP_") && !strings.HasPrefix(v.Name, "UV_") && !strings.HasPrefix(v.Name, "SLURM") && !strings.HasPrefix(v.Name, "LC_") {
			out["$"+v.Name] = v.Value
		}
	}
	return out
}

func confOf(b *fact.Bundle) map[string]string {
	out := map[string]string{}
	for _, s := range b.NCCLConf {
		if s.Wins && s.Layer != "environment" {
			out[s.Name+" ("+s.Layer+")"] = s.Value
		}
	}
	return out
}

func sortedNames(ms ...map[string]string) []string {
	var out []string
	for _, m := range ms {
		for n := range m {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
