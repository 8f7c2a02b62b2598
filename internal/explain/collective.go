package explain

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

func cancelTime(text string) (int64, bool) {
	m := jobEnd.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	t, err := time.Parse("2006-01-02T15:04:05", m[1])
	if err != nil {
		return 0, false
	}
	return t.UnixMilli(), true
}

// collectives compares over ranks what their watchdogs say.
func (v *view) collectives() {
	if es := v.ev("S049", "S050", "S136", "log-flight-recorder-mismatch"); len(es) > 0 {
		c := v.add(cand{id: "run-ranks-diverged", cert: diag.Proven, tier: 1, over: []string{"run-exception", "run-collective-hang"}}, cap4(es)...)
		for _, e := range es {
			if m := culprit.FindStringSubmatch(e.Text); m != nil {
				r := atoi(m[1])
				c.where = append([]diag.Where{{File: v.path(e.File), Line: e.Line, Rank: &r}}, c.where...)
				break
			}
		}
		return
	}
	stuck := v.ev("S036", "S037")
	marks := v.ev("S021", "S022")
	v.used["S023"], v.used["S024"], v.used["S025"], v.used["S026"], v.used["S038"], v.used["S039"], v.used["S043"] = true, true, true, true, true, true, true
	ws := v.l.Works
	if v.lateRank() {
		return
	}
	if len(ws) == 0 {
		if len(stuck) > 0 {
			c := v.add(cand{id: "run-collective-hang", cert: diag.Likely, tier: 2}, cap4(stuck)...)
			c.needs = append(c.needs, hangNeeds()...)
		} else if len(marks) > 0 {
			c := v.add(cand{id: "run-collective-hang", cert: diag.Possible, tier: 2}, cap4(marks)...)
			c.needs = append(c.needs, hangNeeds()...)
		}
		return
	}
	evOf := func(list []fact.Work, n int) []fact.Evidence {
		var out []fact.Evidence
		for _, w := range list {
			if len(out) < n {
				out = append(out, v.evidence(w.Place, workText(w)))
			}
		}
		return out
	}
	where := func(list []fact.Work, n int) []diag.Where {
		var out []diag.Where
		for _, w := range list {
			if len(out) < n {
				out = append(out, v.where(w.Place))
			}
		}
		return out
	}
	sort.SliceStable(ws, func(i, j int) bool { return ws[i].Rank < ws[j].Rank })
	// one line per rank: the first collective that it waits for
	byRank := map[int]fact.Work{}
	var rows []fact.Work
	for _, w := range ws {
		o, ok := byRank[w.Rank]
		if !ok || w.Rank < 0 {
			byRank[w.Rank] = w
			rows = append(rows, w)
			continue
		}
		if o.Seq < 0 || w.Seq >= 0 && w.Seq < o.Seq {
			byRank[w.Rank] = w
			for i := range rows {
				if rows[i].Rank == w.Rank {
					rows[i] = w
				}
			}
		}
	}
	for _, w := range rows {
		if w.TimeoutMS > 0 && w.RanMS > 3*w.TimeoutMS && w.RanMS-w.TimeoutMS > 600000 {
			c := cand{id: "run-process-suspended", cert: diag.Likely, tier: 1, at: w.Place, over: []string{"run-collective-hang", "run-ranks-diverged"},
				args: diag.Args{"ran_ms": strconv.FormatInt(w.RanMS, 10), "timeout_ms": strconv.FormatInt(w.TimeoutMS, 10)}}
			c.ev, c.where = evOf(rows, 4), where(rows, 4)
			c.needs = append(c.needs, "journalctl and dmesg of the nodes around that time (suspend, stalls, clock jumps)", "scontrol show job JOBID")
			v.add(c)
			return
		}
	}
	if s, ok := v.stoppedBy(); ok {
		c := cand{id: "run-process-suspended", cert: diag.Likely, tier: 1, at: rows[0].Place, over: []string{"run-collective-hang"}}
		c.ev, c.where = append(evOf(rows, 3), s), where(rows, 4)
		v.add(c)
		return
	}
	if diff, why := differ(rows); diff {
		c := cand{id: "run-ranks-diverged", cert: diag.Proven, tier: 1, at: rows[0].Place, over: []string{"run-collective-hang"}, args: diag.Args{"variant": why}}
		rows = oddFirst(rows)
		c.ev, c.where = evOf(rows, 4), where(rows, 4)
		v.add(c)
		return
	}
	if c, ok := v.unequalLoaders(); ok {
		c.ev = append(evOf(rows, 2), c.ev...)
		c.at = rows[0].Place
		v.add(c)
		return
	}
	if c, ok := v.slowRank(rows); ok {
		c.ev = append(evOf(rows, 2), c.ev...)
		c.at = rows[0].Place
		v.add(c)
		return
	}
	c := cand{id: "run-collective-hang", cert: diag.Likely, tier: 2, at: rows[0].Place, args: diag.Args{"op": rows[0].Op, "seq": strconv.FormatInt(rows[0].Seq, 10)}}
	c.ev, c.where = evOf(rows, 3), where(rows, 3)
	if r, ok := v.missingWorkRank(); ok && len(byRank) > 1 {
		rr := r
		c.where = append([]diag.Where{{Rank: &rr}}, c.where...)
		c.args["rank"] = itoa(r)
		c.needs = append(c.needs, "the log of rank "+itoa(r))
	}
	c.needs = append(c.needs, hangNeeds()...)
	v.add(c)
}

