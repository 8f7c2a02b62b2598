package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// jobNeeds says what would decide about a job of which Slurm was asked: not what
// sacct has said already, and what its output lacks.
func (v *view) jobNeeds(f *diag.Finding) {
	j := v.l.Job
	if len(j.Steps) > 0 {
		f.Needs = slices.DeleteFunc(slices.Clone(f.Needs), func(n string) bool { return strings.HasPrefix(n, "sacct -j ") })
	}
	if fact.Phase(j.State.Or("")) != fact.JobEnded || slices.ContainsFunc(j.Outputs, func(o fact.JobOutput) bool { return o.Unread == "" && o.Size > o.Before }) {
		return
	}
	why := ""
	for _, o := range j.Outputs {
		switch {
		case o.Unread == fact.OutDevice:
			why = "a run whose output goes to a file, such as --output=slurm-%j.out: that of this one went to a device"
		case why != "":
		case o.Unread == fact.OutDenied, o.Unread == fact.OutForeign:
			why = "the output of the job, for which its owner has to run ncclinic job"
		case o.Unread == "" && j.Exit.Or(fact.ExitStatus{}).Code != 0:
			why = "a run with \"set -x\" as the second line of the script: the last command that it shows is the one that failed"
		}
	}
	if why == "" {
		return
	}
	f.Needs = append([]string{why}, slices.DeleteFunc(slices.Clone(f.Needs), func(n string) bool { return n == everyStderr })...)
}

// everyStderr is what decides most failures of which nothing is known.
const everyStderr = "the standard error of every rank"
