package lint

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// dollar reports whether a value has what only a shell would expand.
func dollar(v string) bool { return strings.ContainsAny(v, "$`") && shellExpansion.MatchString(v) }

var shellExpansion = lazyre.New("\\$[A-Za-z_{(0-9@*]|`")

// isDir reports that a folder is there already; --chdir moves relative ones.
func (c *Ctx) isDir(dir string) bool {
	if c.O.IsDir == nil {
		return false
	}
	if d := c.S.Opt("chdir"); d != nil && !path.IsAbs(dir) {
		dir = path.Join(d.Value, dir)
	}
	return c.O.IsDir(dir)
}

// patternFor turns variables of an output path into sbatch's own patterns.
func patternFor(v string) (string, bool) {
	out := v
	for _, p := range [][2]string{{"SLURM_ARRAY_JOB_ID", "%A"}, {"SLURM_ARRAY_TASK_ID", "%a"}, {"SLURM_JOB_NAME", "%x"}, {"SLURM_JOB_ID", "%j"}, {"SLURM_JOBID", "%j"}, {"USER", "%u"}} {
		out = strings.ReplaceAll(out, "${"+p[0]+"}", p[1])
		out = strings.ReplaceAll(out, "$"+p[0], p[1])
	}
	return out, out != v && !dollar(out)
}

// removedOption says what took the place of an option, and when it went.
func removedOption(name string) (now, gone string) {
	switch name {
	case "workdir":
		return "chdir", "19.05"
	case "jobid":
		return "", "22.05"
	case "checkpoint", "checkpoint-dir":
		return "", "20.11"
	}
	return "", "20.02"
}

// show names a launch for a message.
func show(l *fact.Launch) string {
	switch l.Kind {
	case fact.LaunchTorchrun:
		return "torchrun"
	case fact.LaunchLegacy:
		return "torch.distributed.launch"
	case fact.LaunchPython:
		p := "python"
		if l.Program != "" {
			p += " " + l.Program
		}
		return clip(p, 60)
	}
	return l.Kind
}

func wordPos(w fact.Word, def fact.Pos) fact.Pos {
	if w.Line > 0 {
		return w.Pos
	}
	return def
}

// gpuLine is the line of the option that asks for GPUs.
func gpuLine(c *Ctx) int {
	for i := len(c.S.Directives) - 1; i >= 0; i-- {
		d := &c.S.Directives[i]
		if strings.HasPrefix(d.Name, "gpus") || d.Name == "gres" && strings.Contains(d.Value, "gpu") || strings.HasPrefix(d.Name, "tres") {
			return d.Line
		}
	}
	return 1
}

// gpuArg finds a count of GPUs among the arguments of a program.
func gpuArg(l *fact.Launch) (fact.Word, int) {
	for i, w := range l.Args {
		name, val, eq := strings.Cut(w.Text, "=")
		switch name {
		case "--num_gpus", "--num-gpus", "--n_gpus", "--ngpus", "--n-gpus", "--gpus-per-node", "--gpus_per_node", "--ngpus_per_node", "--trainer.devices", "trainer.devices", "--devices", "--gpus", "--trainer.gpus", "trainer.gpus", "--num-gpus-per-node", "--num_gpus_per_node", "--num_devices", "--nproc_per_node":
			if !eq && i+1 < len(l.Args) {
				val = l.Args[i+1].Text
			}
			if n, err := strconv.Atoi(val); err == nil {
				return w, n
			}
		}
	}
	return fact.Word{}, 0
}

// hydraProcs is how many processes Hydra's launcher for torchrun starts; 0: none
// or not known.
func hydraProcs(l *fact.Launch) int {
	launcher, n := false, 0
	for _, w := range l.Args {
		name, val, _ := strings.Cut(strings.TrimLeft(w.Text, "+"), "=")
		switch name {
		case "hydra/launcher":
			launcher = val == "torchrun"
		case "hydra.launcher.nproc_per_node":
			n, _ = strconv.Atoi(val)
		}
	}
	if !launcher {
		return 0
	}
	return n
}

// hydraWord is the argument that says so.
func hydraWord(l *fact.Launch) fact.Word {
	for _, w := range l.Args {
		if strings.HasPrefix(strings.TrimLeft(w.Text, "+"), "hydra.launcher.nproc_per_node=") {
			return w
		}
	}
	return fact.Word{}
}

