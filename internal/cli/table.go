package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/rules"
)

// wheelsIn lists the wheels of a folder that holds them, nil for anything else.
func wheelsIn(dir string) []string {
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		return nil
	}
	all, _ := filepath.Glob(filepath.Join(globQuote(dir), "*.whl"))
	return all
}

func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// row is one target of a table.
type row struct {
	Path     string   `json:"path"`
	Torch    string   `json:"torch,omitempty"`
	Accel    string   `json:"accel,omitempty"` // cpu, cuda, rocm, xpu
	CUDA     string   `json:"cuda,omitempty"`
	NCCL     *bool    `json:"nccl,omitempty"` // compiled in; absent: not known
	NCCLVer  string   `json:"ncclVersion,omitempty"`
	Archs    []string `json:"archs,omitempty"`
	Python   string   `json:"python,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Driver   string   `json:"minDriver,omitempty"`
	Verdict  string   `json:"verdict"`
	Cause    *string  `json:"cause"`
	Error    string   `json:"error,omitempty"`
}

// table judges several targets, a line each. Wheels of other packages are left out.
func (a *app) table(ctx context.Context, names []string, g gatherFlags, t targetFlags) error {
	base, err := a.load(rules.Environment...)
	if err != nil {
		return err
	}
	rows := []row{}
	others, code := 0, exitOK
	for _, n := range names {
		b, err := a.subject(ctx, []string{n}, g, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if isOther(err) {
				others++
				continue
			}
			rows = append(rows, row{Path: n, Verdict: diag.Unknown, Error: mask.Text(err.Error())})
			code = exitUsage
			continue
		}
		rep := diag.Run(base.Set(), b)
		rows = append(rows, rowOf(n, b, &rep))
		if c := rep.ExitCode(); c != 0 && code != exitUsage && (code == 0 || c == exitFound) {
			code = c
		}
	}
	if len(rows) == 0 {
		return usagef("%s", a.tr("none of these holds PyTorch", "其中都不含 PyTorch"))
	}
	switch a.out.format {
	case "json":
		err = a.writeJSON(struct {
			Schema  string `json:"schema"`
			Tool    string `json:"tool"`
			Targets []row  `json:"targets"`
			Others  int    `json:"others"`
		}{"ncclinic.targets/v1", Version, rows, others})
	case "text":
		err = a.textTable(rows, others)
	default:
		return a.notOneOf("--format", a.out.format, "text", "json")
	}
	if err == nil && code != exitOK {
		err = exitError(code)
	}
	return err
}

func isOther(err error) bool {
	var o otherPackage
	return errors.As(err, &o)
}

// otherPackage is the usage error for a package that is not torch.
type otherPackage struct{ error }

func rowOf(name string, b *fact.Bundle, rep *diag.Report) row {
	r := row{Path: name, Platform: b.Target.Platform, Driver: b.Target.MinDriver, Verdict: rep.Verdict, Cause: rep.Cause}
	if w := b.Winner(); w != nil {
		r.Torch, r.Accel, r.CUDA, r.Archs = w.Version.Or(""), w.Accel(), w.CUDA.Or(""), w.Archs.Or(nil)
		if v, ok := w.NCCL.Get(); ok {
			r.NCCL = &v
		}
		r.NCCLVer = ncclOf(b)
		r.Python = pythonOf(b)
	}
	return r
}

// ncclOf returns the NCCL that a torch would use: the file that is loaded, else what it asks for.
func ncclOf(b *fact.Bundle) string {
	if l := b.LoadOf("libnccl.so.2"); l != nil && l.Version.IsKnown() {
		return l.Version.V
	}
	if w := b.Winner(); w != nil {
		return w.NCCLVersion.Or("")
	}
	return ""
}

// pythonOf returns the Python that a torch is for: 3.11.
func pythonOf(b *fact.Bundle) string {
	if v, ok := b.Python.Version.Get(); ok {
		return v
	}
	w := b.Winner()
	if w == nil {
		return ""
	}
	tag := strings.TrimPrefix(w.PyTag.Or(""), "cpython-")
	if len(b.Target.Tags) > 0 && tag == w.PyTag.Or("") {
		tag, _, _ = strings.Cut(strings.TrimPrefix(b.Target.Tags[0], "cp"), "-")
	}
	if len(tag) > 1 && tag[0] == '3' && strings.Trim(tag, "0123456789") == "" {
		return "3." + tag[1:]
	}
	return tag
}

func (a *app) textTable(rows []row, others int) error {
	st, err := a.style()
	if err != nil {
		return err
	}
	out := [][]string{{a.tr("file", "文件"), "torch", "CUDA", "NCCL", "Python", a.tr("platform", "平台"), a.tr("driver", "驱动"), a.tr("GPU kernels", "GPU 架构"), a.tr("verdict", "结论")}}
	for _, r := range rows {
		if r.Error != "" {
			out = append(out, []string{filepath.Base(r.Path), "-", "-", "-", "-", "-", "-", "-", a.tr("unreadable", "无法读取")})
			continue
		}
		cuda, nccl := orDash(r.CUDA), "-"
		if r.Accel != fact.AccelCUDA && r.Accel != "" {
			cuda = strings.ToUpper(r.Accel)
		}
		if r.NCCL != nil {
			nccl = a.tr("no", "无")
			if *r.NCCL {
				nccl = a.tr("yes", "有")
				if r.NCCLVer != "" {
					nccl = r.NCCLVer
				}
			}
		}
		driver := "-"
		if r.Driver != "" {
			driver = "≥" + r.Driver
		}
		verdict := a.verdictWord(r.Verdict)
		if r.Cause != nil {
			verdict += " " + *r.Cause
		}
		out = append(out, []string{filepath.Base(r.Path), orDash(r.Torch), cuda, nccl, orDash(r.Python), orDash(r.Platform), driver, orDash(shortArchs(r.Archs)), verdict})
	}
	if err := render.Table(a.Out, out, st); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Error != "" {
			if _, err := a.Out.Write([]byte(render.Clean(r.Error, true) + "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// shortArchs writes sm_80 sm_90 compute_90 as "8.0 9.0 9.0+PTX".
func shortArchs(archs []string) string {
	var out []string
	for _, x := range archs {
		kind, num, ok := strings.Cut(x, "_")
		if !ok || len(num) < 2 {
			out = append(out, x)
			continue
		}
		i := len(num) - 1
		for i > 1 && (num[i] < '0' || num[i] > '9') { // 90a
			i--
		}
		v := num[:i] + "." + num[i:]
		if kind == "compute" {
			if n := len(out); n > 0 && out[n-1] == v {
				out[n-1] = v + "+PTX"
				continue
			}
			v += "+PTX"
		}
		out = append(out, v)
	}
	return strings.Join(out, " ")
}

// verdictWord is the verdict in the reader's language.
func (a *app) verdictWord(v string) string {
	return map[string]string{diag.OK: a.tr("OK", "正常"), diag.Warned: a.tr("WARNING", "警告"), diag.Broken: a.tr("BROKEN", "有故障"), diag.Unknown: a.tr("UNKNOWN", "无法判断")}[v]
}
