package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Progress bars of tqdm: the counts where the whole is known, the share where the
// bar itself is cut, and the count alone where nobody told tqdm the whole.
var (
	barCounts = lazyre.New(`\d%\|[^|]*\|\s*(\d+)/(\d+)\s*\[`)
	barShare  = lazyre.New(`(?:^|\s)(\d{1,3})%\|[^|]*(?:\|\s*[\d./]*)?$`)
	barAlone  = lazyre.New(`(?:^|\s)\d+[A-Za-z]{1,12} \[[\d:]+, `)
)

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
		if s.File >= len(l.Files) {
			continue
		}
		f := &l.Files[s.File]
		if s.Last.Line >= f.Said-1 && unfinished(s.Text, f.Open && s.Last.Line == f.Said) {
			return s
		}
	}
	return nil
}

// unfinished reports a progress bar that is not at its end. open says that nothing
// follows it, not even the line end that tqdm writes when it closes a bar.
func unfinished(bar string, open bool) bool {
	if m := barCounts.FindStringSubmatch(bar); m != nil {
		n, err := strconv.Atoi(m[1])
		of, err2 := strconv.Atoi(m[2])
		return err == nil && err2 == nil && n < of
	}
	if m := barShare.FindStringSubmatch(bar); m != nil && open {
		n, err := strconv.Atoi(m[1])
		return err == nil && n < 100
	}
	return open && barAlone.MatchString(bar)
}