func localhost(v string) bool {
	h := v
	if i := strings.LastIndexByte(v, ':'); i >= 0 && !strings.Contains(v, "::") {
		h = v[:i]
	}
	h = strings.Trim(h, "[]")
	return h == "localhost" || strings.HasPrefix(h, "127.") || h == "::1" || h == "0.0.0.0"
}

// usesSrun reports whether the script names srun in live code at all: a function
// or string that could not be followed may use it. Commands with the indexes in
// but do not count.
func usesSrun(c *Ctx, but ...int) bool {
	for i := range c.S.Commands {
		x := &c.S.Commands[i]
		if x.Name == "srun" && !slices.Contains(but, i) {
			for j := range c.S.Steps {
				st := &c.S.Steps[j]
				if st.Cmd != i {
					continue
				}
				// srun hostname and the like start no training.
				inner := ""
				for k := i + 1; k < len(c.S.Commands); k++ {
					if c.S.Commands[k].Outer == i {
						inner = c.S.Commands[k].Name
						break
					}
				}
				if inner == "" || !ordinary[inner] && inner != "nvidia-smi" {
					return true
				}
			}
		}
	}
	t := c.code()
	for _, w := range []string{"=\"srun", "='srun", "=(srun", "LAUNCHER=", "\"srun"} {
		if strings.Contains(t, w) && !strings.Contains(w, "LAUNCHER") {
			return true
		}
	}
	return false
}

// perNode reports whether a launch is started once for each node on purpose:
// in a loop over nodes, or in a step bound to one node.
func (c *Ctx) perNode(l *fact.Launch) bool {
	st := c.stepOf(l)
	x := &c.S.Commands[st.Cmd]
	// A step of all nodes in a loop is no loop over nodes, but one over seeds.
	return st.Opt("nodelist") != nil || st.Opt("relative") != nil || x.Loop > 0 && (st.Unknown || st.EffNodes < 2 || given(l.NodeRank) && c.rankHole(l.NodeRank) == "")
}

// rankUse is a place where a variable of the task is expanded by the batch shell.
type rankUse struct {
	pos              fact.Pos
	variable, as     string
	harmless, export bool
	why              string
}

var rankNames = map[string]bool{"SLURM_PROCID": true, "SLURM_NODEID": true, "SLURM_LOCALID": true}

var rankWord = lazyre.New(`SLURM_(?:PROCID|NODEID|LOCALID)\b`)

// rankHole returns the variable of the task that the batch shell expands in a word.
func (c *Ctx) rankHole(w fact.Word) string {
	for _, h := range c.S.HolesOf(w.Val) {
		if h.Step || h.Def {
			continue
		}
		if rankNames[h.Name] && (h.Kind == "var" || h.Kind == "arith") {
			return h.Name
		}
		if h.Kind == "arith" { // $((8 * SLURM_NODEID + SLURM_LOCALID))
			if m := rankWord.FindString(h.Text); m != "" {
				return m
			}
		}
	}
	return ""
}

// rankUses lists the uses of SLURM_PROCID and its like that the batch shell
// expands and that mean a rank (F13, F14).
func (c *Ctx) rankUses() []rankUse {
	if !c.shared.ranked {
		c.shared.ranked = true
		for i := range c.S.Holes {
			if rankNames[c.S.Holes[i].Name] {
				c.shared.ranks = c.findRanks()
				break
			}
		}
	}
	return c.shared.ranks
}

