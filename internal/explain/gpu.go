package explain

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// decideDriver judges messages about driver, fabric and device initialisation.
func (v *view) decideDriver() {
	over := []string{"gpu-not-allocated", "gpu-driver-missing", "gpu-visible-devices-wrong", "run-exception"}
	old := v.ev("S185")
	if len(old) > 0 {
		b := v.build()
		if o, n, cmd, ok := v.replaced(); ok && (!explicitTorch(cmd) || flavour(o.V) != "" && flavour(n.V) == "") {
			c := v.add(cand{id: "torch-replaced-by-dependency", cert: diag.Proven, args: wanted(o, n, cmd), over: append(over, "torch-needs-newer-driver")}, cap4(old)...)
			v.said(c, o, n)
		} else if ss, dir, ok := v.userSiteShadows(b); ok {
			c := v.add(cand{id: "env-user-site-shadows", cert: diag.Proven, args: diag.Args{"dir": dir}, over: append(over, "torch-needs-newer-driver")}, cap4(old)...)
			v.said(c, ss...)
		} else if strings.Contains(old[0].Text, "/.local/lib/python") && v.condaEnvNamed() {
			c := v.add(cand{id: "env-user-site-shadows", cert: diag.Likely, over: append(over, "torch-needs-newer-driver")}, cap4(old)...)
			c.needs = append(c.needs, "python -c 'import torch; print(torch.__file__)'", "PYTHONNOUSERSITE=1 python -c 'import torch; print(torch.__file__)'")
		} else {
			c := v.add(cand{id: "torch-needs-newer-driver", cert: diag.Proven, args: v.torchArgs(b), over: over}, cap4(old)...)
			v.said(c, first(v.facts(kind.Driver), 1)...)
		}
	}
	if es := v.ev("S191", "S192", "S224"); len(es) > 0 {
		c := v.add(cand{id: "gpu-driver-library-mismatch", cert: diag.Proven, over: over}, cap4(es)...)
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && strings.Contains(val, "compat") {
			v.said(c, s)
		}
		v.said(c, first(v.facts(kind.Driver), 1)...)
	}
	if es := v.ev("S190", "S156", "S157"); len(es) > 0 {
		c := v.add(cand{id: "gpu-fabric-manager", cert: diag.Proven, over: over}, cap4(es)...)
		v.said(c, first(v.facts(kind.FM), 1)...)
	}
	if es := v.ev("S217"); len(es) > 0 && !v.candidate("gpu-fabric-manager") {
		cert := diag.Likely
		for _, e := range es {
			if strings.Contains(e.Text, "nvls") || strings.Contains(e.Text, "NVLS") {
				cert = diag.Proven
			}
		}
		v.add(cand{id: "gpu-fabric-manager", cert: cert, over: over}, cap4(es)...)
	}
	v.used["S189"] = true
	if es := v.ev("S183"); len(es) > 0 && len(old) == 0 {
		b := v.build()
		switch ev, ok := v.containerWithoutGPU(); {
		case ok:
			c := v.add(cand{id: "gpu-not-in-container", cert: diag.Proven, over: over}, cap4(es)...)
			c.ev = append(c.ev, ev...)
			v.said(c, first(v.facts(kind.GPU), 1)...)
		default:
			c := v.add(cand{id: "torch-needs-newer-driver", cert: diag.Likely, args: v.torchArgs(b), over: over}, cap4(es)...)
			v.said(c, first(v.facts(kind.Driver), 1)...)
			if len(v.facts(kind.Driver)) > 0 {
				c.cert = diag.Proven
			} else {
				c.needs = append(c.needs, "nvidia-smi")
			}
			for _, n := range []string{"CUDA_VERSION"} {
				if _, s, ok := v.env(n); ok {
					v.said(c, s)
				}
			}
		}
	}
	v.decideUnknownInit()
}

func (v *view) condaEnvNamed() bool {
	for _, c := range v.l.Commands {
		if c.Env != "" {
			return true
		}
	}
	_, _, a := v.env("CONDA_PREFIX")
	_, _, b := v.env("VIRTUAL_ENV")
	return a || b
}

func (v *view) candidate(id string) bool {
	for i := range v.cands {
		if v.cands[i].id == id {
			return true
		}
	}
	return false
}

// decideUnknownInit judges "unknown error", unless the kernel log or
// nvidia-smi show a lost GPU.
func (v *view) decideUnknownInit() {
	es := v.ev("S188", "S194")
	if len(es) == 0 || v.lostGPU() {
		return
	}
	c := v.add(cand{id: "gpu-init-unknown-error", cert: diag.Likely, over: []string{"gpu-not-allocated", "gpu-visible-devices-wrong", "run-exception"}}, cap4(es)...)
	devs := v.facts(kind.Dev)
	if len(devs) > 0 {
		uvm := false
		for _, d := range devs {
			uvm = uvm || strings.Contains(d.V, "uvm")
		}
		if !uvm {
			c.cert = diag.Proven
			c.args = mergeArgs(c.args, diag.Args{"variant": ""})
			v.said(c, first(devs, 3)...)
			return
		}
	}
	c.needs = append(c.needs, "ls -l /dev/nvidia*", "nvidia-smi", "dmesg | grep -i -e NVRM -e Xid")
}

