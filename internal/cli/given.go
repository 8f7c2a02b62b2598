package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// given is a facts bundle among the files that explain was given.
type given struct {
	path string
	raw  []byte
	b    *fact.Bundle
}

// bundles takes the facts bundles out of what the user named. Read as a log a
// bundle would be full of paths and words that mean nothing, so one that cannot
// be read is an error and no log.
func bundles(args []string) (rest []string, out []given, err error) {
	for _, arg := range args {
		if !isBundle(arg) {
			rest = append(rest, arg)
			continue
		}
		f, err := os.Open(arg)
		if err != nil {
			return nil, nil, usageError{err}
		}
		raw, err := io.ReadAll(io.LimitReader(f, fact.MaxBundle+1))
		f.Close()
		if err != nil {
			return nil, nil, usageError{err}
		}
		b, err := fact.ReadBundle(bytes.NewReader(raw))
		if err != nil {
			return nil, nil, usagef("%s: %v", arg, err)
		}
		mask.Deep(b)
		out = append(out, given{arg, raw, b})
	}
	return rest, out, nil
}

// isBundle looks for the schema at the beginning of a file, where WriteBundle puts it.
func isBundle(path string) bool { return startsWith(path, `"ncclinic.facts/`) }

// startsWith reports whether a file is a JSON object whose first bytes have a word.
func startsWith(path, word string) bool {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 512))
	head = bytes.TrimSpace(head)
	return bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(word))
}

// addTo tells the judge of logs what a bundle says of the environment, as a
// listing would: which torch wins and what it computes on, what is installed,
// driver and GPUs. Variables stay out: those of the shell in which the facts
// were taken need not be those of the job.
func (g given) addTo(l *fact.Logs) {
	l.Files = append(l.Files, fact.LogFile{Path: g.path, Kind: fact.KindListing, Rank: -1})
	pl := fact.Place{File: len(l.Files) - 1, Rank: -1, Local: -1, Task: -1}
	add := func(k, name, v, aux, text string) {
		pl.Line = 1
		if i := bytes.Index(g.raw, []byte(v)); i > 0 {
			pl.Line += bytes.Count(g.raw[:i], []byte("\n"))
		}
		l.Listing.Facts = append(l.Listing.Facts, fact.Said{Place: pl, Kind: k, Name: name, V: v, Aux: aux, Text: text})
	}
	if t := g.b.Winner(); t != nil {
		text := "torch " + t.Version.Or("?") + " in " + t.Dir
		if v, ok := t.Version.Get(); ok {
			add(kind.TorchVer, "torch", v, "", text)
		}
		add(kind.TorchPath, "", t.Dir, "", text)
		if v, ok := t.CUDA.Get(); ok {
			add(kind.TorchCUDA, "", v, "", text+", CUDA "+v)
		} else if t.Accel() == fact.AccelCPU {
			add(kind.TorchCUDA, "", "None", "", text+", CUDA None")
			l.Listing.Facts[len(l.Listing.Facts)-1].Line = l.Listing.Facts[len(l.Listing.Facts)-2].Line
		}
		if v, ok := t.HIP.Get(); ok {
			add(kind.TorchHIP, "", v, "", text+", ROCm "+v)
		}
	}
	for _, d := range g.b.Dists {
		if d.Name != "torch" && d.Name != "pytorch" { // of several torch the winner is told above
			add(kind.Pkg, d.Name, d.Version, d.Build, d.Name+" "+d.Version)
		}
	}
	if v, ok := g.b.Node.Driver.Get(); ok {
		add(kind.Driver, "", v.Version, "", "driver "+v.Version)
	}
	if gpus, ok := g.b.Node.GPUs.Get(); ok {
		for _, x := range gpus {
			add(kind.GPU, fmt.Sprint(x.Index), x.Name, "", fmt.Sprintf("GPU %d: %s", x.Index, x.Name))
		}
	}
	if v, ok := g.b.Host.L4T.Get(); ok {
		add(kind.OS, "", "tegra", "", "Jetson Linux "+v)
	}
	if g.b.Host.Arch.Or("") == "aarch64" {
		add(kind.Machine, "", "aarch64", "", "aarch64")
	}
}