func (c *Ctx) findRanks() []rankUse {
	var out []rankUse
	s := c.S
	one := func(st *fact.Step) (bool, string) {
		if st.EffNodes == 1 && st.EffTPN <= 1 && !st.Unknown || s.Request.EffectiveNodes <= 1 && c.nodes() == 1 && st.EffTasks <= 1 && s.Request.TasksPerNode <= 1 {
			return true, "one"
		}
		return false, ""
	}
	seen := map[fact.Pos]bool{}
	add := func(u rankUse) {
		if !seen[u.pos] {
			seen[u.pos] = true
			out = append(out, u)
		}
	}
	lightning := c.lightning()
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || !c.inSrun(l) {
			return
		}
		if v := c.rankHole(l.NodeRank); v != "" {
			u := rankUse{pos: l.NodeRank.Pos, variable: v, as: "node rank"}
			switch {
			case elastic(l) && l.Backend.Known && l.Backend.Text != "static" && l.Backend.Text != "":
				u.harmless, u.why = true, "c10d"
			case l.Kind == fact.LaunchAccelerate && l.Backend.Known && l.Backend.Text != "static" && l.Backend.Text != "":
				u.harmless, u.why = true, "c10d"
			case !l.Backend.Known && given(l.Backend):
				u.harmless, u.why = true, "c10d"
			case l.Standalone:
				u.harmless, u.why = true, "one"
			case st.EffNodes == 1 || c.nodes() <= 1 && st.EffNodes == 0 || c.perNode(l):
				u.harmless, u.why = true, "one"
			case l.Open:
				u.harmless, u.why = true, "c10d"
			}
			add(u)
		}
		for i, w := range l.Args {
			v := c.rankHole(w)
			if v == "" {
				continue
			}
			opt := w.Text
			if !strings.HasPrefix(opt, "-") && i > 0 {
				opt = l.Args[i-1].Text
			}
			opt, _, _ = strings.Cut(opt, "=")
			opt = strings.ReplaceAll(strings.TrimLeft(opt, "-"), "-", "_")
			u := rankUse{pos: w.Pos, variable: v, as: opt}
			switch opt {
			case "rank", "node_rank", "local_rank", "machine_rank", "global_rank", "dist_rank", "proc_id", "world_rank":
			default:
				continue
			}
			if ok, why := one(st); ok {
				u.harmless, u.why = true, why
			} else if lightning {
				u.harmless, u.why = true, "program"
			} else if elastic(l) && (opt == "rank" || opt == "local_rank" || opt == "node_rank") {
				u.harmless, u.why = true, "program"
			}
			add(u)
		}
	})
	for i := range s.Assigns {
		a := &s.Assigns[i]
		if a.Dead || a.File != "" || a.Unset {
			continue
		}
		switch a.Name {
		case "RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "MACHINE_RANK":
		default:
			continue
		}
		v := c.rankHole(a.Value)
		if v == "" {
			continue
		}
		u := rankUse{pos: a.Pos, variable: v, as: a.Name, export: true}
		if a.Step >= 0 {
			// env RANK=$SLURM_PROCID in front of the task's program.
			if s.Steps[a.Step].Tool != "srun" {
				continue
			}
			u.export = false
			if ok, why := one(&s.Steps[a.Step]); ok {
				u.harmless, u.why = true, why
			} else if lightning || c.launcherIn(a.Step) {
				u.harmless, u.why = true, "program"
			}
			add(u)
			continue
		}
		if !a.Export && !s.Exported(a.Name, 1<<30) {
			continue
		}
		// It matters to a program that reads it from the environment, in a step
		// of more than one task.
		plain, launcher, any := false, false, false
		c.live(func(l *fact.Launch, cmd *fact.ScriptCmd) {
			st := c.stepOf(l)
			if st == nil || !c.inSrun(l) || cmd.Seq < a.Seq {
				return
			}
			any = true
			if ok, _ := one(st); ok {
				return
			}
			switch {
			case distributed(l):
				launcher = true
			case l.Kind == fact.LaunchPython || l.Kind == fact.LaunchWrapper:
				plain = true
			}
		})
		switch {
		case !any:
			continue
		case plain && (a.Name == "RANK" || a.Name == "LOCAL_RANK") && !lightning:
		case plain && lightning:
			u.harmless, u.why = true, "program"
		case launcher:
			u.harmless, u.why = true, "program"
		case plain:
		default:
			u.harmless, u.why = true, "one"
		}
		add(u)
	}
	return out
}

// launcherIn reports a launcher of ranks in a step: it gives its workers ranks
// of their own.
func (c *Ctx) launcherIn(step int) bool {
	found := false
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) { found = found || l.Step == step && distributed(l) })
	return found
}

// bounds returns the numbers that a value can be.
func bounds(s *fact.Script, v string) (lo, hi int64, ok bool) { return s.Bounds(v) }

