package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// What Slurm's signals mean in an exit status.
const (
	sigOOM    = 125 // memory ran out
	sigLaunch = 53  // slurmstepd could not set up the batch step
)

// jobFacts puts what listings tell elsewhere where the deciders look for it.
func (v *view) jobFacts() {
	j := v.l.Job
	if j == nil {
		return
	}
	none := fact.Place{File: -1, Rank: -1, Local: -1, Task: -1}
	if j.GPUs.IsAbsent() {
		v.l.Listing.Facts = append(v.l.Listing.Facts, fact.Said{Place: none, Kind: kind.TRES, V: j.AllocTRES.Or("none"), Text: j.GPUs.At.Excerpt})
	}
}

// jobFailed reports that Slurm says that the job, or a step of it, did not end well.
func (v *view) jobFailed() bool {
	j := v.l.Job
	if j == nil || fact.Phase(j.State.Or("")) != fact.JobEnded {
		return false
	}
	return j.State.V != "COMPLETED" || len(badSteps(j)) > 0 || !j.Derived.Or(fact.ExitStatus{}).OK()
}

// jobDone reports that Slurm says that the job ended well. Where the script hides
// how its commands ended, that counts only when nothing in the logs failed.
func (v *view) jobDone() bool {
	j := v.l.Job
	return j != nil && j.State.Or("") == "COMPLETED" && !v.jobFailed() && (!v.masked || v.looked && !v.dead)
}

// badSteps are the steps that did not end well. A step that Slurm ended with the
// job says nothing of its own.
func badSteps(j *fact.Job) []*fact.JobStep {
	var out []*fact.JobStep
	for i := range j.Steps {
		s := &j.Steps[i]
		if fact.Phase(s.State) == fact.JobEnded && s.State != "COMPLETED" {
			out = append(out, s)
		}
	}
	return out
}

// decideJob judges what the scheduler says of the job.
func (v *view) decideJob() {
	j := v.l.Job
	if j == nil {
		return
	}
	state := j.State.Or("")
	if fact.Phase(state) == fact.JobWaits {
		v.jobWaits(j)
		return
	}
	if fact.Phase(state) != fact.JobEnded {
		v.jobRuns(j)
		return
	}
	if state != "CANCELLED" {
		v.cancelIsNoCause()
	}
	v.jobMemory(j)
	switch state {
	case "TIMEOUT", "DEADLINE":
		v.jobTime(j)
	case "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED":
		v.slurmSays(cand{id: "node-failed", over: []string{"run-collective-hang", "run-exception", "job-cancelled", "rdzv-unreachable"},
			args: diag.Args{"variant": "slurm", "state": state, "node": j.FailedNode.Or("")}, where: nodesAt(j.FailedNode.Or(""))}, j.State.At)
	case "PREEMPTED":
		v.slurmSays(cand{id: "job-preempted", over: []string{"run-exception", "job-cancelled", "run-collective-hang"}}, j.State.At)
	case "CANCELLED":
		v.jobCancelled(j)
	}
	v.jobLaunch(j)
	if len(v.cands) == 0 {
		v.stepCancelled(j)
	}
}

// cancelIsNoCause keeps log lines that speak of a cancelled step from naming the
// cause: the scheduler says how the job ended, and that was not by scancel.
func (v *view) cancelIsNoCause() {
	if v.opt.Rules == nil {
		return
	}
	for r := range v.byRule {
		if info, ok := v.opt.Rules(r); ok && (slices.Contains(info.Proves, "job-cancelled") || len(info.Suggests) == 1 && info.Suggests[0] == "job-cancelled") {
			v.used[r] = true
		}
	}
}

// stepCancelled judges a step that somebody cancelled in a job that went on,
// when nothing else is known.
func (v *view) stepCancelled(j *fact.Job) {
	for _, s := range badSteps(j) {
		if s.State == "CANCELLED" && s.CancelledBy != "" && s.ID != "extern" {
			v.slurmSays(cand{id: "job-cancelled", cert: diag.Likely, tier: 1, needs: []string{"sacct -j " + j.ID + " -o JobID,State%30,ExitCode,End"}}, s.At)
			return
		}
	}
}

