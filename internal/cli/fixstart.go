package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lint"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/tables"
	"github.com/ncclinic/ncclinic/rules"
)

// start is what a fix begins with.
type start struct {
	kind   string // here, facts, report, job, log, script
	name   string
	rep    *diag.Report
	b      *fact.Bundle // of the environment that is to be mended; nil when it was not looked at
	patch  string
	sum    string // SHA-256 of the script when its patch may lack context
	script string
	said   []string        // what lint says of the patch
	more   []*diag.Finding // what else is wrong in a script
	rest   []*start        // patches of further scripts
	logs   *fact.Logs      // what a log and what came with it say; nil when there is none
	notes  []plan.Reason
	kinds  []plan.Node // of an allocation's facts: every kind of node; nil for anything else
	glibc  string      // and the oldest glibc of the nodes
}

// fixStart finds out what the user named. Reports come from the commands that
// make them, so that fix says of a job or a log what they say.
func (a *app) fixStart(ctx context.Context, args []string, f *fixFlags) (*start, error) {
	s := &start{kind: "here"}
	version := pythonVersion.MatchString(f.python)
	g := f.gatherFlags
	if version {
		g.python = ""
	}
	here := func() error {
		var err error
		s.b, err = a.gather(ctx, g)
		return err
	}
	if i := slices.IndexFunc(args, isEnvironment); i >= 0 { // as check takes it, alone or beside the job's log
		if g.python != "" || version {
			return nil, usagef("%s: %s", args[i], a.tr("is an environment, and --python names another one", "是一个环境目录，而 --python 指定了另一个"))
		}
		g.python = args[i]
		if !strings.ContainsRune(g.python, filepath.Separator) { // a word alone is looked for on PATH
			g.python = "." + string(filepath.Separator) + g.python
		}
		args = slices.Delete(slices.Clone(args), i, i+1)
		if i := slices.IndexFunc(args, isEnvironment); i >= 0 {
			return nil, usagef("%s: %s", args[i], a.tr("a second environment: fix mends one at a time", "第二个环境目录：一次只能修复一个环境"))
		}
	}
	if err := a.hold(args); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		if err := here(); err != nil {
			return nil, err
		}
		if version && tables.PythonMinor(s.b.Python.Version.Or("")) != tables.PythonMinor(f.python) {
			// A plan for another Python is about an environment that is to be made,
			// not about the interpreter here, nor about what this machine lacks.
			s.b.Torch, s.b.Dists, s.b.Python = nil, nil, fact.Python{}
			return s, nil
		}
		b, err := a.described(s.b, f)
		if err != nil {
			return nil, err
		}
		s.rep, err = a.judged(b)
		return s, err
	}
	if len(args) > 1 {
		return s, a.severalStart(ctx, s, args, f, g, version)
	}
	name := args[0]
	s.name = name
	st, statErr := os.Stat(name)
	if id, err := slurmjob.ParseID(name); err == nil && statErr != nil {
		s.kind = "job"
		s.rep, s.logs, err = a.reportOf("job", id.String())
		if err != nil {
			return nil, err
		}
		return s, a.aroundReport(ctx, s, f, g, version)
	}
	logs := name == "-" || statErr == nil && st.IsDir() // explain reads what is in it
	if !logs && statErr != nil {
		if !strings.ContainsAny(name, "%*?[") {
			return nil, usageError{statErr}
		}
		logs = true // a pattern, which explain expands
	}
	if !logs {
		head, err := headOf(name)
		if err != nil {
			return nil, usageError{err}
		}
		switch {
		case isBundle(name):
			s.kind = "facts"
			if s.b, err = a.subject(ctx, []string{name}, g, targetFlags{}); err != nil {
				return nil, err
			}
			if s.b.Nodes != nil {
				if err := a.nodesStart(s, s.b); err != nil {
					return nil, err
				}
				return s, a.givenNode(s, f)
			}
			b, err := a.described(s.b, f)
			if err != nil {
				return nil, err
			}
			s.rep, err = a.judged(b)
			return s, err
		case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"ncclinic.report/v1"`)):
			s.kind = "report"
			if s.rep, err = savedReport(name); err != nil {
				return nil, err
			}
			return s, a.aroundReport(ctx, s, f, g, version)
		case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"ncclinic.`)):
			return nil, usagef("%s: %s", name, a.tr("neither a report nor facts of this program", "既不是本程序的报告，也不是事实文件"))
		case lint.Candidate(name, head):
			s.kind, s.script = "script", name
			return s, a.scriptStart(s, name)
		}
	}
	s.kind = "log"
	var err error
	if s.rep, s.logs, err = a.reportOf("explain", name); err != nil {
		return nil, err
	}
	if name == "-" && a.held != nil && s.logs != nil && !slices.ContainsFunc(s.logs.Files, func(f fact.LogFile) bool { return f.Kind != fact.KindScript }) {
		s.kind, s.script = "script", name
		return s, a.scriptStart(s, name)
	}
	return s, a.aroundReport(ctx, s, f, g, version)
}

