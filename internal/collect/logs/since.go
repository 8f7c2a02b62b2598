package logs

import (
	"fmt"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// dropBefore leaves out what happened before a time: events, exceptions, work
// that timed out, ends of processes and what is said about them. What listings
// say of the environment stays. The time is of the clock that wrote the logs:
// their zones are not compared. What has no date stays, and a problem says so.
func dropBefore(out *fact.Logs, from time.Time) {
	undated := 0
	old := func(p fact.Place) bool {
		switch p.TK {
		case fact.TimeFull:
			return p.Time < from.UnixMilli()
		case fact.TimeYearless:
			return inYear(p.Time, from).Before(from)
		}
		undated++
		return false
	}
	at := make([]int, len(out.Events)) // where an event went, -1: left out
	ev := out.Events[:0]
	for i, e := range out.Events {
		at[i] = -1
		if !old(e.Place) {
			at[i] = len(ev)
			ev = append(ev, e)
		}
	}
	out.Events = ev
	ex := out.Exceptions[:0]
	for _, e := range out.Exceptions {
		if old(e.Place) {
			continue
		}
		sigs := e.Sigs[:0]
		for _, s := range e.Sigs {
			if s < len(at) && at[s] >= 0 {
				sigs = append(sigs, at[s])
			}
		}
		e.Sigs = sigs
		ex = append(ex, e)
	}
	out.Exceptions = ex
	out.Works = keep(out.Works, func(w fact.Work) bool { return !old(w.Place) })
	out.Exits = keep(out.Exits, func(x fact.Exit) bool { return !old(x.Place) })
	n := undated // of lines that report failures
	out.Streams = keep(out.Streams, func(s fact.Stream) bool { return !old(s.Last) })
	out.Listing.Facts = keep(out.Listing.Facts, func(s fact.Said) bool {
		switch s.Kind {
		case "success", "bad-exit", "restart", "silence":
			return !old(s.Place)
		}
		return true
	})
	if n > 0 {
		out.Problems = append(out.Problems, fact.Problem{What: "--since", Why: fmt.Sprintf("events that carry no date and are kept: %d", n)})
	}
}

func keep[T any](in []T, f func(T) bool) []T {
	out := in[:0]
	for _, x := range in {
		if f(x) {
			out = append(out, x)
		}
	}
	return out
}

// inYear gives a stamp without a year the one that brings it closest to a time.
func inYear(ms int64, near time.Time) time.Time {
	t := time.UnixMilli(ms).UTC()
	var best time.Time
	for y := near.Year() - 1; y <= near.Year()+1; y++ {
		c := time.Date(y, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		if best.IsZero() || c.Sub(near).Abs() < best.Sub(near).Abs() {
			best = c
		}
	}
	return best
}
