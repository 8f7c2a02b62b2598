package slurmjob

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// delimiter separates the columns. What sacct is told to put there is longer, see
// newMark. JobName is the last column all the same.
const delimiter = "\x1f"

// newMark is a delimiter that nobody can know beforehand: with another one the
// name of a job could make rows.
func newMark() string { return delimiter + rand.Text()[:16] + delimiter }

// plainColumns replaces the mark by the delimiter, which nothing else is then.
func plainColumns(text, mark string) string {
	cols := strings.Split(text, mark)
	for i := range cols {
		cols[i] = strings.ReplaceAll(cols[i], delimiter, " ")
	}
	return strings.Join(cols, delimiter)
}

// columns are asked for in this order, those that this release of sacct has.
var columns = []string{"JobID", "JobIDRaw", "State", "ExitCode", "DerivedExitCode", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw",
	"NNodes", "NTasks", "NodeList", "ReqMem", "MaxRSS", "MaxRSSNode", "MaxRSSTask", "ReqTRES", "AllocTRES", "User", "UID", "Partition", "QOS",
	"FailedNode", "StdOut", "StdErr", "WorkDir", "SubmitLine", "JobName"}

// lateColumns came after 20.11: without a list of what sacct has they are not asked for.
var lateColumns = []string{"FailedNode", "StdOut", "StdErr", "SubmitLine"}

// columnsOf picks the columns that "sacct --helpformat" lists; when that said
// nothing, those that every release has.
func columnsOf(helpformat string) []string {
	have := map[string]bool{}
	for _, w := range strings.Fields(helpformat) {
		have[strings.ToLower(w)] = true
	}
	var out []string
	for _, c := range columns {
		if have["jobid"] && have[strings.ToLower(c)] || !have["jobid"] && !slices.Contains(lateColumns, c) {
			out = append(out, c)
		}
	}
	return out
}

// row is one line of sacct by column.
type row map[string]string

var (
	rowStart = lazyre.New(`^\d{1,10}(?:_\d{1,10}|_\[[\d,:%-]+\]|\+\d{1,4})?(?:\.[\w+]{1,40})?\x1f`) // the delimiter
	rowID    = lazyre.New(`^(\d{1,10})(?:_(\d{1,10}|\[[^\]]*\])|\+(\d{1,4}))?(?:\.([\w+]{1,40}))?$`)
)

// maxRows bounds what is kept of big arrays.
const maxRows = 200000

// parseRows reads what sacct printed with a header. Anything before the header
// is what a site's wrapper says; names and paths may hold line ends.
func parseRows(text string) (rows []row, err error) {
	var head []string
	var cur string
	broken := 0
	flush := func() {
		if cur == "" {
			return
		}
		f := strings.Split(cur, delimiter)
		cur = ""
		if len(f) < len(head) {
			broken++
			return
		}
		if len(f) > len(head) { // the last column is free text
			f[len(head)-1] = strings.Join(f[len(head)-1:], delimiter)
		}
		r := row{}
		for i, h := range head {
			r[h] = f[i]
		}
		rows = append(rows, r)
	}
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSuffix(l, "\r")
		if head == nil {
			if strings.HasPrefix(l, "JobID"+delimiter) {
				head = strings.Split(l, delimiter)
			}
			continue
		}
		// A row begins with an id once the one before has all of its columns.
		if rowStart.MatchString(l) && (cur == "" || strings.Count(cur, delimiter) >= len(head)-1) {
			flush()
			if len(rows) >= maxRows {
				return rows, fmt.Errorf("more than %d rows", maxRows)
			}
			cur = l
			continue
		}
		if cur != "" && len(cur) < 1<<20 {
			cur += "\n" + l
		}
	}
	cur = strings.TrimRight(cur, "\n")
	flush()
	switch {
	case head == nil && strings.TrimSpace(text) != "":
		return nil, fmt.Errorf("what it printed has no header: %q", fact.Clip(strings.TrimSpace(text), 200))
	case broken > 0:
		return rows, fmt.Errorf("%d rows could not be read", broken)
	}
	return rows, nil
}

// record is one run of one job with its steps.
type record struct {
	id    ID
	shown string // as sacct writes it
	job   row
	steps []row
}

// records groups rows: steps follow the job that they belong to.
func records(rows []row) []record {
	var out []record
	for _, r := range rows {
		m := rowID.FindStringSubmatch(r["JobID"])
		if m == nil {
			continue
		}
		if m[4] == "" {
			out = append(out, record{id: ID{Job: m[1], Task: m[2], Comp: m[3]}, shown: r["JobID"], job: r})
			continue
		}
		base := r["JobID"][:len(r["JobID"])-len(m[4])-1]
		for i := len(out) - 1; i >= 0; i-- {
			if out[i].shown == base {
				if len(out[i].steps) < maxSteps {
					out[i].steps = append(out[i].steps, r)
				}
				break
			}
		}
	}
	return out
}

// maxSteps bounds the steps of one job that are looked at.
const maxSteps = 5000