var (
	hwXid = map[string]bool{"48": true, "61": true, "62": true, "63": true, "64": true, "74": true, "79": true, "92": true, "94": true, "95": true, "119": true, "120": true, "121": true, "140": true, "143": true}
)

func (v *view) xids(hard bool) []fact.Said {
	var out []fact.Said
	begin := v.began()
	for _, s := range v.facts(kind.Xid) {
		if hwXid[s.V] == hard && (begin == 0 || s.TK != fact.TimeFull || s.Time >= begin-day) {
			out = append(out, s)
		}
	}
	return out
}

// day in milliseconds: the kernel's log and the job's may use other time zones.
const day = 24 * 3600 * 1000

// began is the first stamp of the logs that tell of training, 0 when none tells.
func (v *view) began() int64 {
	trains := map[int]bool{}
	for _, s := range v.l.Streams {
		trains[s.File] = true
	}
	var t int64
	for _, s := range v.facts("first-time") {
		if trains[s.File] && s.TK == fact.TimeFull && (t == 0 || s.Time < t) {
			t = s.Time
		}
	}
	return t
}

// faults are errors that nvidia-smi -q shows of this boot: uncorrectable ones of
// the memory, rows that wait to be remapped, a reset that it asks for.
func (v *view) faults() []fact.Said {
	var out []fact.Said
	for _, s := range v.facts(kind.Hardware) {
		switch s.Name {
		case "ecc", "remap", "recovery", "err":
			out = append(out, s)
		}
	}
	return out
}

func (v *view) lostGPU() bool {
	return v.has("S330", "S226", "log-nvidia-smi-gpu-lost", "S213", "S214") || len(v.xids(true)) > 0
}

// decideHardware judges faults of the GPU itself and kernel faults of a program.
func (v *view) decideHardware() {
	es := v.ev("S213", "S214", "S330", "S226", "log-nvidia-smi-gpu-lost")
	xid := v.xids(true)
	v.used["S329"] = true
	soft := v.ev("S208", "S209", "S210", "S212", "log-hip-illegal-access", "log-cuda-kernel-exception")
	launch := v.ev("S211")
	unknown := v.peek("S194", "S188", "S195", "S402")
	faults := v.faults()
	if len(es)+len(xid) == 0 && len(faults) > 0 && len(soft) == 0 && (len(launch)+len(unknown) > 0 || v.dead) {
		c := v.add(cand{id: "gpu-hardware-fault", cert: diag.Likely, over: []string{"gpu-kernel-fault", "gpu-init-unknown-error", "run-collective-hang"}}, cap4(append(launch[:len(launch):len(launch)], unknown...))...)
		v.said(c, first(faults, 3)...)
		c.needs = append(c.needs, "dmesg -T | grep -i -e NVRM -e Xid")
		if len(c.where) == 0 {
			c.tier = 1
			c.where = append(c.where, v.where(c.at))
		}
		return
	}
	if len(es) > 0 || len(xid) > 0 {
		c := v.add(cand{id: "gpu-hardware-fault", cert: diag.Proven, over: []string{"gpu-kernel-fault", "gpu-init-unknown-error", "run-exception", "run-collective-hang", "run-native-crash", "gpu-not-allocated"}}, cap4(es)...)
		v.said(c, first(xid, 4)...)
		c.args = mergeArgs(c.args, diag.Args{})
		if len(xid) > 0 {
			c.args["xid"], c.args["bus"] = xid[0].V, xid[0].Name
		}
		// the rank is in the job's own log, the fault perhaps in the kernel's
		added := false
		for _, e := range append(append([]*fact.Event{}, launch...), unknown...) {
			if len(c.where) < 6 {
				c.where = append(c.where, v.where(e.Place))
				c.ev = append(c.ev, v.evidence(e.Place, e.Text))
				added = true
			}
		}
		if r, p, ok := v.absentRank(); ok && !added {
			rr := r
			w := v.where(p)
			w.Rank = &rr
			w.Line, w.File = 0, ""
			c.where = append(c.where, w)
		}
		if n := v.nodeOfFile(c); n != "" {
			for i := range c.where {
				if c.where[i].Node == "" {
					c.where[i].Node = n
				}
			}
		}
		return
	}
	if len(soft) > 0 {
		c := v.add(cand{id: "gpu-kernel-fault", cert: diag.Proven, over: []string{"run-exception", "run-collective-hang"}}, cap4(soft)...)
		for _, e := range v.peek("S393") {
			c.ev = append(c.ev, v.evidence(e.Place, e.Text))
			break
		}
		v.said(c, first(v.xids(false), 1)...)
		return
	}
	if len(launch) > 0 {
		c := v.add(cand{id: "gpu-kernel-fault", cert: diag.Possible, over: []string{"run-exception"}}, cap4(launch)...)
		c.needs = append(c.needs, "dmesg | grep -i -e NVRM -e Xid", "nvidia-smi")
	}
}

