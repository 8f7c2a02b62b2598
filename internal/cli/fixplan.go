package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// wantsPlan decides whether another build of torch is the question.
func (a *app) wantsPlan(s *start, f *fixFlags, cause *diag.Finding) bool {
	if f.torch != "" || f.apply || cause != nil && slices.Contains(torchCauses, cause.ID) {
		return true
	}
	byHand := f.driver != "" || len(f.gpus) > 0 || f.arch != "" || len(f.facts) > 0 || f.gres != "" || f.index != "" || len(f.projects) > 0 || f.with != "" || f.modules != ""
	if s.kind == "here" || s.kind == "facts" {
		return byHand || cause == nil
	}
	// To describe the node of a log or script asks for no reinstallation, unless
	// the torch may be what is wrong.
	return byHand && cause == nil && mayBeTorch(s.rep)
}

// mayBeTorch reports whether a report that decides nothing has the torch among
// what it thinks of.
func mayBeTorch(rep *diag.Report) bool {
	if rep == nil {
		return false
	}
	for i := range rep.Findings {
		for _, id := range rep.Findings[i].Suggests {
			if slices.Contains(torchCauses, id) {
				return true
			}
		}
	}
	return false
}

// planInput lays the flags over the facts.
func (a *app) planInput(s *start, f *fixFlags) (plan.Input, error) {
	var in plan.Input
	if s.b != nil {
		in = plan.FromBundle(s.b)
	} else if s.rep != nil && s.rep.Top() != nil {
		in = fromArgs(s.rep.Top().Args)
	}
	if s.kinds != nil {
		in.Nodes, in.Glibc = s.kinds, s.glibc
	}
	fromLogs(s.logs, &in)
	in.Wish, in.Forward = f.torch, f.compat
	if err := a.factNodes(s, f, &in); err != nil {
		return in, err
	}
	if pythonVersion.MatchString(f.python) {
		in.Python = f.python
		if in.Env.Python == "" {
			in.Env.Python, in.Env.Kind = "python"+tables.PythonMinor(f.python), "new"
		}
	}
	if f.glibc != "" {
		in.Glibc = f.glibc
	}
	switch f.arch {
	case "x86_64", "amd64":
		in.Machine = "x86_64"
	case "aarch64", "arm64":
		in.Machine = "aarch64"
	}
	a.handNode(s, withArch(f), &in)
	if f.gres != "" {
		ts := gresTypes(f.gres)
		t := strings.Join(ts, ", ")
		if len(ts) > 0 {
			in.Env.Gres = ts[0]
		}
		if t != "" && !hasGPU(in.Nodes) {
			if len(in.Nodes) == 0 {
				in.Nodes = []plan.Node{{}}
			}
			for i := range in.Nodes {
				for _, x := range ts {
					in.Nodes[i].GPUs = append(in.Nodes[i].GPUs, plan.GPU{Name: tables.GPUName(x), Cap: tables.GPUCap(x)})
				}
			}
			s.notes = append(s.notes, plan.Reason{ID: "gres-hint", Args: map[string]string{"type": t}})
		}
	}
	if f.with != "" {
		in.Env.Tool = f.with
	}
	if err := a.projectPins(f, &in); err != nil {
		return in, err
	}
	if err := a.siteIndex(f, &in); err != nil {
		return in, err
	}
	return in, a.siteModules(f, &in)
}

// factNodes takes the nodes of --facts files in place of this one.
func (a *app) factNodes(s *start, f *fixFlags, in *plan.Input) error {
	for i, name := range f.facts {
		b, err := readFacts(name)
		if err != nil {
			return err
		}
		ns := kindsOf(b)
		if len(ns) == 0 && (f.driver == "" && len(f.gpus) == 0 || len(groupsOf(b)) == 0) {
			return usagef("--facts %s: %s", name, a.tr("shows no NVIDIA driver and no GPU: were these facts taken on a GPU node?", "其中没有 NVIDIA 驱动和 GPU：这些事实是在 GPU 节点上采集的吗？"))
		}
		if i == 0 {
			in.Nodes = nil
		}
		in.Nodes = append(in.Nodes, ns...)
		host := &groupsOf(b)[0].Host
		if m := host.Arch.Or(""); m != "" {
			in.Machine = m
		}
		if g := oldestGlibc(b); g != "" && (i == 0 || in.Glibc == "" || tables.Compare(g, in.Glibc) < 0) {
			in.Glibc = g
		}
		if bd := host.Board.Or(""); bd != "" {
			in.Board = bd
		}
	}
	return nil
}

