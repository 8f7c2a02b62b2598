package slurm

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// OutsideError says that a command of Slurm runs and reaches no cluster: it
// finds no configuration, or nobody answers where that points.
type OutsideError struct {
	Tool string
	Why  string // in Slurm's own words, one line
}

func (e *OutsideError) Error() string { return e.Tool + ": " + e.Why }

// unreached are Slurm's words for a host without a cluster.
// The first three are those of Debian's Slurm 22.05 without a slurm.conf, seen 2026-11-30.
var unreached = lazyre.New(`(?i)could not establish a configuration source|failed to fetch config|DNS SRV lookup failed|unable to contact slurm controller|unable to open[^\n]*slurm\.conf|lookup failure[^\n]*slurm`)

// Outside reports whether a command's error output says that there is no
// cluster here, with the decisive words of it.
func Outside(tool, stderr string) (*OutsideError, bool) {
	if !unreached.MatchString(stderr) {
		return nil, false
	}
	return &OutsideError{Tool: tool, Why: decisive(tool, stderr)}, true
}

// decisive is the last thing that a command said, its fatal error if it said
// one, without the command's name.
func decisive(tool, stderr string) string {
	s := strings.Join(strings.Fields(stderr), " ")
	for _, mark := range []string{tool + ": fatal: ", tool + ": error: "} {
		if i := strings.LastIndex(s, mark); i >= 0 {
			s = s[i+len(mark):]
			break
		}
	}
	if len(s) > 300 { // at a blank, not inside of a word
		s = fact.Clip(s, 300)
		if i := strings.LastIndexByte(s, ' '); i > 0 {
			s = s[:i] + " …"
		}
	}
	return s
}

// failed is the error of a command that ended with a status.
func failed(tool string, stderr []byte) error {
	if o, ok := Outside(tool, string(stderr)); ok {
		return o
	}
	return &saidError{tool, decisive(tool, string(stderr))}
}

// saidError is what a command said of its failure.
type saidError struct{ tool, why string }

func (e *saidError) Error() string { return e.tool + ": " + e.why }