// slurmVars are the variables that Slurm sets for batch shells and tasks.
var slurmVars = set(`SLURM_ACCOUNT SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP
SLURM_CLUSTER_NAME SLURM_CLUSTERS SLURM_CONF SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE SLURM_CPU_FREQ_REQ SLURM_CPUS_ON_NODE SLURM_CPUS_PER_GPU SLURM_CPUS_PER_TASK
SLURM_CONTAINER SLURM_CONTAINER_ID SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE SLURM_EXPORT_ENV SLURM_GPU_BIND SLURM_GPU_FREQ SLURM_GPUS SLURM_GPUS_ON_NODE SLURM_GPUS_PER_NODE SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK
SLURM_GTIDS SLURM_HET_SIZE SLURM_HINT SLURM_JOB_ACCOUNT SLURM_JOB_CPUS_PER_NODE SLURM_JOB_DEPENDENCY SLURM_JOB_END_TIME SLURM_JOB_GID SLURM_JOB_GPUS SLURM_JOB_GRES SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_NODELIST
SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_JOB_PARTITION SLURM_JOB_QOS SLURM_JOB_RESERVATION SLURM_JOB_START_TIME SLURM_JOB_UID SLURM_JOB_USER SLURM_JOB_LICENSES SLURM_JOB_COMMENT SLURM_JOB_RESTART_COUNT SLURM_RESTART_COUNT
SLURM_LAUNCH_NODE_IPADDR SLURM_LOCALID SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_TYPE SLURM_MEM_BIND_VERBOSE SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_MPI_TYPE
SLURM_NODE_ALIASES SLURM_NODEFILE SLURM_NODEID SLURM_NPROCS SLURM_NTASKS SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_NODE SLURM_NTASKS_PER_SOCKET SLURM_OPEN_MODE SLURM_OVERCOMMIT SLURM_PRIO_PROCESS SLURM_PROCID SLURM_PROFILE
SLURM_SHARDS_ON_NODE SLURM_SRUN_COMM_HOST SLURM_SRUN_COMM_PORT SLURM_STEP_GPUS SLURM_STEP_ID SLURM_STEPID SLURM_STEP_LAUNCHER_PORT SLURM_STEP_NODELIST SLURM_STEP_NUM_NODES SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE
SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASK_PID SLURM_TASKS_PER_NODE SLURM_THREADS_PER_CORE SLURM_TOPOLOGY_ADDR SLURM_TOPOLOGY_ADDR_PATTERN SLURM_TRES_PER_TASK SLURM_UMASK SLURM_WCKEY SLURM_WORKING_CLUSTER SLURMD_NODENAME SLURM_OOM_KILL_STEP SLURM_KILL_BAD_EXIT
SLURM_TMPDIR SLURM_JOBTMP SLURM_JOB_TMP SLURM_JOB_USER SLURM_EXIT_CODE SLURM_JOB_EXIT_CODE SLURM_HOSTFILE SLURM_EXPORT SLURM_PARTITION SLURM_QOS SLURM_MEM SLURM_TIMELIMIT SLURM_TIME SLURM_NODES SLURM_GRES SLURM_PRIO SLURM_JOB SLURM_GPU_COUNT SLURM_RANK SLURM_WORLD_SIZE SLURM_SCRATCH SLURM_LOGS SLURM_LOG SLURM_HOST SLURM_HOSTS SLURM_NAME`)

// siteVar reports names that sites use for their own folders.
func siteVar(n string) bool {
	return strings.Contains(n, "TMP") || strings.Contains(n, "SCRATCH") || strings.Contains(n, "DIR") && n != "SLURM_SUMBIT_DIR"
}

