package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// unfinished is a progress bar of tqdm.
var unfinished = lazyre.New(`\d%\|[^|]*\|\s*(\d+)/(\d+)\s*\[`)

// cutOff returns the progress bar in the middle of which a log ends, nil when
// none does so or the job is known to have ended or to run: such a log says
// nothing of a failure, and nothing of success either.
func cutOff(l *fact.Logs) *fact.Stream {
	if slices.ContainsFunc(l.Listing.Facts, func(s fact.Said) bool {
		return s.Kind == "success" || s.Kind == kind.Sacct && (strings.HasPrefix(s.V, "COMPLETED") || strings.HasPrefix(s.V, "RUNNING"))
	}) {
		return nil
	}
	for i := range l.Streams {
		s := &l.Streams[i]
		if s.File >= len(l.Files) || s.Last.Line < l.Files[s.File].Lines-1 {
			continue
		}
		m := unfinished.FindStringSubmatch(s.Text)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		of, err2 := strconv.Atoi(m[2])
		if err == nil && err2 == nil && n < of {
			return s
		}
	}
	return nil
}
