package explain

import (
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// ofOwnJob returns the rows of accounting that are about the job whose log was
// given. A history lists others too, which ended in other ways; where nothing
// tells which one is meant, all rows stay.
func ofOwnJob(l *fact.Logs) []fact.Said {
	rows := l.Listing.All(kind.Sacct)
	own := map[string]bool{}
	others := false
	for _, s := range rows {
		if id := jobOf(s.Name); id == "" {
			continue
		} else if namesJob(l, id) {
			own[id] = true
		} else {
			others = true
		}
	}
	if len(own) != 1 || !others {
		return rows
	}
	var out []fact.Said
	for _, s := range rows {
		if id := jobOf(s.Name); id == "" || own[id] {
			out = append(out, s)
		}
	}
	return out
}

// jobOf is the number of the job that a row of accounting is about: without the
// step and the index of an array.
func jobOf(row string) string {
	id, _, _ := strings.Cut(row, ".")
	id, _, _ = strings.Cut(id, "_")
	id, _, _ = strings.Cut(id, "+")
	if !isNumber(id) {
		return ""
	}
	return id
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// namesJob reports whether a log names a job: in its file's name, or as Slurm does.
func namesJob(l *fact.Logs, id string) bool {
	for _, f := range l.Files {
		for _, w := range strings.FieldsFunc(path.Base(f.Path), func(r rune) bool { return r < '0' || r > '9' }) {
			if w == id {
				return true
			}
		}
	}
	return slices.ContainsFunc(append(saidJobs(l), shownJobs(l)...), func(other string) bool { return jobOf(other) == id })
}

// asksJob matches a command that asks Slurm about one job.
var asksJob = lazyre.New(`\b(?:scontrol\s.*\bjob|sacct\s.*-j|squeue\s.*-j|seff)[ =]?\s*(\d+)`)

// aboutOwnJob leaves out what a command shows that asks about another job than the
// one that the log is of.
func (v *view) aboutOwnJob(rows []fact.Said) []fact.Said {
	if !v.ofJob() {
		return rows
	}
	own := jobOf(JobNumber(v.l))
	var out []fact.Said
	for _, s := range rows {
		asked := ""
		for _, c := range v.l.Commands {
			if c.File == s.File && c.Line < s.Line && s.Line-c.Line <= 60 {
				if asked = ""; asksJob.MatchString(c.Text) {
					asked = asksJob.FindStringSubmatch(c.Text)[1]
				}
			}
		}
		if asked == "" || asked == own || namesJob(v.l, asked) {
			out = append(out, s)
		}
	}
	return out
}

// ofJob reports that a log was given which a job of Slurm wrote, as its name or
// what it says tells.
func (v *view) ofJob() bool {
	return JobNumber(v.l) != "" || slices.ContainsFunc(v.l.Files, func(f fact.LogFile) bool { return numberedLog.MatchString(f.Path) })
}

// numberedLog matches the name of a log that holds the number of its job.
var numberedLog = lazyre.New(`\d{3,}[^/]*\.(?:out|err|log)$`)