// handNode lays --driver and --gpu over the nodes; where they differ from facts
// that says a note.
func (a *app) handNode(s *start, f *fixFlags, in *plan.Input) {
	if f.driver == "" && len(f.gpus) == 0 {
		return
	}
	if len(in.Nodes) == 0 {
		in.Nodes = []plan.Node{{}}
	}
	differs := func(given, facts string) {
		s.notes = append(s.notes, plan.Reason{ID: "driver-other", Args: map[string]string{"given": given, "facts": facts}})
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		if f.driver != "" {
			if n.Driver != "" && n.Driver != f.driver {
				differs(f.driver, n.Driver)
			}
			n.Driver, n.Compat = f.driver, ""
		}
		if len(f.gpus) > 0 {
			var was []string
			for _, g := range n.GPUs {
				was = append(was, g.Label())
			}
			now := gpusOf(f.gpus)
			if len(was) > 0 && !slices.EqualFunc(now, n.GPUs, func(x, y plan.GPU) bool { return tables.GPUCap(x.Name) == y.Cap || x.Cap == y.Cap }) {
				differs(strings.Join(f.gpus, ", "), strings.Join(was, ", "))
			}
			n.GPUs = now
		}
	}
}

// gpusOf reads names and capabilities; "NAME=9.0" gives both.
func gpusOf(list []string) []plan.GPU {
	var out []plan.GPU
	for _, s := range list {
		name, c, both := strings.Cut(s, "=")
		m := capForm.FindStringSubmatch(name)
		switch {
		case both && capForm.MatchString(c):
			m = capForm.FindStringSubmatch(c)
			out = append(out, plan.GPU{Name: tables.GPUName(name), Cap: m[1] + "." + m[2]})
		case m != nil && !both:
			out = append(out, plan.GPU{Cap: m[1] + "." + m[2]})
		default:
			out = append(out, plan.GPU{Name: tables.GPUName(gresType(s))})
		}
	}
	return out
}

// withCap gives a capability to the GPUs that were named, or stands alone.
func withCap(gpus []string, c string) []string {
	if len(gpus) == 0 {
		return []string{c}
	}
	out := slices.Clone(gpus)
	for i := range out {
		if !strings.Contains(out[i], "=") && !capForm.MatchString(out[i]) {
			out[i] += "=" + c
		}
	}
	return out
}

func hasGPU(ns []plan.Node) bool {
	return slices.ContainsFunc(ns, func(n plan.Node) bool { return len(n.GPUs) > 0 })
}

// gresTypes lists the types of GPUs in a node's GRES: gpu:a100:4(S:0-1),gpu:v100:2,nvme:1.
func gresTypes(s string) []string {
	var out []string
	depth := 0
	for _, e := range strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	}) {
		e = strings.TrimPrefix(strings.TrimPrefix(e, "Gres="), "gres/")
		if strings.HasPrefix(e, "gpu:") || !strings.Contains(s, "gpu") {
			if t := gresType(e); t != "" && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// gresType takes the type out of gpu:a100:4, gpu:a100:4(S:0-1), gres/gpu:h100=8 or a bare type.
func gresType(s string) string {
	s, _, _ = strings.Cut(s, ",")
	s, _, _ = strings.Cut(s, "(")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "gres/"), "gres:")
	s, _, _ = strings.Cut(s, "=")
	p := strings.Split(s, ":")
	switch {
	case p[0] != "gpu":
		return p[0]
	case len(p) < 2 || strings.Trim(p[1], "0123456789") == "":
		return ""
	}
	return p[1]
}

// fromArgs plans from what a report says when the environment is not here.
func fromArgs(args diag.Args) plan.Input {
	in := plan.Input{Env: plan.Env{Companions: map[string]string{}, Login: true}}
	in.Env.Python = strings.Trim(args["python"], "'")
	in.Python, in.Env.Prefix = placeOf(strings.Trim(args["torch_dir"], "'"))
	if in.Env.Prefix == "" {
		_, in.Env.Prefix = placeOf(in.Env.Python)
	}
	if in.Env.Python == "" && in.Env.Prefix != "" && in.Env.Prefix != "/usr" && in.Env.Prefix != "/usr/local" {
		in.Env.Python = in.Env.Prefix + "/bin/python"
	}
	if in.Env.Prefix == "/usr" || in.Env.Prefix == "/usr/local" {
		in.Env.Kind, in.Env.Prefix = "system", ""
		if in.Env.Python == "" {
			in.Env.Python = "/usr/bin/python3"
		}
	}
	in.Have = plan.Have{Version: args["version"], CUDA: args["torch_cuda"]}
	if in.Have.Version == "?" {
		in.Have.Version = ""
	}
	if in.Have.CUDA != "" {
		in.Have.Accel = fact.AccelCUDA
	} else if strings.HasSuffix(in.Have.Version, "+cpu") {
		in.Have.Accel = fact.AccelCPU
	}
	if args["driver"] != "" || args["gpu"] != "" {
		n := plan.Node{}
		if driverForm.MatchString(args["driver"]) {
			n.Driver = args["driver"]
		}
		if args["gpu"] != "" || args["cap"] != "" {
			n.GPUs = []plan.GPU{{Name: args["gpu"], Cap: args["cap"]}}
		}
		in.Nodes = []plan.Node{n}
	}
	switch args["installer"] {
	case "uv":
		in.Env.Tool = plan.UV
	case "conda":
		in.Env.Tool, in.Env.Prefix, in.Env.Kind = plan.Conda, strings.Trim(args["conda_prefix"], "'"), "conda"
	}
	return in
}