// hold keeps what stands on standard input when it begins as a script does, for
// several looks at it.
func (a *app) hold(args []string) error {
	if !slices.Contains(args, "-") {
		return nil
	}
	br := bufio.NewReader(a.In)
	a.In = br
	if head, _ := br.Peek(2); string(head) != "#!" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(br, maxScript+1))
	if err != nil {
		return usageError{fmt.Errorf("-: %w", err)}
	}
	if len(text) > maxScript { // a log, whatever it begins with
		a.In = io.MultiReader(bytes.NewReader(text), br)
		return nil
	}
	a.held = text
	return nil
}

// stdin is standard input from its beginning, as far as it is held.
func (a *app) stdin() io.Reader {
	if a.held != nil {
		return bytes.NewReader(a.held)
	}
	return a.In
}

// isScript tells a batch script from a log and what else fix takes.
func (a *app) isScript(name string) bool {
	if name == "-" {
		return a.held != nil && lint.Candidate(name, a.held)
	}
	head, err := headOf(name)
	return err == nil && !isBundle(name) && lint.Candidate(name, head)
}

// isEnvironment tells the folder of an environment from one with logs.
func isEnvironment(name string) bool {
	for _, p := range []string{"bin/python", "bin/python3"} {
		if st, err := os.Stat(filepath.Join(name, p)); err == nil && !st.IsDir() {
			return true
		}
	}
	return false
}

// judged runs the rules over a bundle.
func (a *app) judged(b *fact.Bundle) (*diag.Report, error) {
	base, err := a.load(rules.Environment...)
	if err != nil {
		return nil, fmt.Errorf("knowledge base: %w", err)
	}
	rep := diag.Run(base.Set(), b)
	return &rep, nil
}

// reportOf runs another command of this program and takes its report, and the
// logs that it read.
func (a *app) reportOf(args ...string) (*diag.Report, *fact.Logs, error) {
	var out, errs bytes.Buffer
	var read *fact.Logs
	sub := &app{Streams: Streams{In: a.stdin(), Out: &out, Err: &errs, Getenv: a.Getenv}, lang: a.lang, logs: func(l *fact.Logs) { read = l }}
	code := sub.main(append(args, "--format", "json", "--lang", a.lang))
	if code == exitUsage || code > exitUnsure {
		return nil, nil, usagef("%s", strings.TrimPrefix(strings.TrimSpace(errs.String()), "ncclinic: "))
	}
	rep, err := decodeReport(args[0], &out)
	return rep, read, err
}

func savedReport(name string) (*diag.Report, error) {
	f, err := readableFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decodeReport(name, f)
}

func decodeReport(name string, r io.Reader) (*diag.Report, error) {
	var rep diag.Report
	raw, err := io.ReadAll(io.LimitReader(r, fact.MaxBundle+1))
	if err == nil && len(raw) > fact.MaxBundle {
		err = fmt.Errorf("larger than %d MiB", fact.MaxBundle>>20)
	}
	if err == nil {
		err = json.Unmarshal(raw, &rep)
	}
	if err == nil && rep.Schema != diag.ReportSchema {
		err = fmt.Errorf("schema %q is not %s", rep.Schema, diag.ReportSchema)
	}
	if err == nil && !slices.Contains([]string{diag.OK, diag.Warned, diag.Broken, diag.Unknown}, rep.Verdict) {
		err = fmt.Errorf("verdict %q", rep.Verdict)
	}
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	return &rep, nil
}