// fits reports whether the facts are about the torch that the logs ran, as far
// as their paths tell; what is not fit is a problem of the report. A login
// node's facts beside a job's log must not decide about the job.
func (g given) fits(l *fact.Logs, a *app) bool {
	ran := explain.TorchDir(l)
	if ran == "" || len(g.b.Torch) == 0 {
		return true
	}
	if filepath.Clean(g.b.Torch[0].Dir) == filepath.Clean(ran) {
		return true
	}
	l.Problems = append(l.Problems, fact.Problem{What: g.path, Why: fmt.Sprintf(a.tr("facts of another torch (%s) than the one that the log ran (%s): not used", "其中的 torch（%s）不是日志中运行的那个（%s），未采用"), g.b.Torch[0].Dir, ran)})
	return false
}

// adopt lets the facts decide where they and the logs speak of one fault: the
// check proves what the logs show or suggest, or what explains it. Its evidence,
// message and fixes are of this very environment. Where the log does not say
// which torch it ran, the facts may be of another one: then they make likely, not
// proven.
func adopt(rep, check *diag.Report, sure bool) {
	top := check.Top()
	if top == nil || top.Certainty != diag.Proven {
		return
	}
	at := -1
	for i := range rep.Findings {
		f := &rep.Findings[i]
		switch {
		case rep.Cause != nil && f.Role == diag.Cause && f.ID == *rep.Cause && (f.ID == top.ID || slices.Contains(top.Explains, f.ID)),
			rep.Cause == nil && f.ID == "unknown" && slices.ContainsFunc(f.Suggests, func(id string) bool { return id == top.ID || slices.Contains(top.Explains, id) }):
			at = i
		}
	}
	if at < 0 {
		return
	}
	was := rep.Findings[at]
	now := *top
	now.Evidence = append(slices.Clone(was.Evidence), top.Evidence...)
	now.Where = was.Where
	if !sure {
		now.Certainty = diag.Likely
		now.Needs = append(slices.Clone(now.Needs), "srun python -c 'import torch; print(torch.__file__)'")
	}
	rep.Findings[at] = now
	if was.Role == diag.Cause && was.ID != now.ID {
		was.Role, was.Needs = diag.Symptom, nil
		rep.Findings = append(rep.Findings, was)
	}
	rep.Cause, rep.Verdict = &rep.Findings[at].ID, check.Verdict
}

