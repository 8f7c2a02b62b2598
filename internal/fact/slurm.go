package fact

// Slurm is the Slurm context of the process.
type Slurm struct {
	Version Val[string] `json:"version,omitzero"` // 22.05.8
	// Commands says whether Slurm's client commands are on PATH: outside of a
	// job that makes a login node likely.
	Commands Val[bool]   `json:"commands,omitzero"`
	Job      Val[string] `json:"job,omitzero"` // job id; Absent: not in a job; Failed: variables name one, but nothing shows that this process is in it
	// Where in the job: step (started by srun), batch (the batch script's shell),
	// interactive (salloc's shell; with NodeName Absent it runs on the host where
	// salloc was typed, which is no node of the job), extern (a login that was
	// adopted into the job).
	Where string `json:"where,omitempty"`
	// Stale is a job id that the environment names although this process is not in that job.
	Stale Val[string] `json:"stale,omitzero"`
	Step  Val[string] `json:"step,omitzero"` // step id

	Nodes       Val[int]    `json:"nodes,omitzero"`    // of the step, else of the job
	JobNodes    Val[int]    `json:"jobNodes,omitzero"` // of the job
	NodeList    Val[string] `json:"nodeList,omitzero"`
	NodeName    Val[string] `json:"nodeName,omitzero"`
	Tasks       Val[int]    `json:"tasks,omitzero"`
	TasksHere   Val[int]    `json:"tasksHere,omitzero"` // tasks of the step on this node
	Rank        Val[int]    `json:"rank,omitzero"`      // SLURM_PROCID
	LocalRank   Val[int]    `json:"localRank,omitzero"` // SLURM_LOCALID
	CPUsPerTask Val[int]    `json:"cpusPerTask,omitzero"`
	CPUs        Val[int]    `json:"cpus,omitzero"`      // CPUs that this process may run on
	ExportEnv   Val[string] `json:"exportEnv,omitzero"` // SLURM_EXPORT_ENV
	// GPUsGranted counts the GPUs that Slurm gave to the step (or the job, in
	// the batch shell) on this node; Absent: Slurm gave none.
	GPUsGranted Val[int]    `json:"gpusGranted,omitzero"`
	GPUIDs      Val[string] `json:"gpuIDs,omitzero"` // SLURM_STEP_GPUS / SLURM_JOB_GPUS, global indexes
	Partition   Val[string] `json:"partition,omitzero"`
}

// Live is what the job's own interpreter said when asked (--live).
type Live struct {
	State       Val[string]   `json:"state,omitzero"` // ok, import-failed, timeout, crashed, no-answer; Failed: it could not be started
	Error       string        `json:"error,omitempty"`
	File        Val[string]   `json:"file,omitzero"` // torch.__file__
	Version     Val[string]   `json:"version,omitzero"`
	CUDA        Val[string]   `json:"cuda,omitzero"`
	HIP         Val[string]   `json:"hip,omitzero"`
	Distributed Val[bool]     `json:"distributed,omitzero"`
	NCCL        Val[bool]     `json:"nccl,omitzero"` // is_nccl_available()
	Gloo        Val[bool]     `json:"gloo,omitzero"`
	NCCLVersion Val[string]   `json:"ncclVersion,omitzero"`
	Devices     Val[int]      `json:"devices,omitzero"`
	Archs       Val[[]string] `json:"archs,omitzero"`
	GlooGroup   Val[string]   `json:"glooGroup,omitzero"` // ok, or the error of a one-process gloo group
	SysPath     []string      `json:"sysPath,omitempty"`
	Seconds     float64       `json:"seconds,omitempty"`
}