// aroundReport looks at the environment that a report is about when it is here:
// the interpreter that it names, or the one that the user names.
func (a *app) aroundReport(ctx context.Context, s *start, f *fixFlags, g gatherFlags, version bool) error {
	if g.python == "" || version {
		g.python = ""
		var in plan.Input
		if top := s.rep.Top(); top != nil {
			in = fromArgs(top.Args)
		}
		fromLogs(s.logs, &in)
		if p := in.Env.Python; filepath.IsAbs(p) {
			if _, err := os.Stat(p); err == nil {
				g.python = p
			}
		}
	}
	if g.python == "" {
		return nil
	}
	var err error
	if s.b, err = a.gather(ctx, g); err != nil || s.rep.Top() != nil {
		return err
	}
	// The environment may decide what the log could not.
	b, err := a.described(s.b, f)
	if err != nil {
		return err
	}
	rep, err := a.judged(b)
	if err == nil && rep.Top() != nil && slices.Contains(torchCauses, rep.Top().ID) {
		s.rep = rep
	}
	return err
}

// scriptStart lints scripts and keeps their safe edits as patches.
func (a *app) scriptStart(s *start, names ...string) error {
	var err error
	if s.rep, _, err = a.reportOf(append([]string{"lint", "--stdin-name", "-"}, names...)...); err != nil {
		return err
	}
	a.scriptPatch(s, names[0])
	for _, name := range names[1:] {
		x := &start{kind: "script", name: name}
		a.scriptPatch(x, name)
		s.rest = append(s.rest, x)
	}
	// The report of lint names no cause: the first error is what to mend, then the rest.
	for i := range s.rep.Findings {
		f := &s.rep.Findings[i]
		switch {
		case f.Severity == diag.Error && s.rep.Cause == nil:
			f.Role = diag.Cause
			s.rep.Cause = &f.ID
		case f.Severity == diag.Error || f.Severity == diag.Warning:
			s.more = append(s.more, f)
		}
	}
	slices.SortStableFunc(s.more, func(x, y *diag.Finding) int {
		e := map[bool]int{true: 0, false: 1}
		return e[x.Severity == diag.Error] - e[y.Severity == diag.Error]
	})
	return nil
}

// scriptPatch keeps the safe edits of a script, as lint --diff shows them.
func (a *app) scriptPatch(s *start, name string) {
	var out, errs bytes.Buffer
	s.script = name
	if code := Main([]string{"lint", "--diff", "--lang", a.lang, "--stdin-name", "-", "--", name}, Streams{In: a.stdin(), Out: &out, Err: &errs, Getenv: a.Getenv}); code == exitOK || code == exitFound {
		s.patch = out.String() // without secrets
		if src, err := os.ReadFile(name); err == nil && mask.Text(string(src)) != string(src) {
			s.sum = fmt.Sprintf("%x", sha256.Sum256(src))
		}
		for _, l := range strings.Split(strings.TrimSpace(errs.String()), "\n") {
			if l = strings.TrimPrefix(strings.TrimPrefix(l, "ncclinic: "), name+": "); l != "" {
				s.said = append(s.said, l)
			}
		}
	}
}