// nodeOfFile guesses the node of a kernel log from the names of its file and the job's nodes.
func (v *view) nodeOfFile(c *cand) string {
	for _, e := range c.ev {
		if e.Node != "" {
			return e.Node
		}
		for _, x := range v.l.Exits {
			if x.Node != "" && strings.Contains(e.Path, x.Node) {
				return x.Node
			}
		}
	}
	return ""
}

// absentRank returns the one rank of which the others' watchdogs wait: it has
// no timeout of its own, and its task was killed instead of aborting.
func (v *view) absentRank() (int, fact.Place, bool) {
	for _, x := range v.l.Exits {
		if x.By == "srun" && x.Code == -9 && !v.tasksAreLaunchers() && !strings.ContainsAny(x.Tasks, ",-") {
			if r, err := strconv.Atoi(x.Tasks); err == nil && len(v.l.Works) > 0 && !v.timedOut(r) {
				return r, x.Place, true
			}
		}
	}
	if r, ok := v.missingWorkRank(); ok {
		return r, fact.Place{}, true
	}
	return -1, fact.Place{}, false
}

func (v *view) timedOut(rank int) bool {
	for _, w := range v.l.Works {
		if w.Rank == rank {
			return true
		}
	}
	return false
}

// missingWorkRank returns the single rank without a watchdog line when all others have one.
func (v *view) missingWorkRank() (int, bool) {
	have := map[int]bool{}
	top := -1
	for _, w := range v.l.Works {
		if w.Rank >= 0 {
			have[w.Rank] = true
			top = max(top, w.Rank)
		}
	}
	if len(have) < 2 {
		return -1, false
	}
	missing := -1
	n := v.worldSize()
	if n == 0 {
		n = top + 1
	}
	for r := 0; r < n; r++ {
		if !have[r] {
			if missing >= 0 {
				return -1, false
			}
			missing = r
		}
	}
	return missing, missing >= 0
}

// worldSize as far as the input tells; 0: not told.
func (v *view) worldSize() int {
	for _, s := range v.l.Listing.Facts {
		if s.Kind == kind.Init {
			if n, err := strconv.Atoi(s.Aux); err == nil {
				return n
			}
		}
	}
	return 0
}

// decideMemory judges GPU memory.
func (v *view) decideMemory() {
	es := v.ev("S206", "S221", "S155", "S540", "log-hip-out-of-memory")
	for _, e := range v.ev("S207") {
		if strings.Contains(e.Text, "CUDA") || strings.Contains(e.Text, "Cuda") || strings.Contains(e.Text, "alloc.h") || strings.Contains(e.Text, "cuda") {
			es = append(es, e)
		}
	}
	for _, x := range v.excWith("Triton Error [CUDA]: out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "OUT_OF_MEMORY: Out of memory allocating", "failed to allocate on device") {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300)})
	}
	for _, x := range v.gpuOOM() {
		es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300), Rule: "", Args: nil})
	}
	es = uniqLines(es)
	v.sortEvents(es)
	if len(es) == 0 {
		return
	}
	v.sharedGPU(es)
	c := v.add(cand{id: "gpu-out-of-memory", cert: diag.Proven, over: []string{"run-exception", "run-collective-hang", "run-ranks-diverged", "run-rank-slow"}}, es...)
	if v.rankOf(es[0].Place) < 0 {
		if m := oomGPU.FindStringSubmatch(es[0].Text); m != nil {
			r, _ := strconv.Atoi(m[1])
			if len(v.nodesSeen()) <= 1 {
				rr := r
				c.where[0].Rank = &rr
			}
		} else if x := v.nearRank(es[0]); x >= 0 {
			rr := x
			c.where[0].Rank = &rr
		}
	}
	if c.where[0].Node == "" {
		if ns := v.nodesSeen(); len(ns) == 1 {
			c.where[0].Node = ns[0]
		}
	}
}

func uniqLines(es []*fact.Event) []*fact.Event {
	seen := map[[2]int]bool{}
	var out []*fact.Event
	for _, e := range es {
		k := [2]int{e.File, e.Line}
		if !seen[k] {
			seen[k] = true
			out = append(out, e)
		}
	}
	return out
}

var oomGPU = lazyre.New(`\bGPU (\d+)\b`)

// gpuOOM returns exceptions about the memory of a GPU; Ray has one of the same
// name about that of the host.
func (v *view) gpuOOM() []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.excTyped("OutOfMemoryError") {
		if !strings.HasPrefix(x.Type, "ray.") && !strings.Contains(x.Message, "memory on the node") && !strings.Contains(x.Message, "node running low on memory") {
			out = append(out, x)
		}
	}
	return out
}

func (v *view) excTyped(suffix string) []*fact.Exception {
	var out []*fact.Exception
	for _, x := range v.exc {
		if strings.HasSuffix(x.Type, suffix) {
			out = append(out, x)
		}
	}
	return out
}

// nearRank takes the rank of a line of the same process nearby.
func (v *view) nearRank(e *fact.Event) int {
	for _, s := range v.facts(kind.Init) {
		if s.Node == e.Node && s.PID == e.PID && e.PID != 0 {
			r, err := strconv.Atoi(s.Name)
			if err == nil {
				return r
			}
		}
	}
	return -1
}