// culprit is the rank that the analysis of flight recorder dumps blames.
var culprit = lazyre.New(`Culprit rank (\d+)`)

// oddFirst puts the one rank first that waits in another collective than all
// the others, where there are enough of them to say who is odd.
func oddFirst(rows []fact.Work) []fact.Work {
	type call struct {
		op    string
		numel int64
	}
	count := map[call]int{}
	for _, w := range rows {
		count[call{w.Op, w.NumelIn}]++
	}
	if len(rows) < 3 || len(count) != 2 {
		return rows
	}
	for i, w := range rows {
		if count[call{w.Op, w.NumelIn}] == 1 {
			return append([]fact.Work{w}, append(append([]fact.Work{}, rows[:i]...), rows[i+1:]...)...)
		}
	}
	return rows
}

// stoppedBy finds a typed command that stops a job or a process.
func (v *view) stoppedBy() (fact.Evidence, bool) {
	for _, c := range v.l.Commands {
		if strings.Contains(c.Text, "scontrol suspend") || strings.Contains(c.Text, "kill -STOP") || strings.Contains(c.Text, "kill -SIGSTOP") || strings.Contains(c.Text, "kill -19 ") {
			return v.evidence(c.Place, c.Text), true
		}
	}
	return fact.Evidence{}, false
}

func workText(w fact.Work) string {
	var b strings.Builder
	b.WriteString("Watchdog caught collective operation timeout: WorkNCCL(")
	if w.Seq >= 0 {
		b.WriteString("SeqNum=" + strconv.FormatInt(w.Seq, 10) + ", ")
	}
	b.WriteString("OpType=" + w.Op)
	if w.NumelIn >= 0 {
		b.WriteString(", NumelIn=" + strconv.FormatInt(w.NumelIn, 10) + ", NumelOut=" + strconv.FormatInt(w.NumelOut, 10))
	}
	b.WriteString(", Timeout(ms)=" + strconv.FormatInt(w.TimeoutMS, 10) + ") ran for " + strconv.FormatInt(w.RanMS, 10) + " milliseconds")
	return b.String()
}