// uniq drops what was named before.
func uniq(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// severalStart reads several files together, as explain does: a log with the
// listings, the script and the facts that go with it.
func (a *app) severalStart(ctx context.Context, s *start, args []string, f *fixFlags, g gatherFlags, version bool) error {
	s.kind, s.name = "log", strings.Join(args, " ")
	for _, name := range args {
		if _, err := os.Stat(name); err != nil {
			if id, err := slurmjob.ParseID(name); err == nil {
				return usagef(a.tr("%s: the number of a job stands alone", "%s：作业号只能单独给出"), id.String())
			}
		}
	}
	if scripts := uniq(args); !slices.ContainsFunc(scripts, func(name string) bool { return !a.isScript(name) }) {
		s.kind, s.script = "script", scripts[0]
		return a.scriptStart(s, scripts...)
	}
	var err error
	if s.rep, s.logs, err = a.reportOf(append([]string{"explain"}, args...)...); err != nil {
		return err
	}
	for _, name := range uniq(args) {
		switch {
		case !a.isScript(name):
		case s.script == "":
			a.scriptPatch(s, name)
		default:
			x := &start{kind: "script", name: name}
			a.scriptPatch(x, name)
			s.rest = append(s.rest, x)
		}
	}
	if _, facts, err := bundles(args); err == nil && len(facts) == 1 {
		ran := ""
		if top := s.rep.Top(); top != nil {
			ran = strings.Trim(top.Args["torch_dir"], "'")
		}
		if all := facts[0].b; all.Nodes != nil && len(groupsOf(all)) > 0 {
			s.kinds, s.glibc = kindsOf(all), oldestGlibc(all)
			facts[0].b = groupsOf(all)[0]
		}
		if t := facts[0].b.Winner(); ran == "" || t == nil || t.Dir == ran {
			s.b = facts[0].b
			return nil
		}
	}
	return a.aroundReport(ctx, s, f, g, version)
}

// described lays what the flags say of the GPU node over a copy of facts, so that
// a cause is sought for that node and not for this one.
func (a *app) described(b *fact.Bundle, f *fixFlags) (*fact.Bundle, error) {
	if f.driver == "" && len(f.gpus) == 0 && len(f.facts) == 0 && f.gres == "" && !capForm.MatchString(f.arch) {
		return b, nil
	}
	c := *b
	c.Node = fact.Node{} // what this machine has says nothing about that node
	if len(f.facts) > 0 {
		nb, err := readFacts(f.facts[0])
		if err != nil {
			return nil, err
		}
		if nb = hardest(nb); nb != nil {
			takeNode(&c, nb, f.facts[0])
		}
	}
	in := plan.Input{}
	flags := *f
	a.handNode(&start{}, withArch(&flags), &in)
	for _, n := range in.Nodes {
		if n.Driver != "" {
			c.Node.Driver = fact.Of(fact.Driver{Version: n.Driver}, fact.Evidence{Source: fact.SrcFlag, Path: "--driver", Excerpt: n.Driver})
		}
		var gs []fact.GPU
		for i, x := range n.GPUs {
			capa := x.Cap
			if capa == "" {
				capa = tables.GPUCap(x.Name)
			}
			if x.Name == "" {
				x.Name = "GPU " + capa
			}
			if m := tables.Maker(x.Name); capa != "" && (m == "" || m == tables.NVIDIA) {
				gs = append(gs, fact.GPU{Index: i, Name: x.Name, Cap: capa, CapFrom: "flag"})
			}
		}
		if len(gs) > 0 {
			c.Node.GPUs = fact.Of(gs, fact.Evidence{Source: fact.SrcFlag, Path: "--gpu", Excerpt: strings.Join(f.gpus, ",")})
		}
	}
	switch f.arch {
	case "x86_64", "amd64":
		c.Host.Arch = fact.Of("x86_64", fact.Evidence{Source: fact.SrcFlag, Path: "--arch", Excerpt: f.arch})
	case "aarch64", "arm64":
		c.Host.Arch = fact.Of("aarch64", fact.Evidence{Source: fact.SrcFlag, Path: "--arch", Excerpt: f.arch})
	}
	return &c, nil
}

// withArch turns --arch sm_90 into a GPU.
func withArch(f *fixFlags) *fixFlags {
	if m := capForm.FindStringSubmatch(f.arch); m != nil {
		f.gpus = withCap(f.gpus, m[1]+"."+m[2])
	}
	return f
}

// readFacts reads the facts of a GPU node.
func readFacts(name string) (*fact.Bundle, error) {
	fl, err := readableFile(name)
	if err != nil {
		return nil, err
	}
	defer fl.Close()
	b, err := fact.ReadBundle(fl)
	if err != nil {
		return nil, usagef("--facts %s: %v", name, err)
	}
	mask.Deep(b)
	return b, nil
}
