package fact

import (
	"strings"
	"time"
)

// Job is what the scheduler and its accounting say of one batch job, of one
// task of an array or of one component of a heterogeneous job. Times are those
// that Slurm printed, in the time zone of the client.
type Job struct {
	ID    string `json:"id"`              // as people write it: 4711, 4711_3, 4711+1
	Raw   string `json:"raw,omitempty"`   // Slurm's own number; of an array's task another one than in ID
	Array string `json:"array,omitempty"` // number of the array, "" when it is none
	Task  string `json:"task,omitempty"`  // of an array

	Name      Val[string] `json:"name,omitzero"`
	User      Val[string] `json:"user,omitzero"`
	UID       Val[int]    `json:"uid,omitzero"`
	Partition Val[string] `json:"partition,omitzero"`
	QOS       Val[string] `json:"qos,omitzero"`

	State       Val[string]     `json:"state,omitzero"`       // one word: COMPLETED, FAILED, OUT_OF_MEMORY …
	CancelledBy Val[string]     `json:"cancelledBy,omitzero"` // user id, as "CANCELLED by 1000" says
	Reason      Val[string]     `json:"reason,omitzero"`      // of scontrol: why it waits, or why it ended
	Dependency  Val[string]     `json:"dependency,omitzero"`  // what it waits for: afterok:69(failed)
	Exit        Val[ExitStatus] `json:"exit,omitzero"`        // of the batch script
	Derived     Val[ExitStatus] `json:"derived,omitzero"`     // the highest of all steps
	Restarts    Val[int]        `json:"restarts,omitzero"`

	Submit  Val[string] `json:"submit,omitzero"` // 2026-11-30T08:06:22
	Start   Val[string] `json:"start,omitzero"`
	End     Val[string] `json:"end,omitzero"`     // of a running job: when its time is up
	Seconds Val[int64]  `json:"seconds,omitzero"` // run time
	Limit   Val[int64]  `json:"limit,omitzero"`   // seconds; -1: none

	Nodes     Val[string] `json:"nodes,omitzero"` // hostlist
	NodeCount Val[int]    `json:"nodeCount,omitzero"`
	BatchHost Val[string] `json:"batchHost,omitzero"`
	// FailedNode is the node whose failure ended the job, where the release tells.
	FailedNode Val[string] `json:"failedNode,omitzero"`
	Tasks      Val[int]    `json:"tasks,omitzero"`
	MemMiB     Val[int64]  `json:"memMiB,omitzero"` // memory that the job may use, per node
	ReqTRES    Val[string] `json:"reqTRES,omitzero"`
	AllocTRES  Val[string] `json:"allocTRES,omitzero"`
	GPUs       Val[int]    `json:"gpus,omitzero"` // GPUs that were granted, in total; Absent: none
	PerNode    []JobNode   `json:"perNode,omitempty"`

	StdOut  Val[string] `json:"stdOut,omitzero"` // with its patterns
	StdErr  Val[string] `json:"stdErr,omitzero"`
	WorkDir Val[string] `json:"workDir,omitzero"`
	Command Val[string] `json:"command,omitzero"` // path of the batch script at submission

	SubmitLine Val[string] `json:"submitLine,omitzero"` // command line of the submission, words joined by blanks

	Steps  []JobStep    `json:"steps,omitempty"`
	Before []JobRun     `json:"before,omitempty"` // earlier runs of a job that was requeued, oldest first
	Others []JobSibling `json:"others,omitempty"` // other tasks of the array, other components

	Script  JobScript   `json:"script,omitzero"`
	Outputs []JobOutput `json:"outputs,omitempty"`
}

// JobScript says where the batch script comes from.
type JobScript struct {
	From    string `json:"from,omitempty"`    // the command or the file that gave it; "": it was not to be had
	Path    string `json:"path,omitempty"`    // of the file that was submitted
	Changed bool   `json:"changed,omitempty"` // the file was changed after the submission
	Bytes   int    `json:"bytes,omitempty"`
}

// Kinds of a JobOutput.
const (
	OutStd      = "stdout"
	OutErr      = "stderr"
	OutStep     = "step"     // srun --output, srun --error
	OutRedirect = "redirect" // > in the batch script, tee
)

