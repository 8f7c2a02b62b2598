package slurmjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Time limits: a scheduler under load must not keep a person waiting forever.
const (
	controllerLimit = 20 * time.Second
	databaseLimit   = 40 * time.Second
	helpLimit       = 5 * time.Second
)

// maxAnswer bounds what is kept of an answer: big arrays have long ones.
const maxAnswer = 64 << 20

// Sides that can know a job.
const (
	SideScontrol = "scontrol"
	SideSacct    = "sacct"
)

// What became of asking a side.
const (
	Knows   = "knows"
	Forgot  = "does-not-know" // it answered, and has no such job (any more), or may not show it
	Off     = "off"           // accounting is switched off at this site
	NoTool  = "no-tool"       // the command is not on PATH
	Failing = "failing"       // it did not answer, or with an error
)

// Answer is what was found out.
type Answer struct {
	Job    *fact.Job
	Script []byte            // the batch script, nil when it was not to be had
	Sides  map[string]string // what became of asking scontrol and sacct
	Why    map[string]string // of a side that failed: what it said
	Calls  int               // commands that talked to a daemon
}

// Errors of Ask.
var (
	ErrNoSlurm = errors.New("neither scontrol nor sacct is on PATH")
	ErrUnknown = errors.New("no such job")
	ErrNobody  = errors.New("no answer from Slurm")
)

// asker is one run of Ask.
type asker struct {
	m   *source.Machine
	ctx context.Context
	mu  sync.Mutex
	ans *Answer
	env []string

	cluster string
}

// Ask finds out what Slurm knows of a job. With an array or a heterogeneous
// job as a whole it takes the part that tells most: the first that failed.
func Ask(ctx context.Context, m *source.Machine, id ID) (*Answer, error) {
	a := &asker{m: m, ctx: ctx, ans: &Answer{Sides: map[string]string{}, Why: map[string]string{}}, env: environment(m), cluster: id.Cluster}
	if m.Runner == nil {
		return a.ans, ErrNoSlurm
	}
	var shows []show
	var recs []record
	var fields []string
	var wg sync.WaitGroup
	wg.Go(func() { defer a.guard(SideScontrol); shows = a.scontrol(id) })
	wg.Go(func() { defer a.guard(SideSacct); recs, fields = a.sacct(id) })
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return a.ans, err
	}
	a.merge(id, shows, recs)
	if a.ans.Job == nil {
		switch {
		case a.ans.Sides[SideScontrol] == NoTool && a.ans.Sides[SideSacct] == NoTool:
			return a.ans, ErrNoSlurm
		case a.ans.Sides[SideScontrol] == Forgot || a.ans.Sides[SideSacct] == Forgot:
			return a.ans, ErrUnknown
		}
		return a.ans, ErrNobody
	}
	a.script(slices.Contains(fields, "SubmitLine"))
	return a.ans, ctx.Err()
}