// differ reports that ranks of one process group wait in different collectives.
// Last enqueued numbers differ in every healthy run and prove nothing.
func differ(rows []fact.Work) (bool, string) {
	groups := map[string][]fact.Work{}
	for _, w := range rows {
		groups[w.PG] = append(groups[w.PG], w)
	}
	for _, g := range groups {
		bySeq := map[int64]fact.Work{}
		for _, w := range g {
			if w.Seq < 0 {
				continue
			}
			o, ok := bySeq[w.Seq]
			if ok && o.Op != w.Op {
				return true, "op"
			}
			// scatters and gathers are uneven by design; reductions and broadcasts are not
			if ok && o.NumelIn >= 0 && w.NumelIn >= 0 && o.NumelIn != w.NumelIn && (evenOp(w.Op) || wholeGroup(g)) {
				return true, "size"
			}
			if !ok {
				bySeq[w.Seq] = w
			}
		}
		if len(bySeq) > 1 {
			// ranks wait in different operations: the ones behind hold the others up
			var seqs []int64
			for s := range bySeq {
				seqs = append(seqs, s)
			}
			sort.Slice(seqs, func(i, j int) bool { return seqs[i] < seqs[j] })
			a, b := bySeq[seqs[0]], bySeq[seqs[len(seqs)-1]]
			if a.Op != b.Op || a.NumelIn != b.NumelIn {
				return true, "sequence"
			}
		}
		// old torch gives no numbers: different operations in flight say the same
		if len(bySeq) == 0 && len(g) > 1 {
			for _, w := range g {
				if w.Op != g[0].Op {
					return true, "op"
				}
				if w.NumelIn >= 0 && g[0].NumelIn >= 0 && w.NumelIn != g[0].NumelIn && evenOp(w.Op) {
					return true, "size"
				}
			}
		}
	}
	return false, ""
}

// wholeGroup reports gathers into one tensor whose output holds exactly as many
// parts as ranks speak: they are one group, and there all parts have one size.
// Of ranks of several groups the sizes may differ.
func wholeGroup(g []fact.Work) bool {
	for _, w := range g {
		if strings.TrimPrefix(w.Op, "_") != "ALLGATHER_BASE" || w.NumelIn <= 0 || w.NumelOut != w.NumelIn*int64(len(g)) {
			return false
		}
	}
	return len(g) > 2
}

func evenOp(op string) bool {
	switch strings.TrimPrefix(op, "_") {
	case "ALLREDUCE", "BROADCAST", "REDUCE", "ALLREDUCE_COALESCED", "BROADCAST_OOP", "REDUCE_OOP", "BARRIER":
		return true
	}
	return false
}

// slowRank reports a rank that has no timeout and that worked alone: it prints
// progress around the time when the others gave up, and they wait in a barrier.
func (v *view) slowRank(rows []fact.Work) (cand, bool) {
	have := map[int]bool{}
	barrier := true
	first := rows[0]
	for _, w := range rows {
		have[w.Rank] = true
		if !(w.NumelIn == 1 || w.NumelIn < 0 || w.Op == "BARRIER") {
			barrier = false
		}
		if before(w.Place, first.Place) {
			first = w
		}
	}
	slow, ok := -1, false
	if r, one := v.missingWorkRank(); one {
		slow, ok = r, true
	} else if !have[0] && len(have) > 0 {
		slow, ok = 0, true
	}
	if !ok {
		return cand{}, false
	}
	for _, s := range v.l.Streams {
		// its own progress, or unlabelled progress that can only be its
		if s.Rank != slow && s.Rank >= 0 || s.Lines < 3 || have[s.Rank] && s.Rank >= 0 {
			continue
		}
		if s.Last.File == first.File && s.Last.Line < first.Line-200 || s.Last.TK != 0 && s.Last.TK == first.TK && first.Time-s.Last.Time > 10*60*1000 && s.Last.Line < first.Line {
			continue
		}
		if !aloneWork(s.Text) && !unfinished(s.Text, first.TimeoutMS) || !barrier && s.Rank != slow {
			continue // without a barrier, only progress that carries the rank's name tells
		}
		c := cand{id: "run-rank-slow", cert: diag.Likely, tier: 1, over: []string{"run-collective-hang", "job-cancelled", "run-exception"}, args: diag.Args{"rank": itoa(slow)}}
		c.ev = append(c.ev, v.evidence(s.Last, s.Text))
		w := v.where(s.Last)
		r := slow
		w.Rank = &r
		c.where = append(c.where, w)
		return c, true
	}
	if c, ok := v.busyThroughWait(slow, first); ok {
		return c, true
	}
	return v.busyStack(slow, first)
}