// Why a JobOutput is not read.
const (
	OutMissing  = "missing"
	OutDenied   = "denied"
	OutDevice   = "device"   // a device such as /dev/null
	OutSpecial  = "special"  // a pipe, a socket, a folder
	OutForeign  = "foreign"  // of another user than the job's
	OutEarlier  = "earlier"  // older than the job
	OutLater    = "later"    // written after the job's end: by another job
	OutUnknown  = "unknown"  // its name cannot be followed
	OutTooMany  = "too-many" // more files than are read
	OutNoFolder = "no-folder"
)

// JobOutput is a file that the job was to write.
type JobOutput struct {
	Path    string    `json:"path"` // absolute
	Kind    string    `json:"kind"`
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed,omitzero"`
	Unread  string    `json:"unread,omitempty"` // why it is not read, "" when it is
	Before  int64     `json:"before,omitempty"` // bytes at its beginning that earlier runs of a requeued job wrote
}

// ExitStatus is Slurm's pair of exit status and signal, "1:0".
type ExitStatus struct {
	Code   int `json:"code"`
	Signal int `json:"signal"`
}

// OK reports an end without a fault.
func (e ExitStatus) OK() bool { return e == ExitStatus{} }

// JobNode is what nodes of a job were given.
type JobNode struct {
	Nodes  string `json:"nodes"` // hostlist
	GPUs   int    `json:"gpus"`  // of each node
	IDs    string `json:"ids,omitempty"`
	MemMiB int64  `json:"memMiB,omitempty"`
}

// JobStep is one step: batch, extern, or a number.
type JobStep struct {
	ID          string          `json:"id"` // batch, extern, interactive, 0, 1 …
	Name        string          `json:"name,omitempty"`
	State       string          `json:"state"`
	CancelledBy string          `json:"cancelledBy,omitempty"`
	Exit        Val[ExitStatus] `json:"exit,omitzero"`
	Start       string          `json:"start,omitempty"`
	End         string          `json:"end,omitempty"`
	Nodes       string          `json:"nodes,omitempty"`
	Tasks       int             `json:"tasks,omitempty"`
	MaxRSS      Val[int64]      `json:"maxRSS,omitzero"` // bytes, the biggest task that sampling saw
	MaxRSSNode  string          `json:"maxRSSNode,omitempty"`
	MaxRSSTask  string          `json:"maxRSSTask,omitempty"`
	At          Evidence        `json:"at,omitzero"`
}

// JobRun is an earlier run of a job that was requeued.
type JobRun struct {
	State string   `json:"state"`
	Start string   `json:"start,omitempty"`
	End   string   `json:"end,omitempty"`
	Nodes string   `json:"nodes,omitempty"`
	At    Evidence `json:"at,omitzero"`
}

// JobSibling is another task of an array or another component.
type JobSibling struct {
	ID    string          `json:"id"`
	State string          `json:"state"`
	Exit  Val[ExitStatus] `json:"exit,omitzero"`
	End   string          `json:"end,omitempty"`
}

// Phases of a job's life.
const (
	JobWaits = "waits"
	JobRuns  = "runs"
	JobEnded = "ended"
)

// Phase says where a state stands in a job's life, "" for a state that is not known.
func Phase(state string) string {
	switch state {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return JobWaits
	case "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT":
		return JobRuns
	case "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL":
		return JobEnded
	}
	return ""
}

// StateWord returns the first word of a state as sacct prints it, and who
// cancelled: "CANCELLED by 1000", "OUT_OF_ME+", "CANCELLED+".
func StateWord(s string) (state, by string) {
	f := strings.Fields(s)
	if len(f) == 0 {
		return "", ""
	}
	state = strings.TrimSuffix(f[0], "+")
	for _, full := range []string{"OUT_OF_MEMORY", "CANCELLED", "COMPLETED", "PREEMPTED"} {
		if len(state) >= 8 && strings.HasPrefix(full, state) {
			state = full
		}
	}
	if len(f) == 3 && f[1] == "by" {
		by = strings.TrimSuffix(f[2], "+")
	}
	return state, by
}