// environment is what Slurm's commands get: nothing that changes how they write
// times, and the C locale for what they say.
func environment(m *source.Machine) []string {
	var out []string
	for k, v := range m.Env {
		switch {
		case k == "SLURM_TIME_FORMAT", k == "SLURM_BITSTR_LEN", k == "LC_ALL", k == "LANGUAGE", strings.HasPrefix(k, "SACCT_"):
			continue
		}
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return append(out, "LC_ALL=C")
}

// run starts one of Slurm's commands. The error says what went wrong in short.
func (a *asker) run(limit time.Duration, name string, args ...string) (source.Result, error) {
	p, err := a.m.Runner.LookPath(name)
	if err != nil {
		return source.Result{}, errNoTool
	}
	if a.cluster != "" {
		args = append([]string{"--clusters=" + a.cluster}, args...)
	}
	r, err := a.m.Runner.Run(a.ctx, source.Cmd{Path: p, Args: args, Env: a.env, Timeout: limit, MaxOut: maxAnswer, Dir: "/"})
	switch {
	case err != nil:
		return r, err
	case r.TimedOut:
		return r, fmt.Errorf("did not answer within %s", limit)
	}
	return r, nil
}

// guard turns a fault of ours in reading an answer into a side that failed.
func (a *asker) guard(name string) {
	if p := recover(); p != nil {
		a.side(name, Failing, fmt.Sprintf("internal error: %v", p))
	}
}

var errNoTool = errors.New("is not on PATH")

func (a *asker) side(name, what, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ans.Sides[name] = what
	if why != "" {
		a.ans.Why[name] = fact.Clip(strings.Join(strings.Fields(why), " "), 300)
	}
}

func (a *asker) call() {
	a.mu.Lock()
	a.ans.Calls++
	a.mu.Unlock()
}

// scontrol asks the controller, which forgets a job some minutes after its end.
func (a *asker) scontrol(id ID) []show {
	a.call()
	r, err := a.run(controllerLimit, SideScontrol, "--details", "show", "job", id.String())
	switch {
	case errors.Is(err, errNoTool):
		a.side(SideScontrol, NoTool, "")
	case err != nil:
		a.side(SideScontrol, Failing, err.Error())
	case r.Code != 0:
		said := string(r.Stderr) + string(r.Stdout)
		if strings.Contains(said, "Invalid job id") || strings.Contains(said, "not found") {
			a.side(SideScontrol, Forgot, "")
			return nil
		}
		a.side(SideScontrol, Failing, said)
	default:
		if shows := of(id, parseShow(string(r.Stdout))); len(shows) > 0 {
			a.side(SideScontrol, Knows, "")
			if !oneOwner(shows) {
				a.settle(shows)
			}
			return shows
		}
		a.side(SideScontrol, Forgot, "")
	}
	return nil
}

// settle asks for the owner of a job in a form that names and comments cannot
// disturb, when scontrol's answer holds several.
func (a *asker) settle(shows []show) {
	owner := map[string]string{}
	a.call()
	if r, err := a.run(controllerLimit, "squeue", "--noheader", "--states=all", "--format=%A %U %u", "--jobs="+shows[0].kv["JobId"]); err == nil && r.Code == 0 {
		for _, l := range strings.Split(string(r.Stdout), "\n") {
			if f := strings.Fields(l); len(f) == 3 {
				owner[f[0]] = f[2] + "(" + f[1] + ")"
			}
		}
	}
	u := owner[shows[0].kv["JobId"]]
	for i := range shows {
		shows[i].kv["UserId"] = u
		if u == "" {
			shows[i].owner = "scontrol names several owners: the name of the job or a comment holds lines that look like scontrol's"
		}
	}
}

// sacct asks the accounting for all runs of the job with their steps.
func (a *asker) sacct(id ID) ([]record, []string) {
	help, err := a.run(helpLimit, SideSacct, "--helpformat") // asks no daemon
	if errors.Is(err, errNoTool) {
		a.side(SideSacct, NoTool, "")
		return nil, nil
	}
	fields := columnsOf(string(help.Stdout))
	a.call()
	mark := newMark()
	r, err := a.run(databaseLimit, SideSacct, "--allusers", "--duplicates", "--parsable2", "--delimiter="+mark, "--format="+strings.Join(fields, ","), "--jobs="+id.String())
	if err != nil {
		a.side(SideSacct, Failing, err.Error())
		return nil, fields
	}
	text := plainColumns(string(r.Stdout), mark)
	said := strings.ToLower(string(r.Stderr) + text)
	if strings.Contains(said, "accounting storage is disabled") || strings.Contains(said, "accounting_storage/none") {
		a.side(SideSacct, Off, "")
		return nil, fields
	}
	rows, perr := parseRows(text)
	recs := slices.DeleteFunc(records(rows), func(r record) bool { // what a name with line ends makes of another job
		return r.id.Job != id.Job && r.job["JobIDRaw"] != id.Job
	})
	switch {
	case len(recs) > 0:
		a.side(SideSacct, Knows, "")
		if perr != nil {
			a.ansWhy(SideSacct, perr.Error())
		}
	case r.Code != 0:
		a.side(SideSacct, Failing, string(r.Stderr)+string(r.Stdout))
	case perr != nil:
		a.side(SideSacct, Failing, perr.Error())
	default:
		a.side(SideSacct, Forgot, "")
	}
	return recs, fields
}

func (a *asker) ansWhy(side, why string) {
	a.mu.Lock()
	a.ans.Why[side] = why
	a.mu.Unlock()
}

// merge builds the job from what both sides say.
func (a *asker) merge(id ID, shows []show, recs []record) {
	sacctCmd, showCmd := "sacct -j "+id.String(), "scontrol show job "+id.String()
	if id.Cluster != "" {
		sacctCmd, showCmd = "sacct -M "+id.Cluster+" -j "+id.String(), "scontrol -M "+id.Cluster+" show job "+id.String()
	}
	// The runs of each part of the job, in order; the last one is the current one.
	type one struct {
		job  *fact.Job
		runs []record
	}
	var parts []*one
	byID := map[string]*one{}
	get := func(shown string) *one {
		if byID[shown] == nil {
			byID[shown] = &one{job: &fact.Job{}}
			parts = append(parts, byID[shown])
		}
		return byID[shown]
	}
	for _, r := range recs {
		p := get(r.shown)
		p.runs = append(p.runs, r)
	}
	for _, p := range parts {
		last := p.runs[len(p.runs)-1]
		last.fill(p.job, sacctCmd)
		for _, r := range p.runs[:len(p.runs)-1] {
			state, _ := fact.StateWord(r.job["State"])
			if !slices.Contains([]string{"REQUEUED", "PREEMPTED", "NODE_FAIL", "CANCELLED", "BOOT_FAIL", "FAILED", "TIMEOUT"}, state) {
				continue // an old job of the same number
			}
			run := fact.JobRun{State: state, Nodes: r.job["NodeList"], At: fact.Command(sacctCmd+" --duplicates", rowText(r.shown, r.job))}
			run.Start, _ = said(r.job["Start"])
			run.End, _ = said(r.job["End"])
			if len(p.job.Before) < 100 && r.job["Submit"] <= last.job["Submit"] {
				p.job.Before = append(p.job.Before, run)
			}
		}
	}
	for i := range shows {
		s := &shows[i]
		s.fill(get(s.id().String()).job, showCmd)
	}
	if len(parts) == 0 {
		return
	}
	best := parts[0]
	for _, p := range parts[1:] {
		if better(p.job, best.job) {
			best = p
		}
	}
	for _, p := range parts {
		if p != best && len(best.job.Others) < maxRows {
			best.job.Others = append(best.job.Others, fact.JobSibling{ID: p.job.ID, State: p.job.State.Or(""), Exit: p.job.Exit, End: p.job.End.Or("")})
		}
	}
	a.ans.Job = best.job
}

// better orders the parts of a job by how much there is to explain.
func better(a, b *fact.Job) bool {
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra < rb
	}
	// Times of one format in one zone sort as text.
	return rank(a) == 0 && a.End.Or("~") < b.End.Or("~")
}