// nodesSeen lists the hosts that events, exits and facts name.
func (v *view) nodesSeen() []string {
	set := map[string]bool{}
	for _, x := range v.l.Exits {
		if x.Node != "" {
			set[strings.SplitN(x.Node, ".", 2)[0]] = true
		}
	}
	for _, s := range v.l.Listing.Facts {
		if s.Kind == kind.Init && s.Node != "" {
			set[s.Node] = true
		}
	}
	out := make([]string, 0, len(set))
	for n := range set {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// decideNoGPU judges "no GPU": no device is visible, no driver is found.
func (v *view) decideNoGPU() {
	none := v.ev("S011", "S195", "S196", "S187", "S322")
	noDriver := v.ev("S186", "S225", "S232", "S323", "S325")
	cudaNA := v.excWith("Cuda is not available", "Torch is not able to use GPU", "CUDA is not available", "No CUDA runtime is found")
	for _, x := range v.exc {
		if assertsCUDA(x) || dividesByGPUs(x) {
			cudaNA = append(cudaNA, x)
		}
	}
	if len(none)+len(noDriver)+len(cudaNA)+len(v.peek("S421", "S422")) == 0 {
		return
	}
	none = append(none, v.ev("S421", "S422")...)
	for _, id := range []string{"torch-needs-newer-driver", "gpu-driver-library-mismatch", "gpu-fabric-manager", "gpu-init-unknown-error", "torch-cpu-build", "torch-wrong-accelerator", "torch-replaced-by-dependency", "env-user-site-shadows", "gpu-hardware-fault", "gpu-not-in-container", "torch-platform-has-no-nccl"} {
		if v.candidate(id) {
			return
		}
	}
	v.gpuMissing(append(append([]*fact.Event{}, noDriver...), append(none, noBackendEvents(cudaNA)...)...))
}

var (
	containerRe = lazyre.New(`\b(?:singularity|apptainer)\s+(?:-\S+\s+)*(?:exec|run|shell|instance start)\b`)
	dockerRe    = lazyre.New(`\b(?:docker|podman|nerdctl)\s+(?:-\S+\s+)*run\b`)
	nvRe        = lazyre.New(`\s--(?:nv|nvccli|rocm)\b`)
	gpusRe      = lazyre.New(`\s--gpus\b|--device[ =]\S*nvidia|--runtime[ =]nvidia|nvidia\.com/gpu`)
)

// containerWithoutGPU finds the command that starts a container without its GPUs.
func (v *view) containerWithoutGPU() ([]fact.Evidence, bool) {
	check := func(t string) bool {
		return containerRe.MatchString(t) && !nvRe.MatchString(t) && !strings.Contains(t, "APPTAINER_NV") && !strings.Contains(t, "SINGULARITY_NV") ||
			dockerRe.MatchString(t) && !gpusRe.MatchString(t)
	}
	var out []fact.Evidence
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			c := &s.f.Commands[i]
			if b := c.Container; b != nil && c.Pos == b.Pos && !c.Dead && !b.NV && !b.ROCm && !b.Open {
				switch b.Tool {
				case "singularity", "apptainer", "docker", "podman", "nerdctl":
					out = append(out, s.ev(s.stmt(i)))
				}
			}
		}
	}
	for _, c := range v.l.Commands {
		if check(c.Text) {
			out = append(out, v.evidence(c.Place, c.Text))
		}
	}
	for _, s := range v.peek("S323") {
		out = append(out, v.evidence(s.Place, s.Text))
	}
	if len(out) == 0 {
		out = v.recipeWithoutGPU()
	}
	if len(out) == 0 {
		if val, s, ok := v.env("NVIDIA_VISIBLE_DEVICES"); ok && (val == "void" || val == "") {
			out = append(out, v.evidence(s.Place, s.Text))
		}
	}
	return out, len(out) > 0
}

// recipeWithoutGPU finds a compose file or a pod that hands no GPU over.
func (v *view) recipeWithoutGPU() []fact.Evidence {
	by := map[int]fact.Said{}
	for _, s := range v.facts(kind.Recipe) {
		if _, ok := by[s.File]; !ok && s.Name != "gpu" {
			by[s.File] = s
		}
	}
	for _, s := range v.facts(kind.Recipe) {
		// What a node offers is no request: only the recipe's own file hands a GPU over.
		if _, ok := by[s.File]; ok && s.Name == "gpu" {
			return nil
		}
	}
	var out []fact.Evidence
	for _, s := range by {
		out = append(out, v.evidence(s.Place, s.Text))
	}
	return out
}