// set makes a set of words.
func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// knownEnv are variables of NCCL, PyTorch and CUDA that people set.
var knownEnv = set(`NCCL_ALGO NCCL_ALLOC_P2P_NET_LL_BUFFERS NCCL_ASYNC_ERROR_HANDLING NCCL_AVOID_RECORD_STREAMS NCCL_BLOCKING_WAIT NCCL_BUFFSIZE NCCL_CGA_CLUSTER_SIZE NCCL_CHECKS_DISABLE NCCL_CHECK_POINTERS NCCL_COLLNET_ENABLE NCCL_COLLNET_NODE_THRESHOLD
NCCL_COMM_BLOCKING NCCL_COMM_ID NCCL_CONF_FILE NCCL_CREATE_THREAD_CONTEXT NCCL_CROSS_NIC NCCL_CUMEM_ENABLE NCCL_CUMEM_HOST_ENABLE NCCL_DEBUG NCCL_DEBUG_FILE NCCL_DEBUG_SUBSYS NCCL_DESYNC_DEBUG NCCL_DMABUF_ENABLE NCCL_DEBUG_NOWARN NCCL_FILES NCCL_GRAPH_DUMP_FILE
NCCL_GRAPH_FILE NCCL_GRAPH_MIXING_SUPPORT NCCL_GRAPH_REGISTER NCCL_HOME NCCL_HOSTID NCCL_IB_ADAPTIVE_ROUTING NCCL_IB_ADDR_FAMILY NCCL_IB_ADDR_RANGE NCCL_IB_AR_THRESHOLD NCCL_IB_CUDA_SUPPORT NCCL_IB_DISABLE NCCL_IB_ECE_ENABLE NCCL_IB_FIFO_TC NCCL_IB_GID_INDEX NCCL_IB_HCA
NCCL_IB_MERGE_NICS NCCL_IB_MERGE_VFS NCCL_IB_PCI_RELAXED_ORDERING NCCL_IB_PKEY NCCL_IB_QPS_PER_CONNECTION NCCL_IB_RETURN_ASYNC_EVENTS NCCL_IB_RETRY_CNT NCCL_IB_ROCE_VERSION_NUM NCCL_IB_SL NCCL_IB_SPLIT_DATA_ON_QPS NCCL_IB_TC NCCL_IB_TIMEOUT NCCL_IB_USE_INLINE NCCL_IB_WARN_RAIL_LOCAL
NCCL_IGNORE_CPU_AFFINITY NCCL_IGNORE_DISABLED_P2P NCCL_INCLUDE_DIR NCCL_L1_SHARED_MEMORY_CARVEOUT NCCL_LAUNCH_MODE NCCL_LAUNCH_ORDER_IMPLICIT NCCL_LIB_DIR NCCL_LL128_BUFFSIZE NCCL_LL_BUFFSIZE NCCL_LL_THRESHOLD NCCL_LOCAL_REGISTER NCCL_MAX_CTAS NCCL_MAX_NCHANNELS NCCL_MAX_NRINGS NCCL_MAX_P2P_NCHANNELS
NCCL_MIN_CTAS NCCL_MIN_NCHANNELS NCCL_MIN_NRINGS NCCL_MIN_P2P_NCHANNELS NCCL_MNNVL_ENABLE NCCL_NCHANNELS_PER_NET_PEER NCCL_NCHANNELS_PER_PEER NCCL_NET NCCL_NET_DISABLE_INTRA NCCL_NET_FORCE_FLUSH NCCL_NET_FORCE_MERGE NCCL_NET_GDR_C2C NCCL_NET_GDR_LEVEL NCCL_NET_GDR_READ NCCL_NET_MERGE_LEVEL NCCL_NET_OVERHEAD NCCL_NET_PLUGIN NCCL_NET_SHARED_BUFFERS NCCL_NET_SHARED_COMMS
NCCL_NSOCKS_PERTHREAD NCCL_NTHREADS NCCL_NVB_DISABLE NCCL_NVB_PRECONNECT NCCL_NVLS_CHUNKSIZE NCCL_NVLS_ENABLE NCCL_NVLS_NCHANNELS NCCL_NVLSTREE_MAX_CHUNKSIZE NCCL_OOB_NET_ENABLE NCCL_OOB_NET_IFNAME NCCL_P2P_DIRECT_DISABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_P2P_LL_THRESHOLD NCCL_P2P_NET_CHUNKSIZE NCCL_P2P_NVL_CHUNKSIZE NCCL_P2P_PCI_CHUNKSIZE
NCCL_P2P_PXN_LEVEL NCCL_P2P_READ_ENABLE NCCL_P2P_USE_CUDA_MEMCPY NCCL_PATH NCCL_PROFILE_PRIMS NCCL_PROFILER_PLUGIN NCCL_PROGRESS_APPENDOP_FREQ NCCL_PROTO NCCL_PROXY_APPEND_BATCH_SIZE NCCL_PXN_C2C NCCL_PXN_DISABLE NCCL_RAS_ADDR NCCL_RAS_ENABLE NCCL_RAS_TIMEOUT_FACTOR NCCL_REPORT_CONNECT_PROGRESS NCCL_ROOT NCCL_RUNTIME_CONNECT NCCL_SET_STACK_SIZE NCCL_SET_THREAD_NAME NCCL_SHARED_BUFFSIZE
NCCL_SHM_DISABLE NCCL_SHM_LOCALITY NCCL_SHM_MEMCPY_MODE NCCL_SHM_USE_CUDA_MEMCPY NCCL_SINGLE_PROC_MEM_REG_ENABLE NCCL_SINGLE_RING_THRESHOLD NCCL_SOCKET_FAMILY NCCL_SOCKET_IFNAME NCCL_SOCKET_INLINE NCCL_SOCKET_MIN_TASKSIZE NCCL_SOCKET_NTHREADS NCCL_SOCKET_POLL_TIMEOUT_MSEC NCCL_SOCKET_RETRY_CNT NCCL_SOCKET_RETRY_SLEEP_MSEC
NCCL_STORE_TIMEOUT NCCL_THREAD_THRESHOLDS NCCL_TIMEOUT NCCL_TOPO_DUMP_FILE NCCL_TOPO_FILE NCCL_TOPO_FILE_PATH NCCL_TREE_THRESHOLD NCCL_TUNER_CONFIG_PATH NCCL_TUNER_PLUGIN NCCL_UID_STAGGER_RATE NCCL_UID_STAGGER_THRESHOLD NCCL_VERSION NCCL_WARN_ENABLE_DEBUG_INFO NCCL_WIN_ENABLE NCCL_WORK_ARGS_BYTES NCCL_WORK_FIFO_DEPTH NCCL_WORK_FIFO_BYTES NCCL_ENABLE_MONITORING
NCCL_CUDA_PATH NCCL_PLUGIN_P2P NCCL_FASTRAK_CTRL_DEV NCCL_FASTRAK_IFNAME NCCL_GPUDIRECTTCPX_SOCKET_IFNAME NCCL_DEBUG_TIMESTAMP_FORMAT NCCL_MULTI_RANK_GPU_ENABLE NCCL_NETDEVS_POLICY NCCL_NVLINK_DISABLE NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE NCCL_P2P_SCHEDULE_GROUP_SIZE NCCL_SOCKET_IFNAMES NCCL_IB_QPS_PER_CONN NCCL_PROTOCOL NCCL_EFA_PROVIDER
TORCH_NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_AVOID_RECORD_STREAMS TORCH_NCCL_BLOCKING_WAIT TORCH_NCCL_DESYNC_DEBUG TORCH_NCCL_DUMP_ON_TIMEOUT TORCH_NCCL_ENABLE_MONITORING TORCH_NCCL_ENABLE_TIMING TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC TORCH_NCCL_HIGH_PRIORITY TORCH_NCCL_PROPAGATE_ERROR TORCH_NCCL_TRACE_BUFFER_SIZE TORCH_NCCL_DEBUG_INFO_TEMP_FILE TORCH_NCCL_USE_COMM_NONBLOCKING TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC TORCH_NCCL_COORD_CHECK_MILSEC TORCH_NCCL_CUDA_EVENT_CACHE TORCH_NCCL_NONBLOCKING_TIMEOUT TORCH_NCCL_RETHROW_CUDA_ERRORS TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN TORCH_FR_BUFFER_SIZE TORCH_FR_DUMP_TEMP_FILE
TORCH_CPP_LOG_LEVEL TORCH_CUDA_ARCH_LIST TORCH_DEVICE_BACKEND_AUTOLOAD TORCH_DISTRIBUTED_DEBUG TORCH_DISTRIBUTED_DETAIL TORCH_ELASTIC TORCH_EXTENSIONS_DIR TORCH_HOME TORCH_LOGS TORCH_SHOW_CPP_STACKTRACES TORCH_SYMBOLIZE_MODE TORCH_USE_CUDA_DSA TORCH_COMPILE_DEBUG TORCH_COMPILE_DISABLE TORCH_TRACE TORCH_BLAS_PREFER_HIPBLASLT TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL TORCH_INDUCTOR_CACHE_DIR TORCHINDUCTOR_CACHE_DIR TORCH_PATH TORCH_DIR TORCH_LIB TORCH_CACHE TORCH_DATA_DIR TORCH_MODEL_ZOO TORCH_CUDNN_V8_API_ENABLED TORCH_ALLOW_TF32_CUBLAS_OVERRIDE TORCH_CACHE_DIR TORCH_HUB TORCH_HUB_DIR
PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF PYTORCH_HIP_ALLOC_CONF PYTORCH_JIT PYTORCH_KERNEL_CACHE_PATH PYTORCH_NO_CUDA_MEMORY_CACHING PYTORCH_NVML_BASED_CUDA_CHECK PYTORCH_ENABLE_MPS_FALLBACK PYTORCH_PRETRAINED_BERT_CACHE PYTORCH_TRANSFORMERS_CACHE PYTORCH_VERSION PYTORCH_NVFUSER_DISABLE
CUDA_CACHE_DISABLE CUDA_CACHE_MAXSIZE CUDA_CACHE_PATH CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER CUDA_HOME CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_MPS_LOG_DIRECTORY CUDA_MPS_PIPE_DIRECTORY CUDA_PATH CUDA_ROOT CUDA_VERSION CUDA_VISIBLE_DEVICES CUDA_DIR CUDA_LIB CUDA_INC CUDA_INC_DIR CUDA_BIN CUDA_LIB_DIR CUDA_INCLUDE_DIR CUDA_TOOLKIT_PATH CUDA_TOOLKIT_ROOT_DIR CUDA_CACHE_DIR CUDA_SCALE_LAUNCH_QUEUES CUDA_EXT CUDA_ARCH CUDA_NVCC_EXECUTABLE
OMP_DISPLAY_ENV OMP_DYNAMIC OMP_NESTED OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND OMP_SCHEDULE OMP_STACKSIZE OMP_THREAD_LIMIT OMP_WAIT_POLICY OMP_MAX_ACTIVE_LEVELS TOKENIZERS_PARALLELISM`)

func isUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		if !(s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9' || s[i] == '+' || s[i] == '-') {
			return false
		}
	}
	return s != ""
}

func envName(x *fact.ScriptCmd) string {
	if len(x.Words) > 2 {
		return x.Words[2].Text
	}
	return ""
}

// ordinary are commands that define no shell function and start no training.
var ordinary = set(`echo printf cat ls cp mv rm mkdir rmdir ln chmod chown touch date hostname uname whoami id pwd env printenv export declare local readonly typeset
grep egrep fgrep sed awk gawk tr cut sort uniq head tail wc tee find du df free top ps pgrep sleep seq bc expr which type cd pushd popd set unset ulimit umask shopt trap wait true false : [ test read exit return shift
nvidia-smi rocm-smi nvcc gcc make cmake git wget curl tar unzip zip gzip gunzip pigz rsync scp scontrol sinfo squeue sacct conda mamba python python3 pip pip3 srun torchrun mpirun accelerate deepspeed
lscpu numactl lspci basename dirname realpath readlink mktemp ip ifconfig ss netstat lsof getent shuf nproc kill pkill time nohup timeout hash command let ray singularity apptainer docker`)

func words(ws []fact.Word) []string {
	var out []string
	for _, w := range ws {
		if !strings.HasPrefix(w.Text, "-") {
			out = append(out, w.Text)
		}
	}
	return out
}