func rank(j *fact.Job) int {
	state := j.State.Or("")
	switch fact.Phase(state) {
	case fact.JobEnded:
		if state != "COMPLETED" && state != "CANCELLED" && state != "REVOKED" {
			return 0
		}
		if state != "COMPLETED" {
			return 1
		}
		for _, s := range j.Steps {
			if s.State != "COMPLETED" {
				return 2
			}
		}
		return 5
	case fact.JobRuns:
		return 3
	case fact.JobWaits:
		return 4
	}
	return 6
}

// script gets the batch script: from the controller while it has it, from the
// accounting where the site keeps scripts, else the file that was submitted.
func (a *asker) script(keeps bool) {
	j := a.ans.Job
	j.Script.Path = j.Command.Or("")
	use := func(from string, text []byte) bool {
		if len(bytes.TrimSpace(text)) == 0 {
			return false
		}
		j.Script.From, j.Script.Bytes, a.ans.Script = from, len(text), text
		return true
	}
	if a.ans.Sides[SideScontrol] == Knows && j.Raw != "" {
		a.call()
		r, err := a.run(controllerLimit, SideScontrol, "write", "batch_script", j.Raw, "-")
		if err == nil && r.Code == 0 && bytes.HasPrefix(r.Stdout, []byte("#!")) && use("scontrol write batch_script "+j.Raw+" -", r.Stdout) {
			return
		}
	}
	if a.ans.Sides[SideSacct] == Knows && keeps {
		a.call()
		r, err := a.run(databaseLimit, SideSacct, "--allusers", "--batch-script", "--jobs="+j.ID)
		if err == nil && r.Code == 0 && use("sacct -B -j "+j.ID, batchScript(string(r.Stdout))) {
			return
		}
	}
	a.file(use)
}