// nodesAt is the place of a failure on a node that Slurm names.
func nodesAt(node string) []diag.Where {
	if node == "" {
		return nil
	}
	return []diag.Where{{Node: node}}
}

// slurmSays adds a cause that the scheduler itself states, or its evidence to
// the one that the logs show already.
func (v *view) slurmSays(c cand, ev ...fact.Evidence) *cand {
	for i := range v.cands {
		if k := &v.cands[i]; k.id == c.id {
			k.ev = append(slices.Clip(ev), k.ev...)
			k.cert = diag.Proven
			k.needs = nil
			k.where = append(k.where, c.where...)
			for _, id := range c.over {
				if !slices.Contains(k.over, id) {
					k.over = append(k.over, id)
				}
			}
			return k
		}
	}
	if c.cert == "" {
		c.cert = diag.Proven
	}
	c.at = fact.Place{File: -1, Rank: -1, Local: -1, Task: -1}
	c.ev = append(c.ev, ev...)
	v.cands = append(v.cands, c)
	return &v.cands[len(v.cands)-1]
}

// jobMemory judges the state OUT_OF_MEMORY, which a step has even where the job
// says FAILED, and a SIGKILL beside a use of memory that leaves no room.
func (v *view) jobMemory(j *fact.Job) {
	over := []string{"run-exception", "run-native-crash", "run-collective-hang", "job-cancelled", "net-shared-memory-full"}
	var ev []fact.Evidence
	var where []diag.Where
	for _, s := range badSteps(j) {
		e := s.Exit.Or(fact.ExitStatus{})
		if s.State == "OUT_OF_MEMORY" || e.Signal == sigOOM {
			ev = append(ev, s.At)
			where = append(where, nodesAt(s.Nodes)...)
		}
	}
	if len(ev) == 0 && (j.State.Or("") == "OUT_OF_MEMORY" || j.Derived.Or(fact.ExitStatus{}).Signal == sigOOM) {
		at := j.State.At
		if j.State.Or("") != "OUT_OF_MEMORY" {
			at = j.Derived.At
		}
		ev = append(ev, at)
	}
	if len(ev) > 0 {
		c := cand{id: "host-out-of-memory", over: over, where: where, args: diag.Args{"variant": "slurm"}}
		if m, ok := j.MemMiB.Get(); ok {
			c.args = diag.Args{"variant": "slurm-limit", "limit": size(m << 20)}
		}
		v.slurmSays(c, cap4s(ev)...)
		return
	}
	for _, s := range badSteps(j) {
		limit, used := j.MemMiB.Or(0)<<20, s.MaxRSS.Or(0)
		if e := s.Exit.Or(fact.ExitStatus{}); e.Signal != 9 && e.Code != 137 || limit == 0 || used < limit/100*95 {
			continue
		}
		c := v.slurmSays(cand{id: "host-out-of-memory", cert: diag.Likely, over: over, where: nodesAt(s.MaxRSSNode),
			args: diag.Args{"variant": "near", "limit": size(limit), "used": size(used)}}, s.At)
		if c.cert == diag.Likely {
			c.needs = []string{"dmesg -T | grep -i -e oom -e 'killed process'"}
		}
		return
	}
}

func cap4s(ev []fact.Evidence) []fact.Evidence { return ev[:min(len(ev), 4)] }

