package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// everyStderr is what decides most failures of which nothing is known.
const everyStderr = "the standard error of every rank"

// wouldDecide says what would decide about a job of which Slurm was asked: not
// what sacct has said already, and what its output lacks.
func (v *view) wouldDecide(f *diag.Finding) {
	j := v.l.Job
	if len(j.Steps) > 0 {
		f.Needs = slices.DeleteFunc(slices.Clone(f.Needs), func(n string) bool { return strings.HasPrefix(n, "sacct -j ") })
	}
	for _, lacks := range noOutput(j) {
		f.Needs = slices.DeleteFunc(slices.Clone(f.Needs), func(n string) bool { return n == everyStderr })
		f.Needs = slices.Insert(f.Needs, 0, lacks)
	}
}

// noOutput says how there would be output of a job that ended without any that
// could be read.
func noOutput(j *fact.Job) []string {
	if fact.Phase(j.State.Or("")) != fact.JobEnded || slices.ContainsFunc(j.Outputs, func(o fact.JobOutput) bool { return o.Unread == "" && o.Size > o.Before }) {
		return nil
	}
	has := func(why ...string) bool {
		return slices.ContainsFunc(j.Outputs, func(o fact.JobOutput) bool { return slices.Contains(why, o.Unread) })
	}
	for _, c := range []struct {
		is    bool
		needs []string
	}{
		{is: has(fact.OutDevice), needs: []string{"a run whose output goes to a file, such as --output=slurm-%j.out: that of this one went to a device"}},
		{is: has(fact.OutDenied, fact.OutForeign), needs: []string{"the output of the job, from somebody who may read it (its owner: ncclinic job)"}},
		{is: has("") && j.Exit.Or(fact.ExitStatus{}).Code != 0, needs: []string{"a run with \"set -x\" as the second line of the script: the last command that it shows is the one that failed"}},
	} {
		if c.is {
			return c.needs
		}
	}
	return nil
}