// batchScript takes the script out of what "sacct -B" prints: a headline, a
// rule and the script, for each job.
func batchScript(text string) []byte {
	_, rest, ok := strings.Cut(text, "Batch Script for ")
	if !ok {
		return nil
	}
	_, rest, _ = strings.Cut(rest, "\n")
	rule, rest, _ := strings.Cut(rest, "\n")
	if strings.Trim(rule, "-") != "" {
		return nil
	}
	if i := strings.Index(rest, "\nBatch Script for "); i >= 0 {
		rest = rest[:i+1]
	}
	if strings.TrimSpace(rest) == "NONE" || !strings.HasPrefix(rest, "#!") {
		return nil
	}
	return []byte(strings.TrimRight(rest, "\n") + "\n")
}

// maxScript bounds a script that is read from a file; sbatch takes 4 MiB.
const maxScript = 8 << 20

// file reads the file that was submitted, as it is now.
func (a *asker) file(use func(string, []byte) bool) {
	j := a.ans.Job
	p := j.Command.Or("")
	if !strings.HasPrefix(p, "/") {
		return
	}
	st, why := look(a.m, p, j)
	if why != "" || st.Size() > maxScript {
		return
	}
	text, err := source.ReadFile(a.m.FS, p, maxScript)
	if err != nil || !bytes.HasPrefix(text, []byte("#!")) {
		return
	}
	if t, ok := slurmTime(j.Submit.Or("")); ok && st.ModTime().After(t.Add(clocks)) {
		j.Script.Changed = true
	}
	use(p, text)
}

// clocks is how far the clocks of file servers and the controller may differ.
const clocks = 2 * time.Minute

// look says whether a file of the job may be read, and why not. Paths come from
// whoever submitted the job: what belongs to somebody else is not read for them
// by an administrator who looks into it.
func look(m *source.Machine, path string, j *fact.Job) (os.FileInfo, string) {
	st, err := stat(m, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fact.OutMissing
	case err != nil:
		return nil, fact.OutDenied
	case st.Mode()&os.ModeDevice != 0:
		return st, fact.OutDevice
	case !st.Mode().IsRegular():
		return st, fact.OutSpecial
	}
	if foreign(m, j, st) {
		return st, fact.OutForeign
	}
	return st, ""
}

// foreign reports that a file belongs to somebody else than the job, and that it
// is not the job's owner who asks. Where the owner is in dispute it belongs to
// nobody for sure.
func foreign(m *source.Machine, j *fact.Job, st os.FileInfo) bool {
	uid, ok := owner(st)
	if j.UID.State == fact.Failed {
		return true
	}
	return ok && j.UID.IsKnown() && m.UID != j.UID.V && uid != j.UID.V
}

// Poll asks the controller alone, once.
func Poll(ctx context.Context, m *source.Machine, id ID) (*fact.Job, error) {
	a := &asker{m: m, ctx: ctx, ans: &Answer{Sides: map[string]string{}, Why: map[string]string{}}, env: environment(m), cluster: id.Cluster}
	shows := a.scontrol(id)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch a.ans.Sides[SideScontrol] {
	case Knows:
		a.merge(id, shows, nil)
		return a.ans.Job, nil
	case Forgot:
		return nil, ErrUnknown
	}
	return nil, fmt.Errorf("scontrol: %s", a.ans.Why[SideScontrol])
}
