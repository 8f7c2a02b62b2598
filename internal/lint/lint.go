// Package lint runs the lint rules over files: configuration, comments that
// silence rules, and edits.
package lint

import (
	"bytes"
	"path/filepath"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/rules/lint"
)

// Options of File.
type Options struct {
	Set     *diag.Set
	Config  *Config
	Slurm   lint.Version
	Cluster *lint.Cluster
	Open    func(path string) ([]byte, error) // files beside the script; nil: none
	IsDir   func(path string) bool            // whether a folder exists where jobs are submitted; nil: not known
}

// Report is what was found in one file.
type Report struct {
	Name     string
	Src      []byte
	Script   *fact.Script
	Lines    map[int]string // source text of the lines with findings, without secrets
	Findings []lint.Result
	Ignored  int // findings that a comment or the configuration silences
}

// File lints one script.
func File(name string, src []byte, o Options) Report {
	return Script(script.Parse(name, src, script.Options{Open: o.Open, BlankEnds: o.Slurm.Known() && o.Slurm.In("<22.06")}), o)
}

// Script lints a script that was read already. Options.Open is not asked.
func Script(s *fact.Script, o Options) Report {
	cfg := o.Config
	if cfg == nil {
		cfg = &Config{}
	}
	lo := lint.Options{Slurm: o.Slurm, Site: cfg.siteOptions(), Cluster: o.Cluster, IsDir: o.IsDir, Enable: cfg.enabled, Disable: cfg.disabled, Hide: lint.Hider(s.Src)}
	r := Report{Name: s.Name, Src: s.Src, Script: s}
	silent := comments(s.Src)
	for _, f := range lint.Run(o.Set, s, lo) {
		if sev, ok := cfg.severity(f.ID); ok {
			f.Severity = sev
		}
		if cfg.ignores(s.Name, f.ID) || silent.has(f.Where[0].Line, f.ID) {
			r.Ignored++
			continue
		}
		if r.Lines == nil {
			r.Lines = map[int]string{}
		}
		n := f.Where[0].Line
		r.Lines[n] = lo.Hide(s.Line(n))
		r.Findings = append(r.Findings, f)
	}
	return r
}