// nothingToJudge corrects a report that is ok only because nothing was there to
// judge: no line of a log, scripts alone, which lint judges, or a log of which
// the end could not be read, which is where failures stand.
func nothingToJudge(rep *diag.Report, l *fact.Logs) {
	if rep.Verdict != diag.OK {
		return
	}
	more := diag.Finding{ID: "unknown", Role: diag.Context, Severity: diag.Note, Certainty: diag.Possible, Args: diag.Args{}, Count: 1}
	need := func(cmd string) {
		if len(more.Needs) < 4 {
			more.Needs = append(more.Needs, cmd)
		}
	}
	for _, f := range l.Files {
		switch {
		case f.Path == "-" && (f.Cut || f.Broken):
			need("its last 2000 lines alone (tail -n 2000)")
		case f.Cut:
			need("tail -n 2000 " + shellWord(f.Path) + " | ncclinic explain -")
		case f.Broken:
			need(wholeCheck(f.Path))
		}
	}
	defer func() {
		if len(more.Needs) > 0 {
			rep.Verdict = diag.Unknown
			rep.Findings = append(rep.Findings, more)
			*rep = rep.Normal()
		}
	}()
	var scripts []string
	lines := 0
	for _, f := range l.Files {
		switch f.Kind {
		case fact.KindScript:
			scripts = append(scripts, f.Path)
		case fact.KindBinary, fact.KindReport:
		default:
			lines += f.Lines
		}
	}
	if lines > 0 {
		if len(more.Needs) == 0 && !recognised(l) {
			more.Args["variant"] = diag.NoOutput
			need("the output of the job: the files that --output and --error of sbatch name")
		}
		if s := cutOff(l); s != nil && len(more.Needs) == 0 {
			more.Args["variant"] = diag.CutOff
			more.Evidence = []fact.Evidence{{Source: fact.SrcLog, Path: l.Files[s.File].Path, Line: s.Last.Line, Excerpt: s.Text}}
			need("sacct -j JOBID -o JobID,State,ExitCode,MaxRSS")
			need("the standard error of every rank")
		}
		return
	}
	rep.Verdict = diag.Unknown
	for _, f := range l.Files {
		if f.Lines == 0 && f.Kind == fact.KindLog {
			rep.Problems = append(rep.Problems, fact.Problem{What: f.Path, Why: "empty"})
		}
	}
	for _, s := range scripts {
		if s != "-" { // which is read by now, and has no name
			s = shellWord(s)
		}
		need("ncclinic lint " + s)
	}
}

// recognised reports whether anything in the input is known from jobs: a
// message, the progress of training, a listing, a script.
func recognised(l *fact.Logs) bool {
	for _, f := range l.Files {
		if f.Kind != fact.KindLog && f.Kind != fact.KindBinary {
			return true
		}
	}
	if len(l.Works)+len(l.Exits)+len(l.Streams)+len(l.Commands)+len(l.Texts)+len(l.Listing.Facts) > 0 {
		return true
	}
	// A message that somebody only quotes says nothing about a run.
	return slices.ContainsFunc(l.Events, func(e fact.Event) bool { return !e.Quoted }) || slices.ContainsFunc(l.Exceptions, func(x fact.Exception) bool { return !x.Quoted })
}

// wholeCheck is the command that says whether a file is whole and readable.
func wholeCheck(path string) string {
	for ext, tool := range map[string]string{".gz": "gzip", ".xz": "xz", ".zst": "zstd", ".bz2": "bzip2"} {
		if strings.HasSuffix(path, ext) {
			return tool + " -t " + shellWord(path)
		}
	}
	if a, ok := archiveOf(path); ok {
		if strings.EqualFold(filepath.Ext(a), ".zip") {
			return "unzip -t " + shellWord(a)
		}
		return "tar -tvf " + shellWord(a)
	}
	return "ls -l " + shellWord(path)
}

// allBinary reports that no input was text, and names the first.
func allBinary(l *fact.Logs) (string, bool) {
	for _, f := range l.Files {
		if f.Kind != fact.KindBinary {
			return "", false
		}
	}
	if len(l.Files) == 0 {
		return "", false
	}
	return l.Files[0].Path, true
}

// askBundles names the check of the facts where the logs decide nothing.
func askBundles(rep *diag.Report, facts []given) {
	if rep.Verdict != diag.Unknown {
		return
	}
	for i := range rep.Findings {
		for _, g := range facts {
			if f := &rep.Findings[i]; f.ID == "unknown" {
				f.Needs = append([]string{"ncclinic check " + shellWord(g.path)}, f.Needs...)
			}
		}
	}
}

// shellWord quotes a path for a command that is pasted; one that looks like an
// option gets its folder in front.
func shellWord(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "." + string(filepath.Separator) + s
	}
	return fact.ShellWord(s)
}

// atLeastOne is the Args of a command that needs files.
func (a *app) atLeastOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s", fmt.Sprintf(a.tr("%s needs a file: ncclinic %s FILE... (\"-\" is standard input)", "%s 需要指定文件：ncclinic %s FILE...（\"-\" 表示标准输入）"), name, name))
		}
		return nil
	}
}
