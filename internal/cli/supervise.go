package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/rules"
)

// supervise runs a command as a child and explains its failure. It returns only
// when the command could not be started: else this process ends as it did.
func (a *app) supervise(m *source.Machine, argv, env []string, tail int) error {
	debug.FreeOSMemory() // what the guard needed is not needed while the command runs
	before := readOOM(m)
	end, err := run.Supervise(argv, env, tail)
	if err != nil {
		return a.notStarted(err)
	}
	if end.Signal != 0 || end.Code != 0 {
		a.explainTask(m, argv, end, readOOM(m).since(before))
		if end.Signal != 0 && m.Getenv("SLURM_STEP_ID") != "" {
			time.Sleep(onItsWay)
		}
	}
	end.Die()
	return nil
}

// onItsWay is how long the last words have to reach srun: of a task that a signal
// ends it drops what comes in later.
const onItsWay = 200 * time.Millisecond

// explainLimit bounds the explanation: other tasks wait for this one's status.
const explainLimit = 20 * time.Second

// explainTask says why the command of this task failed, unless another task of
// the job has said so.
func (a *app) explainTask(m *source.Machine, argv []string, end run.Ended, oom oomKills) {
	defer func() {
		if p := recover(); p != nil { // never in the way of the command's status
			fmt.Fprintf(a.Err, "ncclinic run: internal error: %v\n", p)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), explainLimit)
	defer cancel()
	how := a.howEnded(end)
	who := a.taskName(m) + render.Clean(filepath.Base(argv[0]), false)
	killed := sentSignals[end.Signal] && oom.here == 0
	// Somebody ended it: the scheduler because another task failed, a time limit, a person.
	if killed && !a.worth(end) {
		a.sayKilled(ctx, m, who, end, oom)
		return
	}
	rep, texts, err := a.explainEnd(ctx, m, argv, end, oom.here)
	if err != nil {
		fmt.Fprintf(a.Err, "ncclinic run: %v\n", err)
		return
	}
	if rep.Cause == nil && killed {
		a.sayKilled(ctx, m, who, end, oom)
		return
	}
	if rep.Cause == nil {
		if newClaim(m, "unexplained").take() {
			fmt.Fprintf(a.Err, a.tr("ncclinic run: %s: %s; its own output names no cause (ncclinic explain on the logs of all tasks, or ncclinic job)\n",
				"ncclinic run：%s：%s；其自身输出没有给出原因（请对所有任务的日志执行 ncclinic explain，或用 ncclinic job）\n"), who, how)
		}
		return
	}
	if !newClaim(m, "explained").take() {
		return
	}
	fmt.Fprintf(a.Err, "\nncclinic run: %s: %s\n", who, how)
	_ = render.Text(a.Err, rep, texts, render.TextOptions{Lang: a.lang, Style: render.Style{Width: 100}, MaxEvidence: 8})
}

// worth reports whether a task that was killed has said anything of its own
// before: an exception, or an error.
func (a *app) worth(end run.Ended) bool {
	for _, s := range end.Streams {
		if bytes.Contains(s.Text, []byte("Traceback (most recent")) || bytes.Contains(s.Text, []byte("Error")) {
			return true
		}
	}
	return false
}

// explainEnd judges what was kept of the output together with what is known of
// the environment and the end.
func (a *app) explainEnd(ctx context.Context, m *source.Machine, argv []string, end run.Ended, kills int) (*diag.Report, diag.Texts, error) {
	base, lb, err := a.loadLogs(rules.Environment...)
	if err != nil {
		return nil, nil, err
	}
	l, err := logs.Collect(ctx, taskInputs(m, end), logs.Options{Mask: mask.Text, Signatures: signatures(lb)})
	if err != nil && l == nil {
		return nil, nil, err
	}
	addEnd(l, end, kills)
	sure := explain.TorchDir(l) != ""
	b := taskFacts(ctx, m, argv, explainLimit/2)
	g := given{path: a.tr("(this task)", "（本任务）"), b: b}
	if g.raw, err = json.Marshal(b); err != nil {
		return nil, nil, err
	}
	if g.fits(l, a) {
		g.addTo(l)
	}
	rep := a.explained(l, base, lb)
	check := diag.Run(base.Set(), b)
	adopt(&rep, &check, sure || len(b.Torch) > 0) // it is the environment of this very task
	rep.Subject = fact.Subject{Kind: "files", Name: filepath.Base(argv[0])}
	rep.Tool, rep.Ran = Version, nil
	rep.Problems = nil
	return &rep, bothTexts{base, lb}, nil
}

// taskInputs are the streams as files; their names carry the rank, as the
// reader of logs looks for it.
func taskInputs(m *source.Machine, end run.Ended) []logs.Input {
	rank := m.Getenv("SLURM_PROCID")
	if _, err := strconv.Atoi(rank); err != nil {
		rank = m.Getenv("RANK")
	}
	var ins []logs.Input
	for _, s := range end.Streams {
		name := s.Name
		if _, err := strconv.Atoi(rank); err == nil {
			name = "rank" + rank + "." + s.Name
		}
		if len(s.Text) == 0 {
			continue
		}
		ins = append(ins, logs.Input{Path: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.Text)), nil }})
	}
	return ins
}

// addEnd tells the judge how the command ended.
func addEnd(l *fact.Logs, end run.Ended, kills int) {
	l.Files = append(l.Files, fact.LogFile{Path: "ncclinic run", Kind: fact.KindListing, Rank: -1})
	at := fact.Place{File: len(l.Files) - 1, Line: 1, Rank: -1, Local: -1, Task: -1}
	x := fact.Exit{Place: at, By: "shell", Code: end.Code}
	if end.Signal != 0 {
		x.Code, x.Words = -end.Signal, fmt.Sprintf("killed by signal %d%s", end.Signal, signalName(end.Signal))
	}
	l.Exits = append(l.Exits, x)
	if kills > 0 {
		l.Listing.Facts = append(l.Listing.Facts, fact.Said{Place: at, Kind: kind.Sacct, V: "OUT_OF_MEMORY",
			Text: fmt.Sprintf("the memory cgroup of this task counted %d OOM kills while it ran", kills)})
	}
}
