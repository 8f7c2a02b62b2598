package explain

import (
	"slices"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// Explain judges what was read. The order in which causes are preferred:
//
//  1. A cause that another one explains is folded under it, whatever came first.
//  2. What says what broke (an exception, a CUDA error, a shell error, the OOM
//     killer) comes before what may be an echo (sockets, stores, RDMA), and that
//     before what is left when nothing says more (a hang).
//  3. Within these, the first failure wins: by time where stamps tell, else by
//     position in one file, else by the stage of a job's life in which it bites.
//
// Without a candidate the verdict is unknown when something failed, and ok
// when nothing did or everything was survived.
func Explain(l *fact.Logs, set *diag.Set, o Options) diag.Report {
	v := newView(l, set, o)
	v.decideSlurm()
	v.decideStates()
	v.decideEnv()
	v.decideBuild()
	v.decideTorchPackage()
	v.decideLibraries()
	v.decideDriver()
	v.decideHardware()
	v.decideArch()
	v.decideMemory()
	v.decideIndex()
	v.decideNoGPU()
	v.decideMore()
	v.decideRendezvous()
	v.decideNet()
	v.decideRun()
	v.ignoredRequest()
	v.endedAtOnce()
	v.saidStuck()
	v.storeLost()
	v.decideJob()
	v.decideArguments()
	v.general()
	v.diskShown()
	v.statusOnly()
	return v.report()
}

// saidStuck takes the word of somebody who writes that the job hangs, when
// nothing else says why: that is no clean bill.
func (v *view) saidStuck() {
	ss := v.facts(kind.Stuck)
	if len(v.cands) > 0 || v.dead || len(ss) == 0 || len(v.facts("success")) > 0 {
		return
	}
	s := ss[0]
	v.unknown([]*fact.Event{{Place: s.Place, Text: s.Text}}, "NCCL_DEBUG=INFO and the launch command of every node", "py-spy dump --pid PID of a rank on each node")
}

// storeLost is no clean bill either: ranks that lose the store, and an agent that
// loses the rendezvous, saw another node go away.
func (v *view) storeLost() {
	es := v.peek("S042")
	if len(v.cands) > 0 || v.dead || len(es) == 0 || !v.has("log-rendezvous-heartbeat-failed") || len(v.facts("success")) > 0 {
		return
	}
	v.sortEvents(es)
	v.unknown(cap4(es), "the log of the node of rank 0, where the store is", "sacct -j JOBID -o JobID,State,ExitCode,NodeList")
}

// general turns signatures that prove one cause, and that no decider judges,
// into candidates.
func (v *view) general() {
	if v.opt.Rules == nil {
		return
	}
	var rules []string
	for r := range v.byRule {
		rules = append(rules, r)
	}
	sort.Strings(rules)
	for _, r := range rules {
		es := v.byRule[r]
		info, ok := v.opt.Rules(r)
		if !ok || v.used[r] || v.used[info.Sig] || info.Role == "noise" || info.Role == "context" || info.Role == "consequence" {
			continue
		}
		v.sortEvents(es)
		if len(info.Proves) > 0 {
			cert := diag.Proven
			if info.Certainty == "low" || info.Role == "either" {
				cert = diag.Likely
			}
			v.add(cand{id: info.Proves[0], cert: cert, over: []string{"run-exception"}}, cap4(es)...)
			continue
		}
		if len(info.Suggests) == 1 && (info.Role == "cause" || v.dead) {
			c := cand{id: info.Suggests[0], cert: diag.Likely, over: []string{"run-exception"}}
			if info.Role != "cause" || info.Certainty == "low" {
				c.cert, c.tier = diag.Possible, 1
				c.needs = []string{"the lines of all ranks around that time", "sacct -j JOBID -o JobID,State,ExitCode"}
			}
			v.add(c, cap4(es)...)
			continue
		}
		if info.Role == "cause" && slices.Contains(info.Suggests, "run-exception") && v.dead {
			continue // an ordinary exception; exceptions() has it
		}
		v.unsure = append(v.unsure, es...)
	}
}

// report orders the candidates and names the cause.
func (v *view) report() diag.Report {
	cs := v.cands
	healthy := v.endedWell()
	if healthy {
		var keep []cand
		for _, c := range cs {
			if c.forced {
				keep = append(keep, c)
			}
		}
		cs = keep
	}
	folded := make([]string, len(cs))
	for i := range cs {
		over := append([]string(nil), cs[i].over...)
		if r := v.set.ByID(cs[i].id); r != nil {
			over = append(over, r.Explains...)
		}
		for _, id := range over {
			for j := range cs {
				if j != i && cs[j].id == id && cs[j].id != cs[i].id && folded[j] == "" && folded[i] != id && !explainsBack(cs, folded, i, j) && !later(cs[i], cs[j]) && (cs[i].tier <= cs[j].tier || sameLine(cs[i], cs[j])) {
					folded[j] = cs[i].id
				}
			}
		}
	}
	order := make([]int, len(cs))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		i, j := order[a], order[b]
		if (folded[i] == "") != (folded[j] == "") {
			return folded[i] == ""
		}
		return v.prefer(cs[i], cs[j])
	})
	rep := diag.Report{Schema: diag.ReportSchema, Rules: v.set.Version, Subject: fact.Subject{Kind: "files", Name: v.subject()}, Problems: v.l.Problems, Verdict: diag.OK}
	at := map[string]int{}
	for n, i := range order {
		c := cs[i]
		v.envArgs(&c)
		f := v.set.Finding(c.rule, c.id, c.cert, c.args, c.ev...)
		f.Where, f.Needs = v.cleanWhere(c.where), c.needs
		switch {
		case folded[i] != "":
			f.Role = diag.Symptom
		case n > 0:
			f.Role = diag.Contributing
		}
		if k, ok := at[f.ID]; ok {
			same := &rep.Findings[k]
			same.Evidence = append(same.Evidence, f.Evidence...)
			same.Where = append(same.Where, f.Where...)
			same.Count++
			continue
		}
		at[f.ID] = len(rep.Findings)
		rep.Findings = append(rep.Findings, f)
		if n == 0 && folded[i] == "" {
			id := c.id
			rep.Cause = &id
			rep.Verdict = diag.Broken
			if f.Severity == diag.Warning {
				rep.Verdict = diag.Warned
			}
		}
	}
	if rep.Cause != nil {
		top := &rep.Findings[0]
		v.rankOfTable(top)
		for j := range cs {
			if folded[j] == top.ID && cs[j].id != top.ID && !slices.Contains(top.Explains, cs[j].id) {
				top.Explains = append(top.Explains, cs[j].id)
			}
		}
		v.consequences(&rep)
	} else if !healthy {
		open := v.failed()
		if !open {
			v.unsure = v.unsettled()
			open = len(v.unsure) > 0
		}
		if open {
			rep.Verdict = diag.Unknown
			rep.Findings = append(rep.Findings, v.undecided())
		}
	}
	for _, f := range v.notes {
		rep.Findings = append(rep.Findings, *f)
	}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		f.Evidence = once(f.Evidence)
		if len(f.Evidence) > v.opt.MaxEvidence {
			f.Evidence = f.Evidence[:v.opt.MaxEvidence]
		}
	}
	rep.Ran = Ran(&rep, v.l, v.set)
	return rep.Normal()
}

