package explain

import (
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	jobNumber = lazyre.New(`^[0-9]+(_[0-9]+)?$`)
	logName   = lazyre.New(`^slurm-([0-9]+(?:_[0-9]+)?)\.(?:out|err|log)(?:\.(?:gz|xz|zst|bz2))?$`)
)

// JobNumber returns the number of the job that the input is about, "" where it
// names none or several: what Slurm says in the log of the job comes first, then
// the name that sbatch gives a log, then variables and listings.
func JobNumber(l *fact.Logs) string {
	if l.Job != nil {
		return l.Job.ID
	}
	said, named := saidJobs(l), []string(nil)
	listed := shownJobs(l)
	for _, f := range l.Files {
		if m := logName.FindStringSubmatch(path.Base(f.Path)); m != nil {
			named = addJob(named, m[1])
		}
	}
	for _, s := range l.Listing.All(kind.Sacct) {
		id, _, _ := strings.Cut(s.Name, ".")
		listed = addJob(listed, id)
	}
	for _, ids := range [][]string{said, named, listed} {
		if len(ids) > 0 {
			if len(ids) == 1 {
				return ids[0]
			}
			return ""
		}
	}
	return ""
}

func addJob(to []string, id string) []string {
	if jobNumber.MatchString(id) && !slices.Contains(to, id) {
		return append(to, id)
	}
	return to
}

// saidJobs are the jobs that Slurm's own messages name.
func saidJobs(l *fact.Logs) (ids []string) {
	for i := range l.Events {
		if e := &l.Events[i]; !e.Quoted && strings.HasPrefix(e.Rule, "log-s") {
			ids = addJob(ids, e.Args["job"])
		}
	}
	return ids
}

// shownJobs are the jobs that variables and submissions name.
func shownJobs(l *fact.Logs) []string {
	ids := envJobs(l)
	for _, s := range l.Listing.All(kind.Submitted) {
		ids = addJob(ids, s.V)
	}
	return ids
}

// envJobs are the jobs that variables name.
func envJobs(l *fact.Logs) (ids []string) {
	for _, s := range l.Listing.All(kind.Env) {
		if s.Name == "SLURM_JOB_ID" || s.Name == "SLURM_JOBID" {
			ids = addJob(ids, s.V)
		}
	}
	return ids
}

// ScriptPath returns the path of the batch script among the input, "" where
// there is none, or several.
func ScriptPath(l *fact.Logs) string {
	found := ""
	for _, f := range l.Files {
		if f.Kind != fact.KindScript || f.Path == "-" {
			continue
		}
		if found != "" {
			return ""
		}
		found = f.Path
	}
	return found
}