// size writes an amount of memory.
func size(b int64) string {
	switch {
	case b >= 10<<30:
		return fmt.Sprintf("%d GiB", b>>30)
	case b >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", b>>20)
}

// jobTime judges a job whose time was up. A job that was silent long before
// hung: the logs tell.
func (v *view) jobTime(j *fact.Job) {
	if v.candidate("run-collective-hang") && !v.candidate("job-time-limit") {
		for i := range v.cands {
			if k := &v.cands[i]; k.id == "run-collective-hang" {
				k.ev = append(k.ev, j.State.At)
			}
		}
		return
	}
	c := cand{id: "job-time-limit", tier: 1, over: []string{"job-cancelled", "run-exception"}, args: diag.Args{}}
	if j.State.V == "DEADLINE" {
		c.args["variant"] = "deadline"
	} else if n, ok := j.Limit.Get(); ok && n > 0 {
		c.args["variant"], c.args["limit"] = "slurm", clock(n)
	}
	v.slurmSays(c, j.State.At)
}

// clock writes seconds as Slurm does: 1-02:03:04.
func clock(sec int64) string {
	out := fmt.Sprintf("%02d:%02d:%02d", sec/3600%24, sec/60%60, sec%60)
	if d := sec / 86400; d > 0 {
		out = fmt.Sprintf("%d-%s", d, out)
	}
	return out
}

// jobCancelled judges a job that somebody cancelled: what it did before may have
// been the reason to, and then is the cause.
func (v *view) jobCancelled(j *fact.Job) {
	c := cand{id: "job-cancelled", tier: 1, args: diag.Args{}}
	by, ok := j.CancelledBy.Get()
	at := j.State.At
	switch {
	case !ok:
		c.cert = diag.Likely
		c.needs = []string{"sacct -j " + j.ID + " -o JobID,State%30,ExitCode,End"}
	case j.UID.IsKnown() && by == itoa(j.UID.V) || by == j.User.Or(""):
		c.args["variant"], c.args["user"], c.args["owner"] = "owner", j.User.Or(by), "1"
		if by == "0" || by == "root" {
			c.args["variant"] = "owner-root"
		}
		at = j.CancelledBy.At
	case by == "0" || by == "root":
		c.args["variant"] = "root"
		at = j.CancelledBy.At
	default:
		c.args["variant"], c.args["user"] = "other", by
		at = j.CancelledBy.At
	}
	c.over = []string{"run-collective-hang"}
	v.slurmSays(c, at)
}

// jobLaunch judges a job that ended before its script began: slurmstepd could
// not open the output file.
func (v *view) jobLaunch(j *fact.Job) {
	hit := j.Exit.Or(fact.ExitStatus{}).Signal == sigLaunch
	at := j.Exit.At
	for _, s := range badSteps(j) {
		if s.ID == "batch" && s.Exit.Or(fact.ExitStatus{}).Signal == sigLaunch {
			hit, at = true, s.At
		}
	}
	if !hit {
		return
	}
	for _, o := range j.Outputs {
		if o.Kind != fact.OutStd && o.Kind != fact.OutErr {
			continue
		}
		c := cand{id: "slurm-output-path", args: diag.Args{"variant": "slurm", "path": o.Path}, over: []string{"job-cancelled", "node-failed"}}
		switch o.Unread {
		case fact.OutNoFolder:
			c.args["folder"] = o.Path[:max(1, strings.LastIndexByte(o.Path, '/'))]
			c.args["folder_word"] = fact.ShellWord(c.args["folder"])
		case fact.OutMissing, fact.OutDenied, fact.OutSpecial:
			c.cert = diag.Likely
			c.args["variant"] = "slurm-unsure"
			c.needs = []string{"ls -ld " + fact.ShellWord(o.Path[:max(1, strings.LastIndexByte(o.Path, '/'))])}
		default:
			continue
		}
		v.slurmSays(c, at, fact.File(o.Path))
		return
	}
	v.needs = append(v.needs, "scontrol show job "+j.ID)
}

// jobBefore tells how the run before a requeue ended, of a job that has not ended yet.
func (v *view) jobBefore(j *fact.Job) {
	if len(j.Before) == 0 {
		return
	}
	last := j.Before[len(j.Before)-1]
	switch last.State {
	case "PREEMPTED":
		v.slurmSays(cand{id: "job-preempted", over: []string{"run-exception", "job-cancelled"}, forced: true}, last.At)
	case "NODE_FAIL", "BOOT_FAIL":
		v.slurmSays(cand{id: "node-failed", args: diag.Args{"variant": "slurm", "state": last.State}, over: []string{"run-exception", "job-cancelled", "run-collective-hang"}, forced: true}, last.At)
	}
}

// jobUndecided quotes what Slurm says of a failure that nothing else explains.
func (v *view) jobUndecided(f *diag.Finding) {
	j := v.l.Job
	if j == nil {
		return
	}
	if len(f.Evidence) == 0 {
		for _, s := range badSteps(j) {
			if len(f.Evidence) < 4 {
				f.Evidence = append(f.Evidence, s.At)
			}
		}
	}
	if len(f.Evidence) == 0 {
		f.Evidence = append(f.Evidence, j.State.At)
	}
	v.wouldDecide(f)
}