// gpuMissing chooses why a process sees no GPU.
func (v *view) gpuMissing(es []*fact.Event) {
	v.sortEvents(es)
	noDriver := v.peek("S186", "S225", "S232", "S323", "S325")
	if v.otherMakersGPU(es, noDriver) {
		return
	}
	over := []string{"run-exception", "gpu-driver-missing"}
	if v.driverTooOld(es) {
		return
	}
	// the source sets CUDA_VISIBLE_DEVICES itself
	if ev, val, ok := v.sourceSetsVisible(); ok {
		seen, s, has := v.env("CUDA_VISIBLE_DEVICES")
		if !has || seen != val {
			c := v.add(cand{id: "gpu-visible-devices-wrong", cert: diag.Proven, over: over, args: diag.Args{"value": val}}, cap4(es)...)
			c.ev = append(c.ev, ev)
			if has {
				v.said(c, s)
			}
			v.said(c, first(v.facts(kind.GPU), 1)...)
			return
		}
	}
	if val, s, ok := v.lastEnv("CUDA_VISIBLE_DEVICES"); ok && (val == "NoDevFiles" || val == "" || val == "-1") {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Proven, over: over}, cap4(es)...)
		v.said(c, s)
		return
	}
	if ev, ok := v.stepWithoutGPU(); ok {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Proven, over: over, args: diag.Args{"variant": "step"}}, cap4(es)...)
		c.ev = append(c.ev, ev)
		v.said(c, first(v.facts(kind.GPU), 1)...)
		return
	}
	tresNone := fact.Said{}
	for _, s := range v.facts(kind.TRES) {
		if !strings.Contains(s.V, "gres/gpu") {
			tresNone = s
		}
	}
	asked := false
	for _, s := range v.batch() {
		asked = asked || s.f.Request.GPUAsked
	}
	for _, s := range v.batch() {
		if late, ok := s.lateGPU(); ok && (tresNone.V != "" || !asked) {
			c := v.add(cand{id: "slurm-directive-ignored", cert: diag.Proven, over: append(over, "gpu-not-allocated")}, cap4(es)...)
			c.ev = append(c.ev, late)
			v.said(c, tresNone)
			return
		}
	}
	void, _, _ := v.env("NVIDIA_VISIBLE_DEVICES")
	if ev, ok := v.containerWithoutGPU(); ok && (len(noDriver) > 0 || void == "void") {
		c := v.add(cand{id: "gpu-not-in-container", cert: diag.Proven, over: over}, cap4(es)...)
		c.ev = append(c.ev, ev...)
		v.said(c, first(v.facts(kind.GPU), 1)...)
		if len(v.facts(kind.GPU)) == 0 && !asked {
			c.cert = diag.Likely
		}
		return
	}
	if tresNone.V != "" && !asked {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Proven, over: over}, cap4(es)...)
		v.said(c, tresNone)
		v.noGPULine(c)
		return
	}
	if len(v.facts(kind.GPU)) == 0 {
		for _, s := range v.batch() {
			if r := &s.f.Request; !r.GPUAsked && !r.Exclusive && len(s.f.Directives) > 1 && r.Nodes+r.Tasks+r.TasksPerNode+r.CPUsPerTask > 0 {
				c := v.add(cand{id: "gpu-not-allocated", cert: diag.Likely, over: over}, cap4(es)...)
				v.noGPULine(c)
				c.needs = append(c.needs, "scontrol show job JOBID | grep TRES")
				return
			}
		}
	}
	if cmd, ok := v.allocatedWithoutGPU(); ok && len(v.facts(kind.GPU)) == 0 && !asked {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Likely, over: over}, cap4(es)...)
		c.ev = append(c.ev, v.evidence(cmd.Place, cmd.Text))
		c.needs = append(c.needs, "scontrol show job JOBID | grep TRES")
		return
	}
	if len(noDriver) == 0 {
		for _, s := range v.facts(kind.FM) {
			if s.V == "failed" || s.V == "inactive" || s.V == "In" || s.V == "In Progress" {
				c := v.add(cand{id: "gpu-fabric-manager", cert: diag.Likely, over: []string{"run-exception", "gpu-not-allocated"}}, cap4(es)...)
				v.said(c, first(v.facts(kind.FM), 2)...)
				return
			}
		}
	}
	if ms := v.facts(kind.NoModule); len(ms) > 0 {
		c := v.add(cand{id: "gpu-driver-missing", cert: diag.Proven, over: []string{"run-exception", "gpu-not-allocated"}}, cap4(es)...)
		v.said(c, first(ms, 3)...)
		return
	}
	if login := v.loginNode(); len(noDriver) > 0 || login.Line > 0 && v.noSMI() && !asked {
		c := cand{id: "gpu-driver-missing", cert: diag.Likely, over: []string{"run-exception", "gpu-not-allocated"}}
		if login.Line > 0 {
			c.cert = diag.Proven
		} else if asked || len(v.facts(kind.GPU)) > 0 || len(v.facts(kind.Driver)) > 0 {
			v.unknown(es, "nvidia-smi -L", "ls -l /dev/nvidia*", "env | grep -e CUDA_VISIBLE -e NVIDIA -e APPTAINER -e SINGULARITY")
			return
		} else {
			c.needs = append(c.needs, "hostname", "nvidia-smi", "scontrol show job JOBID | grep TRES")
		}
		p := v.add(c, cap4(es)...)
		v.said(p, login)
		return
	}
	v.unknown(es, "scontrol show job JOBID | grep TRES", "srun nvidia-smi -L", "srun env | grep CUDA_VISIBLE_DEVICES",
		"python -c 'import torch; torch.zeros(1).cuda()'")
}

