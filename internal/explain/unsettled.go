package explain

import (
	"maps"
	"slices"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// How many lines may follow a message at the end of a log that nothing shows to
// have been survived.
const (
	afterCause  = 40
	afterEither = 15
)

// unsettled returns messages that name a cause, or may, and stand at the end of a
// log in which neither training nor success follows: alone they prove nothing, but
// a log that ends so is no clean bill.
func (v *view) unsettled() []*fact.Event {
	good := map[int]int{} // the last line of each file that speaks of success or progress
	for _, s := range append(v.facts("success"), v.facts(kind.Submitted)...) {
		good[s.File] = max(good[s.File], s.Line)
	}
	for _, s := range v.l.Streams {
		good[s.File] = max(good[s.File], s.Last.Line)
	}
	var out []*fact.Event
	for _, sig := range slices.Sorted(maps.Keys(v.bySig)) { // two on one line always in the same order
		for _, e := range v.bySig[sig] {
			room := afterEither
			switch e.Role {
			case "cause":
				room = afterCause
			case "either":
			default:
				continue
			}
			if e.After == 0 && e.Line > good[e.File] && v.l.Files[e.File].Lines-e.Line <= room {
				out = append(out, e)
			}
		}
	}
	v.sortEvents(out)
	return uniqLines(out)
}
