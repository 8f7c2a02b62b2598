package logs

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// mark is how much was known when a run of pytest began.
type mark struct{ events, exceptions, works, exits int }

// suitePassed is the last line of a run of pytest in which nothing failed.
var suitePassed = lazyre.New(`^=+ (?:\d+ (?:deselected|skipped|x?passed|xfailed|warnings?|rerun)(?:, )?)+ in [\d.]+s.* ?=+$`)

// suite follows runs of pytest. Where all tests passed, the failures between
// the first and the last line are the tests' own: they say nothing of this run.
func (r *reader) suite(msg string, pl fact.Place) bool {
	if !strings.HasPrefix(msg, "====") || len(msg) > 300 {
		return false
	}
	if strings.Contains(msg, " test session starts ") {
		r.tests = &mark{len(r.out.Events), len(r.out.Exceptions), len(r.out.Works), len(r.out.Exits)}
		return true
	}
	if r.tests == nil || !strings.Contains(msg, " passed") || !suitePassed.MatchString(msg) {
		return false
	}
	for i := r.tests.events; i < len(r.out.Events); i++ {
		r.out.Events[i].Quoted = true
	}
	for i := r.tests.exceptions; i < len(r.out.Exceptions); i++ {
		r.out.Exceptions[i].Quoted = true
	}
	r.out.Works, r.out.Exits = r.out.Works[:min(r.tests.works, len(r.out.Works))], r.out.Exits[:min(r.tests.exits, len(r.out.Exits))]
	r.tests = nil
	r.say("success", "strong", fact.Clip(msg, 160), "", pl)
	return true
}
