package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// waitVariant names the message for a reason that ends by itself.
func waitVariant(reason string) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(reason, w) })
	}
	switch {
	case reason == "Resources":
		return "resources"
	case reason == "Priority":
		return "priority"
	case reason == "BeginTime":
		return "begin"
	case reason == "Dependency":
		return "dependency"
	case reason == "JobArrayTaskLimit":
		return "array"
	case has("ReqNodeNotAvail") && strings.Contains(reason, "Reserved_for_maintenance"), reason == "Reservation":
		return "reservation"
	case has("ReqNodeNotAvail", "Nodes_required_for_job", "NodeDown"):
		return "nodes"
	case has("PartitionDown", "PartitionInactive"):
		return "partition"
	case reason == "Licenses":
		return "licenses"
	case has("QOSGrp", "AssocGrp", "AssocationGrp"):
		return "group-limit"
	case has("QOSMax", "AssocMax", "MaxJobs", "QOSJobLimit", "AssociationJobLimit"):
		return "own-limit"
	}
	return "other"
}

// jobWaits judges a job that has not started, or that waits again.
func (v *view) jobWaits(j *fact.Job) {
	v.jobBefore(j)
	reason := strings.TrimSuffix(j.Reason.Or(""), "_")
	args := diag.Args{"job": j.ID, "reason": reason}
	held := func(by string) {
		args["variant"], args["by"] = by, by
		v.slurmSays(cand{id: "job-held", args: args}, j.Reason.At)
	}
	variant, impossible := fact.NeverStarts(reason)
	switch {
	case j.State.Or("") == "CONFIGURING":
		args["variant"] = "starting"
		v.note("job-waits", args, j.State.At).Needs = []string{"scontrol show job " + j.ID, "sinfo -N -n " + fact.ShellWord(j.Nodes.Or("NODES"))}
	case reason == "" && j.Reason.IsAbsent():
		args["variant"] = "new"
		v.note("job-waits", args, j.Reason.At).Needs = []string{"squeue -j " + j.ID + " -o '%i %T %r'", "scontrol ping", "sdiag"}
	case reason == "":
	case reason == "JobHeldUser":
		held("user")
	case reason == "JobHeldAdmin":
		held("admin")
	case strings.HasSuffix(strings.ToLower(reason), "held"), strings.HasSuffix(reason, "held_state"), reason == "JobHoldMaxRequeue":
		held("slurm")
	case reason == "DependencyNeverSatisfied":
		c := cand{id: "job-dependency-failed", args: args}
		if d, ok := j.Dependency.Get(); ok {
			args["variant"], args["dependency"] = "on", d
			if m := dependsOn.FindStringSubmatch(d); m != nil {
				args["first"] = m[1]
			}
		}
		v.slurmSays(c, j.Reason.At)
	case impossible:
		args["variant"] = "waits-" + variant
		if variant == "time" && j.Limit.Or(0) > 0 {
			args["limit"], args["variant"] = clock(j.Limit.V), "waits-time-asked"
		}
		v.slurmSays(cand{id: "slurm-request-impossible", args: args}, j.Reason.At)
	default:
		v.jobQueued(j, reason)
	}
}

var dependsOn = lazyre.New(`(?:^|[,?:])(\d{1,10}(?:_\d{1,10})?)(?:\+\d+)?\((?:failed|unfulfilled)\)`)

// jobQueued tells why a job waits whose turn will come.
func (v *view) jobQueued(j *fact.Job, reason string) {
	args := diag.Args{"job": j.ID, "reason": reason, "variant": waitVariant(reason)}
	f := func() *diag.Finding { return v.note("job-waits", args, j.Reason.At) }
	switch args["variant"] {
	case "resources", "priority":
		f().Needs = []string{"squeue --start -j " + j.ID}
	case "dependency":
		if d, ok := j.Dependency.Get(); ok {
			args["dependency"] = d
		} else {
			args["variant"] = "other"
		}
		f()
	case "own-limit", "group-limit":
		f().Needs = []string{"sacctmgr show assoc user=$USER format=Account,User,QOS,GrpTRES,MaxTRES,MaxJobs", "sacctmgr show qos format=Name,GrpTRES,MaxTRES,MaxTRESPU,MaxJobsPU", "squeue -u $USER -o '%i %T %b %D %r'"}
	case "nodes":
		if _, detail, ok := strings.Cut(reason, ":"); ok && detail != "" {
			args["variant"], args["detail"] = "nodes-named", detail
		}
		if i := strings.IndexAny(reason, ",:"); i > 0 {
			args["reason"] = reason[:i]
		}
		f().Needs = []string{"sinfo -R", "scontrol show reservation"}
	case "reservation":
		f().Needs = []string{"scontrol show reservation"}
	case "partition":
		f().Needs = []string{"scontrol show partition " + fact.ShellWord(j.Partition.Or("PARTITION"))}
	default:
		f()
	}
}

// limitNear is the share of its time after which a job is told that it ends soon,
// and the time left, in seconds, below which it always is.
const (
	limitNear = 95
	limitLeft = 300
)

// jobRuns judges a job that runs: an earlier run may have ended badly, and its
// time may be nearly up.
func (v *view) jobRuns(j *fact.Job) {
	v.jobBefore(j)
	ran, limit := j.Seconds.Or(0), j.Limit.Or(0)
	if limit <= 0 || ran <= 0 || ran*100 < limit*limitNear && limit-ran > min(limitLeft, limit/2) {
		return
	}
	args := diag.Args{"job": j.ID, "ran": clock(ran), "limit": clock(limit), "left": clock(max(limit-ran, 0)), "variant": "near"}
	if ran > limit {
		args["variant"] = "over"
	}
	v.note("job-limit-near", args, j.Limit.At)
}

// note adds something that is no fault.
func (v *view) note(id string, args diag.Args, ev ...fact.Evidence) *diag.Finding {
	f := v.set.Finding("", id, diag.Proven, args, ev...)
	f.Role, f.Severity = diag.Context, diag.Note
	v.notes = append(v.notes, &f)
	return &f
}
