package slurmjob

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// wholeLine are the keys whose value goes to the end of the line: names and
// paths with blanks in them.
var wholeLine = map[string]bool{"JobName": true, "Command": true, "WorkDir": true, "StdErr": true, "StdIn": true, "StdOut": true,
	"Comment": true, "AdminComment": true, "SystemComment": true, "SubmitLine": true, "Extra": true, "Container": true, "Reservation": false}

var keyAt = lazyre.New(`(?:^|\s)([A-Z][A-Za-z_:/]{1,40})=`)

// show is one record of "scontrol --details show job".
type show struct {
	kv    map[string]string
	nodes []fact.JobNode
	users map[string]bool // all that its lines say of the owner
	owner string          // why nobody knows the owner, "" when it is known
}

// parseShow reads the records that scontrol prints. A line that does not begin
// as scontrol's do belongs to a name with line ends in it. Names and comments may
// hold lines that look like scontrol's, in front of its own and behind them: what
// one job is said to have in two ways nobody knows.
func parseShow(text string) []show {
	var out []show
	at := map[string]int{} // by number: scontrol shows each job once
	cur, differ := -1, []map[string]bool(nil)
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSuffix(l, "\r")
		switch {
		case strings.HasPrefix(l, "JobId="):
			number, _, _ := strings.Cut(l, " ")
			if i, ok := at[number]; ok {
				cur = i
				break
			}
			if len(out) >= maxRows {
				cur = -1
				break
			}
			cur = len(out)
			at[number] = cur
			out = append(out, show{kv: map[string]string{}, users: map[string]bool{}})
			differ = append(differ, map[string]bool{})
		case !strings.HasPrefix(l, "   "):
			continue
		}
		if cur < 0 {
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(l, " "), "Nodes=") {
			out[cur].node(l)
			continue
		}
		out[cur].line(l, differ[cur])
	}
	for i := range out {
		for k := range differ[i] {
			delete(out[i].kv, k)
		}
	}
	return out
}

// firstLine are the keys of a record's first line that stand in front of all that
// people write.
var firstLine = map[string]bool{"JobId": true, "ArrayJobId": true, "ArrayTaskId": true, "HetJobId": true, "HetJobOffset": true, "PackJobId": true, "PackJobOffset": true, "JobName": true}

// line reads the keys of a line, and notes those that differ from what was said before.
func (s *show) line(l string, differ map[string]bool) {
	first := len(s.kv) == 0
	at := keyAt.FindAllStringSubmatchIndex(l, 60)
	for i, m := range at {
		k := l[m[2]:m[3]]
		end := len(l)
		if !wholeLine[k] && i+1 < len(at) {
			end = at[i+1][0]
		}
		v := strings.TrimSpace(l[m[1]:end])
		if k == "UserId" {
			s.users[v] = true
		}
		switch old, had := s.kv[k]; {
		case firstLine[k]:
			if first {
				s.kv[k] = v
			}
		case had && old != v && !wholeLine[k]: // paths are the owner's word anyhow: the last one counts
			differ[k] = true
		default:
			s.kv[k] = v
		}
		if wholeLine[k] {
			return
		}
	}
}

// oneOwner reports that all records agree about whose job it is; the tasks of an
// array have one owner.
func oneOwner(shows []show) bool {
	users := map[string]bool{}
	for i := range shows {
		for u := range shows[i].users {
			users[u] = true
		}
	}
	return len(users) <= 1
}

var gresGPU = lazyre.New(`\bgpu(?::[^:,()]{1,80})?:(\d{1,5})(?:\((?:IDX|CNT):([^)]{0,200})\))?`)

// node reads "Nodes=n[1-2] CPU_IDs=15 Mem=60 GRES=gpu:a100:2(IDX:0-1)".
func (s *show) node(l string) {
	if len(s.nodes) >= 10000 {
		return
	}
	n := fact.JobNode{}
	for _, f := range strings.Fields(l) {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "Nodes":
			n.Nodes = v
		case "Mem":
			n.MemMiB, _ = strconv.ParseInt(v, 10, 64)
		case "GRES", "GRES_IDX":
			for _, m := range gresGPU.FindAllStringSubmatch(v, 16) {
				k, _ := strconv.Atoi(m[1])
				n.GPUs += k
				n.IDs = m[2]
			}
		}
	}
	s.nodes = append(s.nodes, n)
}