// noSMI reports a machine that has no nvidia-smi.
func (v *view) noSMI() bool {
	return slices.ContainsFunc(v.facts(kind.NoProgram), func(s fact.Said) bool { return s.Name == "nvidia-smi" })
}

func (v *view) lastEnv(name string) (string, fact.Said, bool) {
	ss := v.l.Listing.Facts
	for i := len(ss) - 1; i >= 0; i-- {
		if ss[i].Kind == kind.Env && ss[i].Name == name {
			return ss[i].V, ss[i], true
		}
	}
	return "", fact.Said{}, false
}

func (v *view) noGPULine(c *cand) {
	for _, s := range v.batch() {
		if ev := s.first(); ev != nil {
			c.ev = append(c.ev, ev...)
			return
		}
	}
}

var setVisible = lazyre.New(`os\.environ(?:\[|\.(?:setdefault|update)\()\s*["'](?:CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES)["']\s*(?:\]\s*=|,)\s*["']([^"']*)["']`)

// sourceSetsVisible finds a program that overwrites CUDA_VISIBLE_DEVICES.
func (v *view) sourceSetsVisible() (fact.Evidence, string, bool) {
	for _, t := range v.sources {
		for i, l := range t.Lines {
			if m := setVisible.FindStringSubmatch(l); m != nil {
				e := fact.Evidence{Source: fact.SrcFile, Path: v.path(t.File), Line: t.From + i, Excerpt: strings.TrimSpace(fact.Clip(l, 200))}
				return e, m[1], true
			}
		}
	}
	for _, s := range v.scripts {
		for _, a := range s.assigns("CUDA_VISIBLE_DEVICES") {
			if val := exportedValue(a); val != "" && strings.Trim(val, "0123456789,") == "" {
				return s.ev(a.Pos), val, true
			}
		}
	}
	return fact.Evidence{}, "", false
}

// stepWithoutGPU finds the srun that starts the program with no GPU.
func (v *view) stepWithoutGPU() (fact.Evidence, bool) {
	for _, s := range v.scripts {
		for i := range s.f.Launches {
			l := &s.f.Launches[i]
			if l.Dead || l.Step < 0 || l.Kind == fact.LaunchPython && !strings.Contains(l.Program, "train") {
				continue // a python of its own may well work without a GPU
			}
			if o := noGPU(&s.f.Steps[l.Step]); o != nil {
				return s.optEv(o), true
			}
		}
	}
	return fact.Evidence{}, false
}

// noGPU returns the option of a step that takes its GPUs away.
func noGPU(t *fact.Step) *fact.Directive {
	if o := t.Opt("gres"); o != nil && (strings.EqualFold(o.Value, "none") || o.Value == "gpu:0") {
		return o
	}
	for _, n := range []string{"gpus", "gpus-per-node", "gpus-per-task"} {
		if o := t.Opt(n); o != nil && o.Value == "0" {
			return o
		}
	}
	return nil
}

// loginNode returns the sign that this is a login node.
func (v *view) loginNode() fact.Said {
	for _, c := range v.l.Commands {
		h := strings.ToLower(c.Host)
		if strings.Contains(h, "login") || strings.Contains(h, "submit") || strings.HasPrefix(h, "front") || strings.Contains(h, "headnode") || strings.HasPrefix(h, "head") {
			return fact.Said{Place: c.Place, Text: c.Host + "$ " + c.Text}
		}
	}
	for _, s := range v.facts(kind.NoProgram) {
		if s.Name == "nvidia-smi" {
			return s
		}
	}
	return fact.Said{}
}