// rankOfTable takes the first failing rank from torchrun's table for a cause that
// strikes one rank and whose lines carry no rank.
func (v *view) rankOfTable(f *diag.Finding) {
	family, _, _ := strings.Cut(f.ID, "-")
	if family != "run" && family != "gpu" && family != "host" || slices.ContainsFunc(f.Where, func(w diag.Where) bool { return w.Rank != nil }) {
		return
	}
	for _, x := range v.l.Exits {
		if x.By == "table" && x.First && x.Rank >= 0 {
			r := x.Rank
			w := diag.Where{Node: x.Node, Rank: &r}
			if len(f.Where) > 0 {
				w.File, w.Line = f.Where[0].File, f.Where[0].Line
				if f.Where[0].Node != "" {
					w.Node = f.Where[0].Node
				}
				f.Where = f.Where[1:]
			}
			f.Where = append([]diag.Where{w}, f.Where...)
			return
		}
	}
}

func explainsBack(cs []cand, folded []string, i, j int) bool { return folded[i] == cs[j].id }

// later reports that a came clearly after b, so that it cannot explain it. Only
// for causes of a running job: what is wrong from the start has no time.
func later(a, b cand) bool {
	if a.tier > 0 || a.at.TK == 0 || a.at.TK != b.at.TK || a.at.TK == fact.TimeRelative {
		return false
	}
	return a.id == "run-exception" && a.at.Time-b.at.Time > 60000
}

