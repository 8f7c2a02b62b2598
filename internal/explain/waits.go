package explain

import (
	"strconv"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// waitedMS are the lengths that messages of stores and barriers give.
var (
	waitedMS = lazyre.New(`(?:wait timeout after |Timed out waiting )(\d+) ?ms`)
	waitedHM = lazyre.New(`timeout=(\d+):(\d\d):(\d\d)`)
)

// storeWaits returns the ranks that gave up waiting for another one in a store
// or in a barrier of gloo, in the form of watchdog lines: what they waited for
// is a barrier.
func (v *view) storeWaits() []fact.Work {
	var out []fact.Work
	seen := map[int]bool{}
	add := func(p fact.Place, text string) {
		r := v.rankOf(p)
		if r < 0 || seen[r] {
			return
		}
		var ms int64
		if m := waitedMS.FindStringSubmatch(text); m != nil {
			ms, _ = strconv.ParseInt(m[1], 10, 64)
		} else if m := waitedHM.FindStringSubmatch(text); m != nil {
			ms = int64(atoi(m[1])*3600+atoi(m[2])*60+atoi(m[3])) * 1000
		} else {
			return
		}
		seen[r] = true
		p.Rank = r
		out = append(out, fact.Work{Place: p, Seq: -1, NumelIn: -1, NumelOut: -1, Enqueued: -1, Completed: -1, Op: "BARRIER", TimeoutMS: ms, RanMS: ms})
	}
	for i := range v.l.Exceptions {
		if x := &v.l.Exceptions[i]; !x.Quoted {
			add(x.Place, x.Message)
		}
	}
	for _, e := range v.peek("S020", "S044", "S051", "S075", "log-gloo-timed-out-waiting") {
		add(e.Place, e.Text)
	}
	return out
}

// lateRank judges ranks that gave up in a store or barrier while another one
// tells of work of its own all the time, and after it.
func (v *view) lateRank() bool {
	rows := v.storeWaits()
	if len(rows) == 0 || len(v.l.Works) > 0 {
		return false
	}
	end := rows[0]
	waits := map[int]bool{}
	for _, w := range rows {
		waits[w.Rank] = true
		if before(w.Place, end.Place) {
			end = w
		}
	}
	slow := func(rank int, ev []fact.Evidence, at fact.Place) {
		c := cand{id: "run-rank-slow", cert: diag.Likely, tier: 1, at: end.Place, args: diag.Args{"rank": itoa(rank)},
			over: []string{"run-collective-hang", "job-cancelled", "run-exception", "rdzv-too-few-ranks", "rdzv-unreachable"}}
		c.ev = append([]fact.Evidence{v.evidence(end.Place, "rank "+itoa(end.Rank)+": waited "+itoa(int(end.TimeoutMS/1000))+" s")}, ev...)
		w := v.where(at)
		w.Rank = &rank
		c.where = append(c.where, w)
		v.add(c)
	}
	for _, s := range v.l.Streams {
		if s.Rank < 0 || waits[s.Rank] || s.Lines < 3 || !aloneWork(s.Text) || v.excOfRank(s.Rank) || !through(s, end) {
			continue
		}
		slow(s.Rank, []fact.Evidence{v.evidence(s.Last, s.Text)}, s.Last)
		return true
	}
	if r, ok := v.waitedFor(); ok && !waits[r] && !v.excOfRank(r) {
		for _, s := range v.l.Streams {
			if s.Rank < 0 && s.Lines >= 3 && aloneWork(s.Text) && s.Last.File == end.File && s.Last.Line < end.Line && unfinished(s.Text, end.TimeoutMS) {
				slow(r, []fact.Evidence{v.evidence(s.Last, s.Text)}, s.Last)
				return true
			}
		}
	}
	seen := map[int]bool{}
	for _, s := range v.facts(kind.OwnWork) {
		r := v.rankOf(s.Place)
		if r < 0 || waits[r] || seen[r] {
			continue
		}
		seen[r] = true
		if c, ok := v.busyThroughWait(r, end); ok {
			slow(r, c.ev, s.Place)
			return true
		}
	}
	return false
}

// through reports that progress went on behind the end of a wait.
func through(s fact.Stream, end fact.Work) bool {
	if s.Last.TK != 0 && s.Last.TK == end.TK {
		return s.Last.Time >= end.Time-end.TimeoutMS/10 && s.First.Time < end.Time
	}
	return s.Last.File == end.File && s.Last.Line > end.Line
}

var (
	uniqueIDFrom = lazyre.New(`retrieving ncclUniqueId from \[(\d+)\]`)
	barElapsed   = lazyre.New(`(\d+)%\|.*\[(?:(\d+):)?(\d+):(\d\d)<`)
)

// waitedFor returns the rank that others say they wait for.
func (v *view) waitedFor() (int, bool) {
	for _, e := range v.peek("S044") {
		if m := uniqueIDFrom.FindStringSubmatch(e.Text); m != nil {
			return atoi(m[1]), true
		}
	}
	return 0, false
}

// unfinished reports that a progress bar stands below 100 % after at least half
// of the time that others waited: whoever draws it was busy all along.
func unfinished(bar string, waitMS int64) bool {
	m := barElapsed.FindStringSubmatch(bar)
	if m == nil || atoi(m[1]) >= 100 {
		return false
	}
	return int64(atoi(m[2])*3600+atoi(m[3])*60+atoi(m[4]))*1000 >= waitMS/2
}