// decideIndex judges device indexes, shared devices, busy devices and peers.
func (v *view) decideIndex() {
	over := []string{"run-exception", "gpu-kernel-fault"}
	v.oneIndexForAll()
	perTask, perTaskEv := v.perTask()
	var ord, p2p []*fact.Event
	for _, e := range v.ev("S197") {
		if strings.Contains(e.Text, "p2p.cc") || strings.Contains(e.Text, "NCCL WARN") {
			p2p = append(p2p, e)
		} else {
			ord = append(ord, e)
		}
	}
	if len(p2p) > 0 {
		c := cand{id: "gpu-peer-access-broken", cert: diag.Likely, over: append(over, "gpu-index-out-of-range")}
		if perTask {
			c.id, c.cert = "slurm-gpu-binding", diag.Proven
			c.ev = append(c.ev, perTaskEv)
		}
		v.add(c, cap4(p2p)...)
	} else if len(ord) > 0 {
		c := v.add(cand{id: "gpu-index-out-of-range", cert: diag.Proven, over: over}, cap4(ord)...)
		if perTask {
			c.ev = append(c.ev, perTaskEv)
		}
		if _, s, ok := v.env("CUDA_VISIBLE_DEVICES"); ok {
			v.said(c, s)
		}
	}
	if es := v.ev("S360", "S365"); len(es) > 0 {
		c := v.add(cand{id: "gpu-index-out-of-range", cert: diag.Proven, over: over}, cap4(es)...)
		if perTask {
			c.ev = append(c.ev, perTaskEv)
		}
		if _, s, ok := v.env("CUDA_VISIBLE_DEVICES"); ok {
			v.said(c, s)
		}
	} else if xs := v.excWith("You requested gpu: ", "No slot '"); len(xs) > 0 {
		c := v.addExc(cand{id: "gpu-index-out-of-range", cert: diag.Proven, over: over}, xs[0])
		if perTask {
			c.ev = append(c.ev, perTaskEv)
		}
	}
	bind := v.ev("S296")
	dup := v.ev("S121", "S122")
	if len(bind) > 0 {
		c := v.add(cand{id: "slurm-gpu-binding", cert: diag.Proven, over: []string{"gpu-shared-by-ranks", "gpu-index-out-of-range", "run-exception"}}, cap4(bind)...)
		for _, s := range v.batch() {
			for _, t := range s.steps() {
				if t.Opt("gpu-bind") != nil {
					c.ev = append(c.ev, s.ev(s.stmt(t.Cmd)))
				}
			}
		}
	} else if len(dup) > 0 {
		c := v.add(cand{id: "gpu-shared-by-ranks", cert: diag.Proven, over: over}, cap4(dup)...)
		for _, t := range v.sources {
			for i, l := range t.Lines {
				if strings.Contains(l, "set_device(0)") || strings.Contains(l, `"cuda:0"`) || strings.Contains(l, `'cuda:0'`) {
					c.ev = append(c.ev, fact.Evidence{Source: fact.SrcFile, Path: v.path(t.File), Line: t.From + i, Excerpt: strings.TrimSpace(l)})
				}
			}
		}
	}
	if es := v.ev("S198"); len(es) > 0 {
		c := v.add(cand{id: "gpu-busy", cert: diag.Proven, over: over}, cap4(es)...)
		for _, m := range v.facts(kind.Mode) {
			if strings.Contains(m.V, "Process") || strings.Contains(m.V, "Prohibited") {
				v.said(c, m)
				break
			}
		}
		v.said(c, first(v.facts(kind.Proc), 2)...)
	}
	if es := v.ev("S215", "S216", "S160", "S161", "S158"); len(es) > 0 {
		c := cand{id: "gpu-peer-access-broken", cert: diag.Likely, over: over}
		if perTask {
			c.id, c.cert = "slurm-gpu-binding", diag.Likely
			c.ev = append(c.ev, perTaskEv)
		}
		v.add(c, cap4(es)...)
	}
}

// perTask reports whether tasks are shown one GPU each, and where that is asked.
func (v *view) perTask() (bool, fact.Evidence) {
	for _, s := range v.scripts {
		for _, t := range s.steps() {
			b := t.Opt("gpu-bind")
			if t.Opt("gpus-per-task") != nil || b != nil && (strings.HasPrefix(b.Value, "single") || strings.HasPrefix(b.Value, "per_task")) {
				return true, s.ev(s.stmt(t.Cmd))
			}
		}
		if r := &s.f.Request; s.f.Opt("gpus-per-task") != nil && (r.Tasks+r.TasksPerNode == 0 || r.EffectiveTPN != 1) {
			return true, s.opts("gpus-per-task")[0]
		}
		if o := s.f.Opt("gpu-bind"); o != nil && !strings.HasPrefix(o.Value, "none") {
			return true, s.ev(o.Pos)
		}
	}
	for _, c := range v.l.Commands {
		if strings.Contains(c.Text, "--gpus-per-task") && strings.Contains(c.Text, "srun") {
			return true, v.evidence(c.Place, c.Text)
		}
	}
	return false, fact.Evidence{}
}