// Count returns the number of findings of a severity.
func (r *Report) Count(s diag.Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Edits returns the safe edits of all findings.
func (r *Report) Edits() []lint.Edit {
	var es []lint.Edit
	for i := range r.Findings {
		es = append(es, r.Findings[i].Edits...)
	}
	return es
}

// silenced says which rules comments switch off: by line, 0 for the whole file.
type silenced map[int][]string

func (s silenced) has(line int, id string) bool {
	for _, l := range []int{0, line} {
		for _, x := range s[l] {
			if x == id || x == "all" {
				return true
			}
		}
	}
	return false
}

var ignoreMark = []byte("ncclinic: ignore")

// comments finds "# ncclinic: ignore=RULE[,RULE]" (this line, or the next when it
// stands alone) and "# ncclinic: ignore-file=RULE".
func comments(src []byte) silenced {
	out := silenced{}
	if !bytes.Contains(src, ignoreMark) {
		return out
	}
	for n, l := range bytes.Split(src, []byte("\n")) {
		i := bytes.Index(l, ignoreMark)
		if i < 0 || !bytes.Contains(l[:i], []byte("#")) {
			continue
		}
		rest := string(l[i+len(ignoreMark):])
		line := n + 1
		alone := len(bytes.Trim(l[:i], " \t#")) == 0
		switch {
		case strings.HasPrefix(rest, "-file"):
			rest, line = rest[5:], 0
		case alone:
			line++
		}
		rest = strings.TrimSpace(rest)
		ids := []string{"all"}
		if v, ok := strings.CutPrefix(rest, "="); ok {
			v, _, _ = strings.Cut(v, " ")
			ids = strings.Split(strings.TrimSpace(v), ",")
		}
		for _, id := range ids {
			out[line] = append(out[line], strings.TrimSpace(id))
		}
	}
	return out
}

// Diff writes a unified diff of two versions of a script, with three lines of
// context, or less: no line with a secret is context, for a masked one would
// not apply. When a changed line holds a secret there is no patch, since half
// of the edits may do harm, and hidden lists these lines of the first version.
func Diff(name string, a, b []byte) (patch string, hidden []int) {
	if bytes.Equal(a, b) {
		return "", nil
	}
	ops := editScript(lines(a), lines(b), lint.Hider(a))
	for _, kind := range "-+" { // a line that is only new stands at the place of an old one
		for _, o := range ops {
			if o.secret && o.kind == byte(kind) && (kind == '-' || hidden == nil) {
				hidden = append(hidden, o.a+1)
			}
		}
	}
	if hidden != nil {
		return "", hidden
	}
	var out strings.Builder
	out.WriteString("--- " + name + "\n+++ " + name + "\n")
	for _, h := range hunks(ops) {
		out.WriteString(h)
	}
	return out.String(), nil
}

// secrets finds the lines that hold secrets.
func secrets(lines []string, hide func(string) string) []bool {
	out := make([]bool, len(lines))
	key := false
	for i, l := range lines {
		if key = key || strings.Contains(l, "-----BEGIN ") && strings.Contains(l, "PRIVATE KEY"); key {
			out[i] = true
			key = !strings.Contains(l, "-----END ")
			continue
		}
		out[i] = hide(l) != l
	}
	return out
}

func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	l := strings.SplitAfter(string(b), "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

// op is one line of an edit script.
type op struct {
	kind byte // ' ', '-', '+'
	text string
	a, b int // line numbers in both versions, from 0

	secret bool
}

// script of edits: common head and tail, and a longest common subsequence for
// what is between, when that is small. A line with a secret stays where another
// one can be moved instead.
func editScript(x, y []string, hide func(string) string) (ops []op) {
	sx, sy := secrets(x, hide), secrets(y, hide)
	defer func() {
		for i := range ops {
			if o := &ops[i]; o.kind == '+' {
				o.secret = sy[o.b]
			} else {
				o.secret = sx[o.a]
			}
		}
	}()
	i := 0
	for i < len(x) && i < len(y) && x[i] == y[i] {
		ops = append(ops, op{kind: ' ', text: x[i], a: i, b: i})
		i++
	}
	ex, ey := len(x), len(y)
	for ex > i && ey > i && x[ex-1] == y[ey-1] {
		ex--
		ey--
	}
	mx, my := x[i:ex], y[i:ey]
	if len(mx)*len(my) <= 4<<20 {
		t := make([][]int32, len(mx)+1)
		for k := range t {
			t[k] = make([]int32, len(my)+1)
		}
		for a := len(mx) - 1; a >= 0; a-- {
			for b := len(my) - 1; b >= 0; b-- {
				if mx[a] == my[b] {
					t[a][b] = t[a+1][b+1] + 1
					if sx[i+a] {
						t[a][b] += 50
					}
				} else {
					t[a][b] = max(t[a+1][b], t[a][b+1])
				}
			}
		}
		a, b := 0, 0
		for a < len(mx) || b < len(my) {
			switch {
			case a < len(mx) && b < len(my) && mx[a] == my[b]:
				ops = append(ops, op{kind: ' ', text: mx[a], a: i + a, b: i + b})
				a++
				b++
			case b >= len(my) || a < len(mx) && t[a+1][b] >= t[a][b+1]:
				ops = append(ops, op{kind: '-', text: mx[a], a: i + a, b: i + b})
				a++
			default:
				ops = append(ops, op{kind: '+', text: my[b], a: i + a, b: i + b})
				b++
			}
		}
	} else {
		for k, l := range mx {
			ops = append(ops, op{kind: '-', text: l, a: i + k, b: i})
		}
		for k, l := range my {
			ops = append(ops, op{kind: '+', text: l, a: ex, b: i + k})
		}
	}
	for k := 0; ex+k < len(x); k++ {
		ops = append(ops, op{kind: ' ', text: x[ex+k], a: ex + k, b: ey + k})
	}
	return ops
}

func hunks(ops []op) []string {
	const ctx = 3
	var out []string
	for i := 0; i < len(ops); {
		if ops[i].kind == ' ' {
			i++
			continue
		}
		from, to, same := i, i, 0
		for to < len(ops) && same <= 2*ctx && !ops[to].secret {
			if ops[to].kind == ' ' {
				same++
			} else {
				same = 0
			}
			to++
		}
		end := to - same // behind the last change
		to = min(to, end+ctx)
		for from > 0 && i-from < ctx && ops[from-1].kind == ' ' && !ops[from-1].secret {
			from--
		}
		if to < len(ops) { // patch takes a hunk with less context behind than before for the end of the file
			from = max(from, i-(to-end))
		}
		var b strings.Builder
		na, nb := 0, 0
		for _, o := range ops[from:to] {
			if o.kind != '+' {
				na++
			}
			if o.kind != '-' {
				nb++
			}
		}
		b.WriteString("@@ -" + span(ops[from].a, na) + " +" + span(ops[from].b, nb) + " @@\n")
		for _, o := range ops[from:to] {
			b.WriteByte(o.kind)
			b.WriteString(o.text)
			if !strings.HasSuffix(o.text, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
		out = append(out, b.String())
		i = to
	}
	return out
}

func span(from, n int) string {
	if n == 0 {
		return itoa(from) + ",0"
	}
	if n == 1 {
		return itoa(from + 1)
	}
	return itoa(from+1) + "," + itoa(n)
}

// Candidate reports whether a file below a folder is worth linting: its name
// ends as batch scripts do, or its text has a directive.
func Candidate(name string, head []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".sbatch", ".slurm", ".slrm", ".batch":
		return true
	case ".sh", ".bash", ".job", ".sub", ".submit", ".txt", ".cmd", "", ".in", ".template", ".tmpl", ".j2", ".jinja", ".jinja2":
		return bytes.HasPrefix(head, []byte("#SBATCH")) || bytes.Contains(head, []byte("\n#SBATCH")) || bytes.Contains(head, []byte("\r#SBATCH"))
	}
	return false
}

// Kinds of files that are no batch scripts.
const (
	IsEmpty = "empty" // nothing but blanks
	IsLog   = "log"   // of a job
	IsOther = "other"
)

// Foreign says what a file is when it is no batch script: it has no "#!",
// nothing like a directive, no name of a shell script, and no launch or the
// lines of a log. Shell rules would say nonsense about it, or nothing. "" is a
// script.
func Foreign(s *fact.Script) string {
	if len(bytes.TrimSpace(s.Src)) == 0 {
		return IsEmpty
	}
	switch strings.ToLower(filepath.Ext(s.Name)) {
	case ".sbatch", ".slurm", ".slrm", ".batch", ".sh", ".bash":
		return ""
	}
	if s.HasShebang || len(s.Directives) > 0 || len(s.Stray) > 0 || len(s.Refused) > 0 {
		return ""
	}
	for n := 1; n <= s.NumLines && n <= 500; n++ {
		if logLine(s.Line(n)) {
			return IsLog
		}
	}
	if len(s.Steps) > 0 || len(s.Launches) > 0 {
		return ""
	}
	return IsOther
}

// logLine recognises lines that programs print and nobody writes in a script.
func logLine(l string) bool {
	for _, p := range []string{"Traceback (most recent call last)", "  File \"", "[rank", "[default", "slurmstepd: ", "srun: error: ", "srun: job ", "NCCL version ", "WARNING:torch", "INFO:torch", "ERROR:torch"} {
		if strings.HasPrefix(l, p) {
			return true
		}
	}
	if strings.Contains(l, " NCCL INFO ") || strings.Contains(l, " NCCL WARN ") {
		return true
	}
	// [2024-01-31 12:00:00,123], 2024-01-31T12:00, W0131 12:00:00.
	t := strings.TrimLeft(l, "[")
	if len(t) > 11 && digits(t[:4]) && t[4] == '-' && digits(t[5:7]) && t[7] == '-' && digits(t[8:10]) {
		return true
	}
	return len(t) > 8 && strings.IndexByte("WEIF", t[0]) >= 0 && digits(t[1:5]) && t[5] == ' ' && digits(t[6:8]) && t[8] == ':'
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// Sort orders reports by name.
func Sort(rs []Report) {
	sort.SliceStable(rs, func(i, j int) bool { return rs[i].Name < rs[j].Name })
}