// fill takes over what sacct says.
func (rec *record) fill(j *fact.Job, cmd string) {
	r := rec.job
	at := fact.Command(cmd, rowText(rec.shown, r))
	str := func(dst *fact.Val[string], col string) {
		if v, ok := said(r[col]); ok {
			*dst = fact.Of(v, at)
		}
	}
	j.ID, j.Raw = rec.shown, r["JobIDRaw"]
	if rec.id.Task != "" {
		j.Array, j.Task = rec.id.Job, rec.id.Task
	}
	state, by := fact.StateWord(r["State"])
	if state != "" {
		j.State = fact.Of(state, at)
	}
	if by != "" {
		j.CancelledBy = fact.Of(by, at)
	}
	str(&j.Name, "JobName")
	str(&j.User, "User")
	str(&j.Partition, "Partition")
	str(&j.QOS, "QOS")
	str(&j.Submit, "Submit")
	str(&j.Start, "Start")
	str(&j.End, "End")
	str(&j.Nodes, "NodeList")
	str(&j.FailedNode, "FailedNode")
	str(&j.ReqTRES, "ReqTRES")
	str(&j.AllocTRES, "AllocTRES")
	str(&j.WorkDir, "WorkDir")
	str(&j.SubmitLine, "SubmitLine")
	str(&j.StdOut, "StdOut")
	str(&j.StdErr, "StdErr")
	if n, err := strconv.Atoi(r["UID"]); err == nil {
		j.UID = fact.Of(n, at)
	}
	if n, err := strconv.Atoi(r["NNodes"]); err == nil {
		j.NodeCount = fact.Of(n, at)
	}
	if e, ok := exitStatus(r["ExitCode"]); ok {
		j.Exit = fact.Of(e, at)
	}
	if e, ok := exitStatus(r["DerivedExitCode"]); ok {
		j.Derived = fact.Of(e, at)
	}
	if n, err := strconv.ParseInt(r["ElapsedRaw"], 10, 64); err == nil {
		j.Seconds = fact.Of(n, at)
	}
	switch n, err := strconv.ParseInt(r["TimelimitRaw"], 10, 64); {
	case err == nil && n >= 0 && n < 1<<40:
		j.Limit = fact.Of(n*60, at)
	case r["TimelimitRaw"] == "UNLIMITED":
		j.Limit = fact.Of[int64](-1, at)
	}
	rec.memory(j, at)
	if list, ok := said(r["AllocTRES"]); ok {
		if n, ok := tresGPUs(list); ok && n > 0 {
			j.GPUs = fact.Of(n, at)
		}
		// A site that does not keep GPUs in its accounting lists none either, so
		// silence says nothing.
	}
	for _, s := range rec.steps {
		j.Steps = append(j.Steps, step(s, cmd))
	}
}

// memory finds what each node of the job may use.
func (rec *record) memory(j *fact.Job, at fact.Evidence) {
	nodes := int64(j.NodeCount.Or(1))
	if v, ok := tres(rec.job["AllocTRES"], "mem"); ok && nodes > 0 {
		if b, _, ok := bytesOf(v, mib); ok && b > 0 {
			j.MemMiB = fact.Of(b/nodes/mib, at)
			return
		}
	}
	b, per, ok := bytesOf(rec.job["ReqMem"], mib)
	switch {
	case !ok || b == 0 || nodes == 0:
	case per == "n":
		j.MemMiB = fact.Of(b/mib, at)
	case per == "": // since 21.08: of the whole job
		j.MemMiB = fact.Of(b/nodes/mib, at)
	}
}

// step reads the row of a step.
func step(r row, cmd string) fact.JobStep {
	_, id, _ := strings.Cut(r["JobID"], ".")
	s := fact.JobStep{ID: id, Name: fact.Clip(r["JobName"], 200), Nodes: r["NodeList"], MaxRSSNode: r["MaxRSSNode"], MaxRSSTask: r["MaxRSSTask"],
		At: fact.Command(cmd, rowText(r["JobID"], r))}
	s.State, s.CancelledBy = fact.StateWord(r["State"])
	s.Start, _ = said(r["Start"])
	s.End, _ = said(r["End"])
	s.Tasks, _ = strconv.Atoi(r["NTasks"])
	if e, ok := exitStatus(r["ExitCode"]); ok {
		s.Exit = fact.Of(e, s.At)
	}
	if b, _, ok := bytesOf(r["MaxRSS"], 1); ok && b > 0 {
		s.MaxRSS = fact.Of(b, s.At)
	}
	return s
}

// rowText quotes what matters of a row.
func rowText(id string, r row) string {
	out := id + " " + r["State"] + " " + r["ExitCode"]
	if v, ok := said(r["MaxRSS"]); ok {
		out += " MaxRSS=" + v
	}
	if v, ok := said(r["ReqMem"]); ok && !strings.HasSuffix(v, "?") {
		out += " ReqMem=" + v
	}
	if v, ok := said(r["NodeList"]); ok {
		out += " " + fact.Clip(v, 200)
	}
	return out
}