// decideArch judges "no kernel image": the wheel's or an extension's fault.
func (v *view) decideArch() {
	es := v.ev("S199")
	warn := v.ev("S200", "S201", "S202", "log-gpu-capability-not-compatible", "log-gpu-too-old-for-torch", "log-torch-arch-list")
	lists := v.facts(kind.ArchList)
	caps := v.capabilities()
	if len(es) == 0 {
		if len(warn) > 0 && v.dead && len(v.cands) == 0 {
			// the warning alone, and the job died: likely, when nothing else says more
			v.add(cand{id: "torch-gpu-arch-unsupported", cert: diag.Possible, tier: 1}, cap4(warn)...)
		}
		return
	}
	ext := ""
	for _, e := range es {
		if x := v.excAt(e); x != nil {
			if ext = extFrame(x); ext != "" {
				break
			}
		}
	}
	covers, known := archCovers(lists, caps)
	if own := ownKernel(es); own != "" && ext == "" && len(warn) == 0 && (!known || covers) {
		c := v.add(cand{id: "torch-extension-arch-unsupported", cert: diag.Likely, over: []string{"run-exception"}, args: diag.Args{"package": own}}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
		if _, s, ok := v.env("TORCH_CUDA_ARCH_LIST"); ok {
			v.said(c, s)
		}
		return
	}
	switch {
	case len(warn) > 0 && (!known || !covers):
		c := v.add(cand{id: "torch-gpu-arch-unsupported", cert: diag.Proven, over: []string{"run-exception"}, args: v.archArgs(lists, caps, warn)}, cap4(append(es[:1:1], warn...))...)
		v.said(c, first(lists, 1)...)
		told(c)
	case known && !covers:
		c := v.add(cand{id: "torch-gpu-arch-unsupported", cert: diag.Proven, over: []string{"run-exception"}, args: v.archArgs(lists, caps, warn)}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
		told(c)
	case ext != "" && (covers || !known && knownExtension(ext)):
		cert := diag.Likely
		if covers {
			cert = diag.Proven
		}
		c := v.add(cand{id: "torch-extension-arch-unsupported", cert: cert, over: []string{"run-exception"}, args: diag.Args{"package": ext}}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
		for _, n := range []string{"TORCH_CUDA_ARCH_LIST", "FLASH_ATTN_CUDA_ARCHS"} {
			if _, s, ok := v.env(n); ok {
				v.said(c, s)
			}
		}
	case covers:
		c := v.add(cand{id: "torch-extension-arch-unsupported", cert: diag.Likely, over: []string{"run-exception"}}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
	default:
		v.unknown(es, "nvidia-smi --query-gpu=name,compute_cap --format=csv", "python -c 'import torch; print(torch.cuda.get_arch_list())'", "a run with CUDA_LAUNCH_BLOCKING=1, which shows the call that has no kernel")
	}
}

var warnsOf = lazyre.New(`^\s*(.+?) with CUDA capability sm_(\d+)(\d) is not compatible`)

// archArgs names the GPU and what the build has code for, where both are told.
func (v *view) archArgs(lists, caps []fact.Said, warn []*fact.Event) diag.Args {
	a := diag.Args{}
	for _, e := range warn {
		if m := warnsOf.FindStringSubmatch(e.Text); m != nil {
			a["device"], a["cap"] = m[1], m[2]+"."+m[3]
			break
		}
	}
	if a["device"] == "" && len(caps) > 0 {
		a["cap"], a["device"] = caps[len(caps)-1].V, "GPU"
		if gs := v.facts(kind.GPU); len(gs) > 0 {
			a["device"] = gs[0].V
		}
	}
	if len(lists) > 0 {
		a["archs"] = lists[0].V
	}
	if a["device"] != "" && a["archs"] != "" {
		a["variant"] = "told"
		if n, ok := strings.CutPrefix(newestArch(a["archs"]), "sm_"); ok && len(n) > 1 && v.interpreter() != "" {
			a["age"] = "newer"
			if archNumber(n) > archNumber(strings.ReplaceAll(a["cap"], ".", "")) {
				a["age"] = "older"
			}
		}
	}
	return a
}

// told lets the cause's own words stand where they name more than the message does.
func told(c *cand) {
	if c.args["variant"] == "told" {
		c.rule = ""
	}
}

// newestArch returns the last sm_ entry of a list, which ascends.
func newestArch(list string) string {
	last := ""
	for _, f := range strings.Fields(list) {
		if strings.HasPrefix(f, "sm_") {
			last = f
		}
	}
	return last
}

func archNumber(s string) int { return atoi(strings.TrimRight(s, "af")) }

// capabilities are what the input says of the GPUs, else what their names tell.
func (v *view) capabilities() []fact.Said {
	if caps := v.facts(kind.Capability); len(caps) > 0 {
		return caps
	}
	var out []fact.Said
	for _, g := range v.facts(kind.GPU) {
		if c := tables.CapOf(g.V); c != "" {
			s := g
			s.V = c
			out = append(out, s)
		}
	}
	return out
}

func knownExtension(p string) bool {
	for _, k := range []string{"flash_attn", "flash_attn_2_cuda", "apex", "xformers", "mamba_ssm", "causal_conv1d", "bitsandbytes", "transformer_engine", "gsplat", "vllm", "torch_scatter", "torch_sparse", "torch_cluster", "pytorch3d", "detectron2", "mmcv", "deepspeed", "spconv", "nvdiffrast", "diff_gaussian_rasterization", "tinycudann", "fused_dense_lib", "rotary_emb", "selective_scan_cuda", "natten", "sageattention", "exllamav2", "auto_gptq", "awq"} {
		if strings.HasPrefix(p, k) {
			return true
		}
	}
	return false
}

// archCovers compares the architectures of a build with the GPU's capability.
// A cubin runs on the same major version and an equal or higher minor one; PTX
// runs on everything newer.
func archCovers(lists, caps []fact.Said) (covers, known bool) {
	if len(lists) == 0 || len(caps) == 0 {
		return false, false
	}
	maj, min, ok := strings.Cut(caps[len(caps)-1].V, ".")
	if !ok {
		return false, false
	}
	M, _ := strconv.Atoi(maj)
	m, _ := strconv.Atoi(min)
	for _, a := range strings.Fields(lists[0].V) {
		ptx := strings.HasPrefix(a, "compute_")
		n := strings.TrimPrefix(strings.TrimPrefix(a, "compute_"), "sm_")
		n = strings.TrimRight(n, "af")
		if len(n) < 2 {
			continue
		}
		am, _ := strconv.Atoi(n[:len(n)-1])
		an, _ := strconv.Atoi(n[len(n)-1:])
		if ptx && am*10+an <= M*10+m || am == M && an <= m {
			return true, true
		}
	}
	return false, true
}