// of keeps the records of a job: one that only somebody's comment holds is of
// another, as a rule.
func of(id ID, shows []show) []show {
	var out []show
	for _, s := range shows {
		for _, k := range []string{"JobId", "ArrayJobId", "HetJobId", "PackJobId"} {
			if s.kv[k] == id.Job {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

// id is the id as people write it.
func (s *show) id() ID {
	switch {
	case s.kv["ArrayJobId"] != "" && s.kv["ArrayTaskId"] != "":
		task := s.kv["ArrayTaskId"]
		if strings.Trim(task, "0123456789") != "" {
			task = "[" + task + "]" // tasks that wait together, as sacct and squeue write them
		}
		return ID{Job: s.kv["ArrayJobId"], Task: task}
	case s.kv["HetJobId"] != "" && s.kv["HetJobOffset"] != "":
		return ID{Job: s.kv["HetJobId"], Comp: s.kv["HetJobOffset"]}
	}
	return ID{Job: s.kv["JobId"]}
}

// excerpts are the keys that are quoted as evidence.
var excerpts = []string{"JobState", "Reason", "ExitCode"}

func (s *show) evidence(cmd string) fact.Evidence {
	var parts []string
	for _, k := range excerpts {
		if v, ok := s.kv[k]; ok {
			parts = append(parts, k+"="+fact.Clip(v, 200))
		}
	}
	return fact.Command(cmd, strings.Join(parts, " "))
}

var userForm = lazyre.New(`^(.*)\((\d{1,10})\)$`)

// fill takes over what scontrol says; it is newer than what sacct knows.
func (s *show) fill(j *fact.Job, cmd string) {
	at := s.evidence(cmd)
	id := s.id()
	j.ID, j.Raw = id.String(), s.kv["JobId"]
	if id.Task != "" {
		j.Array, j.Task = id.Job, id.Task
	}
	str := func(dst *fact.Val[string], keys ...string) {
		for _, k := range keys {
			if v, ok := said(s.kv[k]); ok {
				*dst = fact.Of(v, at.WithExcerpt(k+"="+fact.Clip(v, 300)))
				return
			}
		}
	}
	if v, ok := said(s.kv["JobState"]); ok {
		j.State = fact.Of(v, at)
		if v != "CANCELLED" {
			j.CancelledBy = fact.Val[string]{}
		}
	}
	str(&j.Name, "JobName", "Name")
	str(&j.Reason, "Reason")
	if s.kv["Reason"] == "None" { // the scheduler has not given one
		j.Reason = fact.None[string](at.WithExcerpt("JobState=" + s.kv["JobState"] + " Reason=None"))
	}
	str(&j.Dependency, "Dependency")
	str(&j.Partition, "Partition")
	str(&j.QOS, "QOS")
	str(&j.Submit, "SubmitTime")
	str(&j.Start, "StartTime")
	str(&j.End, "EndTime")
	str(&j.Nodes, "NodeList")
	str(&j.BatchHost, "BatchHost")
	str(&j.WorkDir, "WorkDir")
	str(&j.Command, "Command")
	str(&j.StdOut, "StdOut")
	str(&j.StdErr, "StdErr")
	str(&j.ReqTRES, "ReqTRES", "TRES")
	str(&j.AllocTRES, "AllocTRES", "TRES")
	if m := userForm.FindStringSubmatch(s.kv["UserId"]); m != nil {
		j.User = fact.Of(m[1], at)
		if n, err := strconv.Atoi(m[2]); err == nil {
			j.UID = fact.Of(n, at)
		}
	}
	if s.owner != "" && !j.UID.IsKnown() {
		j.User, j.UID = fact.Fail[string](s.owner, at), fact.Fail[int](s.owner, at)
	}
	num := func(dst *fact.Val[int], k string) {
		v, _, _ := strings.Cut(s.kv[k], "-")
		if n, err := strconv.Atoi(v); err == nil {
			*dst = fact.Of(n, at)
		}
	}
	num(&j.NodeCount, "NumNodes")
	num(&j.Tasks, "NumTasks")
	num(&j.Restarts, "Restarts")
	if e, ok := exitStatus(s.kv["ExitCode"]); ok {
		j.Exit = fact.Of(e, at)
	}
	if e, ok := exitStatus(s.kv["DerivedExitCode"]); ok {
		j.Derived = fact.Of(e, at.WithExcerpt("DerivedExitCode="+s.kv["DerivedExitCode"]))
	}
	if n, ok := seconds(s.kv["RunTime"]); ok {
		j.Seconds = fact.Of(n, at)
	}
	if n, ok := seconds(s.kv["TimeLimit"]); ok {
		j.Limit = fact.Of(n, at)
	}
	s.gpus(j, at)
}

// gpus counts what was granted. Only the detailed lines, which give each node's
// share, or the amounts of the job can say "none": with neither, nobody knows.
func (s *show) gpus(j *fact.Job, at fact.Evidence) {
	for _, n := range s.nodes {
		if n.MemMiB > 0 && (!j.MemMiB.IsKnown() || n.MemMiB < j.MemMiB.V) {
			j.MemMiB = fact.Of(n.MemMiB, at.WithExcerpt("Nodes="+n.Nodes+" Mem="+strconv.FormatInt(n.MemMiB, 10)))
		}
	}
	j.PerNode = s.nodes
	list, _ := said(firstOf(s.kv["AllocTRES"], s.kv["TRES"]))
	if n, ok := tresGPUs(list); ok && n > 0 {
		j.GPUs = fact.Of(n, at.WithExcerpt("TRES="+fact.Clip(list, 300)))
		return
	}
	if len(s.nodes) == 0 {
		return
	}
	any := false
	for _, n := range s.nodes {
		any = any || n.GPUs > 0
	}
	if !any {
		j.GPUs = fact.None[int](at.WithExcerpt("JOB_GRES=" + s.kv["JOB_GRES"]))
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