// sameLine: two candidates from one line.
func sameLine(a, b cand) bool {
	return a.at.File == b.at.File && a.at.Line == b.at.Line && a.at.Line > 0
}

// prefer orders two candidates of which neither explains the other.
func (v *view) prefer(a, b cand) bool {
	if a.tier != b.tier {
		return a.tier < b.tier
	}
	if before(a.at, b.at) != before(b.at, a.at) {
		return before(a.at, b.at)
	}
	if sa, sb := v.stage(a.id), v.stage(b.id); sa != sb {
		return sa < sb
	}
	return certRank(a.cert) < certRank(b.cert)
}

func certRank(c diag.Certainty) int {
	switch c {
	case diag.Proven:
		return 0
	case diag.Likely:
		return 1
	}
	return 2
}

func (v *view) stage(id string) int {
	if r := v.set.ByID(id); r != nil && r.Stage > 0 {
		return r.Stage
	}
	return 95
}

// endedWell reports that nothing is left to repair: every file that failed
// somewhere says further down that it succeeded, or sacct says so.
func (v *view) endedWell() bool {
	if v.sacctDone() {
		return true
	}
	last := map[int]int{}
	for _, s := range v.facts("success") {
		last[s.File] = max(last[s.File], s.Line)
	}
	if len(last) == 0 || v.dead {
		return false
	}
	for _, c := range v.cands {
		for _, e := range c.ev {
			for i, f := range v.l.Files {
				if f.Path == e.Path && f.Kind == fact.KindLog && last[i] < e.Line {
					return false
				}
			}
		}
	}
	return true
}

// failed reports that something failed that no candidate explains.
func (v *view) failed() bool {
	return v.dead || len(v.needs) > 0
}

// undecided is the finding of an unknown verdict: what was seen, and what would decide.
func (v *view) undecided() diag.Finding {
	f := diag.Finding{ID: "unknown", Role: diag.Context, Severity: diag.Error, Certainty: diag.Possible, Args: diag.Args{}, Count: 1, Needs: v.needs}
	v.sortEvents(v.unsure)
	v.lead(&f)
	for _, e := range v.unsure {
		if len(f.Evidence) < v.opt.MaxEvidence {
			f.Evidence = append(f.Evidence, v.evidence(e.Place, e.Text))
			f.Where = append(f.Where, v.where(e.Place))
		}
	}
	if len(f.Evidence) == 0 {
		for _, x := range v.exc {
			if len(f.Evidence) < v.opt.MaxEvidence {
				f.Evidence = append(f.Evidence, v.evidence(x.Place, fact.Clip(x.Type+": "+x.Message, 400)))
				f.Where = append(f.Where, v.where(x.Place))
			}
		}
	}
	if len(f.Evidence) == 0 {
		for _, x := range v.l.Exits {
			if len(f.Evidence) < v.opt.MaxEvidence {
				f.Evidence = append(f.Evidence, v.evidence(x.Place, exitText(x)))
				f.Where = append(f.Where, v.where(x.Place))
			}
		}
	}
	if len(f.Needs) == 0 {
		f.Needs = []string{everyStderr, "sacct -j JOBID -o JobID,State,ExitCode,MaxRSS"}
	}
	v.jobUndecided(&f)
	return f
}