// projectPins reads the pins of the project files that were named, and makes the
// first that fits the project of uv or pixi.
func (a *app) projectPins(f *fixFlags, in *plan.Input) error {
	for _, name := range f.projects {
		text, err := smallText(name, plan.MaxProject)
		if err != nil {
			return usagef("--project %s: %v", name, err)
		}
		in.Pins = append(in.Pins, plan.ParsePins(name, mask.Text(text))...)
		base := filepath.Base(name)
		tool := in.Env.Tool
		switch {
		case base == "pyproject.toml" && f.with == "" && strings.Contains(text, "[tool.poetry"):
			tool = plan.Poetry
		case base == "pyproject.toml" && f.with == "" && (strings.Contains(text, "[tool.uv") || besideFile(name, "uv.lock")):
			tool = plan.UVProject
		case (base == "pixi.toml" || base == "pyproject.toml" && strings.Contains(text, "[tool.pixi")) && f.with == "":
			tool = plan.Pixi
		}
		in.Env.Tool = tool
		if base == "pyproject.toml" && tool == plan.UVProject {
			in.Env.Project, in.Env.Text = name, text
		}
	}
	// What a project pins the plan of uv rewrites: its pins are no bound there
	// when the user asks for a release.
	return nil
}

func besideFile(name, other string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(name), other))
	return err == nil
}

func smallText(name string, limit int64) (string, error) {
	fl, err := readableFile(name)
	if err != nil {
		return "", err
	}
	defer fl.Close()
	raw, err := io.ReadAll(io.LimitReader(fl, limit+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(raw)) > limit:
		return "", fmt.Errorf("larger than %d KiB", limit>>10)
	case bytes.IndexByte(raw, 0) >= 0:
		return "", fmt.Errorf("not a text file")
	}
	return string(raw), nil
}

// siteIndex reads what a mirror has.
func (a *app) siteIndex(f *fixFlags, in *plan.Input) error {
	in.Env.IndexURL = f.indexURL
	if f.index == "" {
		return nil
	}
	st, err := os.Stat(f.index)
	if err != nil {
		return usagef("--index: %v", err)
	}
	var text strings.Builder
	if st.IsDir() {
		n := 0
		err = filepath.WalkDir(f.index, func(p string, d os.DirEntry, err error) error {
			if n++; n > maxInputs {
				return filepath.SkipAll
			}
			if err == nil && !d.IsDir() && strings.HasSuffix(d.Name(), ".whl") {
				text.WriteString(d.Name() + "\n")
			}
			return nil
		})
		if err == nil && f.indexURL == "" {
			in.Env.FindLinks = f.index
		}
	} else {
		var s string
		s, err = smallText(f.index, 64<<20)
		text.WriteString(s)
	}
	if err != nil {
		return usagef("--index %s: %v", f.index, err)
	}
	if in.Index = plan.ParseIndex(f.index, text.String()); in.Index == nil {
		return usagef("--index %s: %s", f.index, a.tr("names no torch wheel for Linux (torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl)", "没有列出 Linux 的 torch wheel（如 torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl）"))
	}
	return nil
}

// siteModules reads what "module avail" printed.
func (a *app) siteModules(f *fixFlags, in *plan.Input) error {
	if f.modules == "" {
		if in.Env.Tool == plan.Module {
			return usagef("%s", a.tr(`--with module needs --modules FILE: module -t avail 2>&1 | tee FILE`, `--with module 需要 --modules 文件：module -t avail 2>&1 | tee 文件`))
		}
		return nil
	}
	text, err := smallText(f.modules, 8<<20)
	if err != nil {
		return usagef("--modules %s: %v", f.modules, err)
	}
	in.Env.Modules = plan.ParseModules(text)
	in.Env.Loaded = strings.FieldsFunc(a.Getenv("LOADEDMODULES"), func(r rune) bool { return r == ':' })
	if f.with == "" {
		in.Env.Tool = plan.Module
	}
	return nil
}