// busyStack reports a rank that said in the time of the wait that it begins work
// of its own, and a stack that shows such work outside of torch.distributed.
func (v *view) busyStack(rank int, first fact.Work) (cand, bool) {
	var begun fact.Said
	for _, s := range v.facts(kind.OwnWork) {
		if v.rankOf(s.Place) == rank && s.File == first.File && (s.TK == 0 || s.TK != first.TK || s.Time >= first.Time-first.TimeoutMS-120000) && s.Line < first.Line {
			begun = s
		}
	}
	if begun.Line == 0 || v.excOfRank(rank) {
		return cand{}, false
	}
	var order []string
	frames := map[string][]fact.Said{}
	for _, s := range v.facts(kind.Stack) {
		if frames[s.Name] == nil {
			order = append(order, s.Name)
		}
		frames[s.Name] = append(frames[s.Name], s)
	}
	for _, p := range order {
		var work fact.Said
		for _, s := range frames[p] {
			if strings.Contains(s.Aux, "distributed") || strings.Contains(s.Aux, "torch/cuda/") {
				work = fact.Said{}
				break
			}
			if work.Line == 0 && aloneWork(s.V) {
				work = s
			}
		}
		if work.Line == 0 {
			continue
		}
		c := cand{id: "run-rank-slow", cert: diag.Likely, tier: 1, over: []string{"run-collective-hang", "job-cancelled", "run-exception"}, args: diag.Args{"rank": itoa(rank)}}
		c.ev = append(c.ev, v.evidence(begun.Place, begun.Text), v.evidence(work.Place, work.Text))
		w := v.where(begun.Place)
		w.Rank = &rank
		c.where = append(c.where, w)
		return c, true
	}
	return cand{}, false
}

// busyThroughWait reports that a rank tells of work of its own all through the
// time in which the others wait for it: in the second half of the wait, or on
// both sides of the line that ends it where no stamps tell.
func (v *view) busyThroughWait(rank int, first fact.Work) (cand, bool) {
	var lines []fact.Said
	during := false
	for _, s := range v.facts(kind.OwnWork) {
		if v.rankOf(s.Place) != rank {
			continue
		}
		switch {
		case s.TK != 0 && s.TK == first.TK:
			if s.Time < first.Time-first.TimeoutMS-60000 {
				continue // before the wait
			}
			during = during || s.Time > first.Time-first.TimeoutMS/2
		case s.File != first.File:
			continue
		default:
			during = during || s.Line > first.Line
		}
		lines = append(lines, s)
	}
	if len(lines) < 2 || !during || v.excOfRank(rank) {
		return cand{}, false
	}
	c := cand{id: "run-rank-slow", cert: diag.Likely, tier: 1, over: []string{"run-collective-hang", "job-cancelled", "run-exception"}, args: diag.Args{"rank": itoa(rank)}}
	for _, s := range []fact.Said{lines[0], lines[len(lines)-1]} {
		c.ev = append(c.ev, v.evidence(s.Place, s.Text))
	}
	w := v.where(lines[len(lines)-1].Place)
	w.Rank = &rank
	c.where = append(c.where, w)
	return c, true
}

// excOfRank reports an exception of a rank that is no echo of others.
func (v *view) excOfRank(rank int) bool {
	for _, x := range v.exc {
		if base := x.Type[strings.LastIndexByte(x.Type, '.')+1:]; v.rankOf(x.Place) == rank && !echoTypes[base] && !echoText.MatchString(x.Message) {
			return true
		}
	}
	return false
}

// aloneWork reports whether a progress line is of preparation rather than of
// training, which no rank does alone.
func aloneWork(t string) bool {
	l := strings.ToLower(t)
	for _, w := range []string{"token", "map", "prepar", "extract", "saving", "save", "writing", "upload", "download", "generat", "split", "cache", "caching", "index", "build", "load", "copy", "filter", "preprocess", "convert", "evaluat", "valid", "test", "pack", "stag", "shard", "decod", "merg", "examples"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}