// once drops evidence that quotes a line a second time: two signatures may hit it.
func once(es []fact.Evidence) []fact.Evidence {
	type line struct {
		path, text string
		n          int
	}
	seen := map[line]bool{}
	var out []fact.Evidence
	for _, e := range es {
		k := line{e.Path, e.Excerpt, e.Line}
		if !seen[k] {
			seen[k] = true
			out = append(out, e)
		}
	}
	return out
}

// lead gives an undecided finding the words of the message that says most: one
// that speaks of a cause before others, then the one with most to suggest, then
// the first. What it suggests are the causes among which the input does not
// decide.
func (v *view) lead(f *diag.Finding) {
	if v.opt.Rules == nil {
		return
	}
	var best *fact.Event
	var said RuleInfo
	for _, e := range v.unsure {
		info, ok := v.opt.Rules(e.Rule)
		if !ok {
			continue
		}
		cause, was := info.Role == "cause", said.Role == "cause"
		if best == nil || cause && !was || cause == was && len(info.Suggests) > len(said.Suggests) {
			best, said = e, info
		}
	}
	if best == nil {
		return
	}
	f.Rule, f.Suggests = best.Rule, said.Suggests
	for k, a := range best.Args {
		f.Args[k] = a
	}
}

// consequences folds what follows from the cause: one finding per signature, counted over ranks.
func (v *view) consequences(rep *diag.Report) {
	if v.opt.Rules == nil {
		return
	}
	type fold struct {
		first *fact.Event
		n     int
		ranks map[int]bool
	}
	folds := map[string]*fold{}
	for _, e := range v.l.Events {
		if e.Role != "consequence" || e.Quoted {
			continue
		}
		f := folds[e.Rule]
		if f == nil {
			ev := e
			f = &fold{first: &ev, ranks: map[int]bool{}}
			folds[e.Rule] = f
		}
		f.n += e.Count
		if r := v.rankOf(e.Place); r >= 0 {
			f.ranks[r] = true
		}
	}
	var rules []string
	for r := range folds {
		rules = append(rules, r)
	}
	sort.Slice(rules, func(i, j int) bool {
		a, b := folds[rules[i]], folds[rules[j]]
		if a.n != b.n {
			return a.n > b.n
		}
		return rules[i] < rules[j]
	})
	for i, r := range rules {
		if i == 8 {
			break
		}
		f := folds[r]
		x := diag.Finding{ID: r, Rule: r, Role: diag.Symptom, Severity: diag.Note, Certainty: diag.Proven, Args: merge(diag.Args{"ranks": itoa(len(f.ranks))}, f.first.Args), Count: f.n,
			Evidence: []fact.Evidence{v.evidence(f.first.Place, f.first.Text)}, Where: []diag.Where{v.where(f.first.Place)}}
		rep.Findings = append(rep.Findings, x)
		rep.Findings[0].Explains = append(rep.Findings[0].Explains, r)
	}
}

func (v *view) cleanWhere(ws []diag.Where) []diag.Where {
	var out []diag.Where
	for _, w := range ws {
		dup := false
		for _, o := range out {
			if o.File == w.File && o.Line == w.Line && o.Node == w.Node && (o.Rank == nil) == (w.Rank == nil) && (o.Rank == nil || *o.Rank == *w.Rank) {
				dup = true
			}
		}
		if !dup && len(out) < 8 {
			out = append(out, w)
		}
	}
	return out
}

func (v *view) subject() string {
	var names []string
	for _, f := range v.l.Files {
		names = append(names, f.Path[strings.LastIndexByte(f.Path, '/')+1:])
		if len(names) == 4 && len(v.l.Files) > 4 {
			names = append(names, "…")
			break
		}
	}
	return strings.Join(names, ", ")
}