// pythonModule reports modules that bring a python of their own.
func pythonModule(m string) bool {
	m = strings.ToLower(m)
	if i := strings.LastIndexByte(m, '/'); i > 0 && !strings.Contains(m[:i], "python") && !strings.Contains(m[:i], "conda") && !strings.Contains(m[:i], "torch") {
		m = m[i+1:]
	}
	for _, p := range []string{"python", "pytorch", "anaconda", "miniconda", "miniforge", "mambaforge", "conda", "tensorflow", "cray-python", "scipy-stack", "torch", "intelpython"} {
		if strings.HasPrefix(m, p) {
			return true
		}
	}
	return false
}

// installer recognises commands that install packages; args are what follows.
func installer(x *fact.ScriptCmd) (string, []string) {
	switch n := x.Name; {
	case len(x.Words) < 3, n != "uv" && n != "conda" && n != "mamba" && n != "micromamba" && !strings.HasPrefix(n, "pip") && !strings.HasPrefix(n, "python"):
		return "", nil
	}
	var t []string
	for _, w := range x.Words {
		t = append(t, w.Text)
	}
	if len(t) < 3 {
		return "", nil
	}
	switch n := x.Name; {
	case n == "pip" || n == "pip3" || strings.HasPrefix(n, "pip3."):
		if t[1] == "install" {
			return "pip install", t[2:]
		}
	case strings.HasPrefix(n, "python"):
		for i := 1; i+2 < len(t); i++ {
			if t[i] == "-m" && (t[i+1] == "pip" || t[i+1] == "pip3") && t[i+2] == "install" {
				return "python -m pip install", t[i+3:]
			}
		}
	case n == "conda" || n == "mamba" || n == "micromamba":
		if t[1] == "install" || t[1] == "update" || t[1] == "upgrade" {
			return n + " " + t[1], t[2:]
		}
	case n == "uv":
		if t[1] == "pip" && t[2] == "install" {
			return "uv pip install", t[3:]
		}
	}
	return "", nil
}

// localEnv reports whether an install goes to an environment of this job.
func localEnv(c *Ctx, x *fact.ScriptCmd) bool {
	inTmp := false // the working directory is the job's own
	for i := range c.S.Commands {
		y := &c.S.Commands[i]
		if y.Seq > x.Seq {
			break
		}
		switch y.Name {
		case "cd", "pushd":
			inTmp = len(y.Words) > 1 && (strings.Contains(y.Words[1].Text, "TMPDIR") || strings.HasPrefix(y.Words[1].Text, "/tmp"))
		case "virtualenv", "source", ".", "conda", "python", "python3", "uv", "mamba", "micromamba":
			for _, w := range y.Words {
				if strings.Contains(w.Text, "TMPDIR") || strings.HasPrefix(w.Text, "/tmp") || strings.Contains(w.Text, "SLURM_JOB_ID") || strings.Contains(w.Text, "/local") && strings.Contains(w.Text, "scratch") {
					return true
				}
				if inTmp && strings.HasSuffix(w.Text, "/bin/activate") && !strings.HasPrefix(w.Text, "/") && !strings.HasPrefix(w.Text, "~") && !strings.HasPrefix(w.Text, "$") {
					return true
				}
			}
		}
	}
	if x.Container == nil {
		return false
	}
	switch x.Container.Tool {
	case "docker", "podman":
		return true // thrown away with the container
	case "enroot":
		return true
	case "pyxis":
		// Read-only unless asked: then pip falls back to ~/.local, or an
		// environment on a mounted folder was activated.
		if x.Step >= 0 {
			st := &c.S.Steps[x.Step]
			return st.Opt("container-writable") != nil || st.Opt("container-save") != nil
		}
	}
	return false
}

// buildsEnv reports whether the job is there to make an environment: its name
// says so, or nothing that trains follows.
func (c *Ctx) buildsEnv() bool {
	return envJob.MatchString(strings.ToLower(path.Base(c.S.Name) + " " + c.S.Request.JobName))
}

var envJob = lazyre.New(`install|setup|(?:build|create|make)[-_]?env`)

// trains reports whether the script starts a training program at all.
func trains(c *Ctx) bool {
	found := false
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if training(l) && l.Program != "deepspeed.env_report" || l.Kind == fact.LaunchRay || l.Kind == fact.LaunchWrapper && l.Step >= 0 {
			found = true
		}
	})
	return found
}

func readAnywhere(c *Ctx, name string) bool {
	for i := range c.S.Reads {
		if c.S.Reads[i].Name == name {
			return true
		}
	}
	return false
}

// localName reports names that nobody exports at submission: small letters only.
func localName(n string) bool {
	switch n {
	case "http_proxy", "https_proxy", "no_proxy", "ftp_proxy", "all_proxy", "user", "home":
		return false
	}
	if len(n) < 2 || n[0] == '_' {
		return false
	}
	for i := 0; i < len(n); i++ {
		if n[i] >= 'A' && n[i] <= 'Z' {
			return false // groups and sites export names such as six_ALL_CCFRWORK
		}
	}
	return true
}

func isFunc(c *Ctx, name string) bool {
	for _, f := range c.S.Funcs {
		if f == name {
			return true
		}
	}
	return false
}

// oldTorch reports signs that a script pins a torch older than the rename.
func oldTorch(c *Ctx) bool { return oldTorchRe.MatchString(c.lower()) }

var oldTorchRe = lazyre.New(`(?:pytorch|torch)[-_/=]{1,2}(?:gpu[/-])?v?(?:0|1)\.\d+`)

// outputDir finds a log folder that may be missing (Slurm before 23.02).
func outputDir(c *Ctx, mkdir bool) {
	if !c.submitted() || c.S.CallsSbatch {
		return
	}
	for _, name := range []string{"output", "error"} {
		d := c.S.Opt(name)
		if d == nil {
			continue
		}
		i := strings.LastIndexByte(d.Value, '/')
		if i <= 0 || strings.HasPrefix(d.Value, "/dev/") || dollar(d.Value) || strings.HasPrefix(d.Value, "~") {
			continue
		}
		dir := d.Value[:i]
		if dir == "." || dir == ".." {
			continue
		}
		made := 0
		c.cmds(func(x *fact.ScriptCmd) {
			for _, w := range x.Words[1:] {
				if strings.Trim(strings.TrimPrefix(w.Text, "./"), "/") == strings.Trim(strings.TrimPrefix(dir, "./"), "/") || strings.HasPrefix(strings.TrimPrefix(w.Text, "./"), strings.TrimPrefix(dir, "./")+"/") {
					made = x.Line
				}
			}
		}, "mkdir")
		if mkdir != (made > 0) || c.isDir(dir) {
			continue
		}
		if mkdir {
			c.Hit(d.ValuePos, "dir", dir, "line", strconv.Itoa(made))
		} else {
			c.Hit(d.ValuePos, "dir", dir)
		}
		return
	}
}
