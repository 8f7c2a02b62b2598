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
)

// decideRun judges what stops a job that was running.
func (v *view) decideRun() {
	v.hostMemory()
	v.disk()
	v.ended()
	v.ctrlC()
	v.native()
	v.exceptions()
	v.collectives()
	v.sigkill()
}

// hostMemory judges the OOM killer.
func (v *view) hostMemory() {
	es := v.ev("S249", "S250", "S251", "S252", "S327", "S328", "S511", "log-oom-killer-invoked")
	over := []string{"run-exception", "run-native-crash", "run-collective-hang", "job-cancelled", "net-shared-memory-full"}
	worker := v.ev("S308")
	sacct, ok := v.sacctState("OUT_OF_ME")
	if len(es) == 0 && !ok {
		if len(worker) > 0 {
			// a worker was killed and nothing else says by whom
			c := v.add(cand{id: "host-out-of-memory", cert: diag.Likely, over: over}, cap4(worker)...)
			c.needs = append(c.needs, "sacct -j JOBID -o JobID,State,ExitCode,MaxRSS,ReqMem", "dmesg | grep -i oom")
		}
		return
	}
	all := append(append([]*fact.Event{}, es...), worker...)
	c := v.add(cand{id: "host-out-of-memory", cert: diag.Proven, over: over}, cap4(all)...)
	if ok {
		v.said(c, sacct)
	}
	for _, x := range v.l.Exits {
		if x.By == "srun" && (strings.HasPrefix(x.Words, "Out Of Memory") || strings.HasPrefix(x.Words, "Killed")) || x.Code == -9 && (x.By == "table" || x.By == "torchrun") {
			w := v.where(x.Place)
			if n, err := strconv.Atoi(x.Tasks); err == nil && x.By == "srun" && !v.tasksAreLaunchers() {
				w.Rank = &n
			}
			c.where = append(c.where, w)
		}
	}
}

// disk judges full file systems and limits.
func (v *view) disk() {
	var full []*fact.Event
	for _, e := range v.ev("S316", "S317") {
		if !inShm(e.Text) && !strings.Contains(e.Text, "nccl-") && !strings.Contains(e.Text, "posix_fallocate") {
			full = append(full, e)
		}
	}
	if len(full) > 0 && !v.candidate("net-shared-memory-full") {
		v.add(cand{id: "host-disk-full", cert: diag.Proven, over: []string{"run-exception"}}, cap4(full)...)
	}
	if df := v.facts(kind.FullDisk); len(full) == 0 && len(df) > 0 {
		if xs := v.excWith("PytorchStreamWriter failed writing", "file write failed", "unexpected pos "); len(xs) > 0 {
			c := v.addExc(cand{id: "host-disk-full", cert: diag.Likely, over: []string{"run-exception"}}, xs[0])
			v.said(c, df[0])
		}
	}
	es := v.ev("S314", "S315")
	for _, e := range v.peek("S319") {
		if !shmWrite(e) {
			v.used["S319"] = true
			es = append(es, e)
		}
	}
	if len(es) > 0 {
		v.sortEvents(es)
		v.add(cand{id: "host-file-limits", cert: diag.Proven, over: []string{"run-exception"}}, cap4(es)...)
	}
}

var (
	jobEnd = lazyre.New(`CANCELLED AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)`)
)

// ended judges jobs that Slurm or a person ended.
func (v *view) ended() {
	limit := v.ev("S241")
	timeout, hasTimeout := v.sacctState("TIMEOUT")
	if len(limit) > 0 || hasTimeout {
		if gap, s, ok := v.silentBefore(limit); ok {
			c := v.add(cand{id: "run-collective-hang", cert: diag.Likely, tier: 1, args: diag.Args{"variant": "silence", "minutes": itoa(int(gap / 60000))}, over: []string{"job-time-limit"}}, cap4(limit)...)
			c.ev = append(c.ev, v.evidence(s.Last, s.Text))
			c.needs = append(c.needs, hangNeeds()...)
		} else {
			c := v.add(cand{id: "job-time-limit", cert: diag.Proven, tier: 1, over: []string{"job-cancelled", "run-exception"}}, cap4(limit)...)
			if hasTimeout {
				v.said(c, timeout)
			}
		}
	}
	pre := v.ev("S242")
	submitit := v.ev("S366", "log-submitit-signal")
	if len(pre) > 0 && !v.finallyDone() && !v.restartedFine(pre[0].Place) {
		v.add(cand{id: "job-preempted", cert: diag.Proven, tier: 0, over: []string{"run-exception", "job-cancelled"}}, cap4(pre)...)
	} else if len(submitit) > 0 && len(pre) == 0 {
		v.submitit(submitit)
	}
	v.used["S244"], v.used["S245"], v.used["S247"], v.used["S248"], v.used["S246"] = true, true, true, true, true
	cancel := v.peek("S246", "S248")
	var by fact.Said
	for _, s := range v.facts(kind.Sacct) {
		if strings.HasPrefix(s.V, "CANCELLED by") {
			by = s
		}
	}
	var typed fact.ShellCmd
	for _, c := range v.l.Commands {
		if strings.HasPrefix(c.Text, "scancel") {
			typed = c
		}
	}
	job := false
	for _, e := range cancel {
		if strings.Contains(e.Text, "JOB") {
			job = true
		}
	}
	if by.V != "" || typed.Line > 0 || job && len(limit) == 0 {
		cert := diag.Likely
		if by.V != "" || typed.Line > 0 {
			cert = diag.Proven
		}
		if v.stacksHang(cancel) {
			return
		}
		c := cand{id: "job-cancelled", cert: cert, tier: 1, over: []string{"run-collective-hang"}}
		p := v.add(c, cap4(cancel)...)
		v.said(p, by)
		if typed.Line > 0 {
			p.ev = append(p.ev, v.evidence(typed.Place, typed.Text))
			if p.at.Line == 0 {
				p.at = typed.Place
			}
		}
		if cert != diag.Proven {
			p.needs = append(p.needs, "sacct -j JOBID -o JobID,State%30,ExitCode,End")
		}
	} else if len(cancel) > 0 {
		v.unsure = append(v.unsure, cancel...)
	}
}

// waitFrame matches functions in which a process waits for GPUs or other ranks.
var waitFrame = lazyre.New(`(?i)^(?:synchronize|wait|barrier|monitored_barrier|item|_?(?:all_?reduce|all_?gather|reduce_?scatter|broadcast|all_?to_?all|send|recv|reduce|gather|scatter|isend|irecv)\w*)$`)

// stacksHang judges a job that a person ended after looking at it: the main
// threads of several processes stood in the same wait.
func (v *view) stacksHang(cancel []*fact.Event) bool {
	top := map[string]fact.Said{}
	var order []fact.Said
	for _, s := range v.facts(kind.Stack) {
		if _, ok := top[s.Name]; !ok {
			top[s.Name] = s
			order = append(order, s)
		}
	}
	if len(order) < 2 || !waitFrame.MatchString(order[0].V) {
		return false
	}
	for _, s := range order[1:] {
		if s.V != order[0].V || s.Aux != order[0].Aux {
			return false
		}
	}
	c := v.add(cand{id: "run-collective-hang", cert: diag.Likely, tier: 1, over: []string{"job-cancelled"}, needs: hangNeeds()}, cap4(cancel)...)
	v.said(c, first(order, 4)...)
	return true
}

// finallyDone: sacct says that the job completed, or the last file ends well.
func (v *view) finallyDone() bool { return v.sacctDone() }

// restartedFine reports that a later attempt trained and ended well.
func (v *view) restartedFine(p fact.Place) bool {
	return v.restartedAfter(p) && !v.dead
}

// submitit judges the signal that submitit reports with the word "preempted"
// whether or not it was the end of the time limit.
func (v *view) submitit(es []*fact.Event) {
	var sig []*fact.Event
	for _, e := range es {
		if strings.Contains(e.Text, "Caught signal") {
			sig = append(sig, e)
		}
	}
	if len(sig) == 0 {
		return
	}
	e := sig[0]
	for _, s := range v.batch() {
		lim := s.f.Request.Seconds / 60
		if lim <= 0 || e.TK == 0 {
			continue
		}
		start := v.firstTime(e)
		if start == 0 {
			continue
		}
		ran := (e.Time - start) / 60000
		c := cand{id: "job-preempted", cert: diag.Likely, tier: 1, over: []string{"run-exception"}}
		if ran >= lim*95/100 {
			c.id, c.cert = "job-time-limit", diag.Proven
		}
		x := v.add(c, cap4(sig)...)
		x.ev = append(x.ev, s.opts("time", "signal")...)
		return
	}
	c := v.add(cand{id: "job-preempted", cert: diag.Possible, tier: 1, over: []string{"run-exception"}}, cap4(sig)...)
	c.needs = append(c.needs, "sacct -j JOBID -o JobID,State,Elapsed,Timelimit")
}

func (v *view) firstTime(e *fact.Event) int64 {
	first := int64(0)
	see := func(p fact.Place) {
		if p.File == e.File && p.TK == e.TK && p.Time > 0 && (first == 0 || p.Time < first) {
			first = p.Time
		}
	}
	for _, x := range v.l.Events {
		see(x.Place)
	}
	for _, s := range v.l.Streams {
		see(s.First)
	}
	for _, s := range v.l.Listing.Facts {
		see(s.Place)
	}
	if s, ok := v.l.Listing.First("first-time", ""); ok && s.File == e.File && s.TK == e.TK {
		see(s.Place)
	}
	if first == e.Time {
		return 0
	}
	return first
}

func hangNeeds() []string {
	return []string{"py-spy dump --pid PID on each rank while it hangs", "a run with NCCL_DEBUG=INFO and TORCH_NCCL_TRACE_BUFFER_SIZE=2000 (flight recorder)", "dmesg of the nodes"}
}

// silentBefore reports that the last progress stands long before the end.
func (v *view) silentBefore(limit []*fact.Event) (int64, fact.Stream, bool) {
	if len(limit) == 0 {
		return 0, fact.Stream{}, false
	}
	end := limit[0].Place
	if end.TK == 0 {
		if m := jobEnd.FindStringSubmatch(limit[0].Text); m == nil {
			return 0, fact.Stream{}, false
		}
	}
	endMS := end.Time
	if t, ok := cancelTime(limit[0].Text); ok {
		endMS = t
		end.TK = fact.TimeFull
	}
	var last fact.Stream
	for _, s := range v.l.Streams {
		if s.Last.TK == end.TK && s.Lines >= 3 && s.Last.Time > last.Last.Time {
			last = s
		}
	}
	if last.Lines == 0 {
		return 0, fact.Stream{}, false
	}
	gap := endMS - last.Last.Time
	span := last.Last.Time - last.First.Time
	step := int64(60000)
	if last.Lines > 1 && span > 0 {
		step = span / int64(last.Lines-1)
	}
	return gap, last, gap > 20*60*1000 && gap > 20*step
}

// native judges crashes in native code.
func (v *view) native() {
	es := v.ev("S094", "S255", "S309", "S310", "S510", "log-fatal-python-error")
	bus := v.ev("S095", "S257")
	var exits []fact.Exit
	for _, x := range v.l.Exits {
		if x.Code == -11 || x.Code == 139 || x.Code == -4 {
			exits = append(exits, x)
		}
	}
	if len(es) == 0 && len(exits) == 0 {
		if len(bus) > 0 && !v.candidate("net-shared-memory-full") {
			c := v.add(cand{id: "run-native-crash", cert: diag.Possible, tier: 1}, cap4(bus)...)
			c.needs = append(c.needs, "df -h /dev/shm", "the stack of the core file")
		}
		return
	}
	if v.candidate("net-shared-memory-full") {
		return
	}
	c := v.add(cand{id: "run-native-crash", cert: diag.Likely, tier: 0, over: []string{"run-collective-hang", "rdzv-unreachable", "gpu-peer-access-broken"}}, cap4(es)...)
	for _, x := range exits {
		w := v.where(x.Place)
		if x.By == "srun" && !v.tasksAreLaunchers() {
			if n, err := strconv.Atoi(x.Tasks); err == nil {
				w.Rank = &n
			}
		}
		if x.By == "torchrun" && w.Rank == nil && x.Local >= 0 && !v.multiNode() && len(v.nodesSeen()) <= 1 {
			n := x.Local
			w.Rank = &n
		}
		c.where = append(c.where, w)
		if c.at.Line == 0 {
			c.at = x.Place
		}
		if len(c.ev) == 0 {
			c.ev = append(c.ev, v.evidence(x.Place, exitText(x)))
		}
	}
	if c.at.Line == 0 && len(es) > 0 {
		c.at = es[0].Place
	}
}

func exitText(x fact.Exit) string {
	switch x.By {
	case "srun":
		return "srun: error: " + x.Node + ": task " + x.Tasks + ": " + x.Words
	case "torchrun":
		return "failed (exitcode: " + itoa(x.Code) + ") local_rank: " + itoa(x.Local) + " (pid: " + itoa(x.PID) + ") of binary: " + x.Binary
	}
	if x.Words != "" {
		return x.Words
	}
	return "exit status " + itoa(x.Code)
}

// echoTypes are exceptions that report somebody else's failure, or the launcher's view.
var echoTypes = map[string]bool{"ChildFailedError": true, "DistBackendError": true, "DistNetworkError": true, "DistStoreError": true, "DistError": true, "DistQueueEmptyError": true,
	"RendezvousConnectionError": true, "RendezvousClosedError": true, "RendezvousTimeoutError": true, "RendezvousStateError": true, "RendezvousGracefulExitError": true, "RendezvousError": true,
	"SignalException": true, "CalledProcessError": true, "ProcessRaisedException": true, "ProcessExitedException": true, "KeyboardInterrupt": true, "SystemExit": true,
	"BrokenPipeError": true, "ConnectionResetError": true, "ConnectionRefusedError": true, "ConnectionAbortedError": true, "EOFError": true, "GeneratorExit": true, "WorkerError": true, "RayActorError": true, "CancelledError": true,
	// the second line of what torch says of an error of NCCL: a class of errors, no exception
	"ncclSystemError": true, "ncclInternalError": true, "ncclUnhandledCudaError": true, "ncclRemoteError": true, "ncclInvalidArgument": true, "ncclInvalidUsage": true}

var echoText = lazyre.New(`Connection closed by peer|Connection reset by peer|[Bb]roken pipe|NCCL error|NCCL communicator|Socket Timeout|[Cc]onnection was likely closed|failed to recv|exited unexpectedly|Stop_waiting|collective operation timeout|wait timeout after|CUDA error|CUDA out of memory|cuda runtime error|cuDNN error|CUBLAS_STATUS|[Tt]imed out (?:after|waiting|initializing)|store based barrier|socket has (?:timed out|failed)|Default process group has not been initialized|Details are lost due to multiprocessing|terminated with signal|returned non-zero exit status|is killed by signal|Worker failed|No rendezvous|gloo/transport|[Ss]ee (?:root cause|the root cause|stack trace|error|traceback)s? (?:above|for root cause)|exception in a background process`)

// exceptions judges ordinary Python exceptions: the first one is the cause.
func (v *view) exceptions() {
	var list []*fact.Exception
	for _, x := range v.exc {
		base := x.Type[strings.LastIndexByte(x.Type, '.')+1:]
		if echoTypes[base] || echoText.MatchString(x.Message) || strings.HasSuffix(base, "Warning") || assertsCUDA(x) {
			continue
		}
		if v.judged(x) {
			continue
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return
	}
	sort.SliceStable(list, func(i, j int) bool { return before(list[i].Place, list[j].Place) })
	x := list[0]
	// where the launcher names the first failure, the traceback of that rank counts
	c := v.addExc(cand{id: "run-exception", cert: diag.Likely, tier: 0, over: []string{"run-collective-hang", "rdzv-unreachable", "rdzv-too-few-ranks"}}, x)
	if x.Start > 0 {
		c.cert = diag.Proven
	}
	if c.args["frame_file"] != "" {
		c.args["variant"] = "named"
	}
	for _, y := range list[1:] {
		if len(c.where) < 4 && y.Type == x.Type {
			c.where = append(c.where, v.where(y.Place))
		}
	}
	if c.where[0].Rank == nil {
		for _, f := range v.l.Exits {
			if f.By == "table" && f.First && f.Rank >= 0 && (x.PID == 0 || f.PID == x.PID) && f.Code == 1 {
				r := f.Rank
				c.where = append(c.where, diag.Where{File: v.path(f.File), Line: f.Line, Node: f.Node, Rank: &r})
				break
			}
		}
	}
}

// judged reports whether a signature with a meaning of its own stands on the exception's line.
func (v *view) judged(x *fact.Exception) bool {
	for _, k := range x.Sigs {
		if k >= len(v.l.Events) {
			continue
		}
		e := &v.l.Events[k]
		if e.Quoted {
			continue
		}
		if e.Role == "consequence" {
			return true
		}
		if e.Role == "noise" || e.Role == "context" {
			continue
		}
		if v.opt.Rules != nil && !v.quoted(e.Place) {
			// nobody took it for a cause, and an ordinary exception reads the same
			if info, ok := v.opt.Rules(e.Rule); ok && e.Role == "cause" && slices.Contains(info.Suggests, "run-exception") {
				continue
			}
		}
		return true
	}
	return false
}

// quoted reports whether a candidate rests on this line.
func (v *view) quoted(p fact.Place) bool {
	path := v.path(p.File)
	for i := range v.cands {
		for _, e := range v.cands[i].ev {
			if e.Path == path && e.Line == p.Line {
				return true
			}
		}
	}
	return false
}

// sigkill judges SIGKILL when nothing says who sent it.
func (v *view) sigkill() {
	v.used["S092"], v.used["S254"] = true, true
	killed := append(v.peek("S092"), v.killedExits()...)
	if len(killed) == 0 {
		return
	}
	if v.has("S099") {
		return // the launcher's own
	}
	v.unknown(killed, "sacct -j JOBID -o JobID,State,ExitCode,MaxRSS,ReqMem", "dmesg -T | grep -i -e oom -e 'killed process'")
}

func (v *view) killedExits() []*fact.Event {
	var out []*fact.Event
	for _, x := range v.l.Exits {
		if x.Code == -9 && (x.By == "srun" || x.By == "shell" || x.By == "torchrun" || x.By == "mpirun") {
			out = append(out, &fact.Event{Place: x.Place, Text: exitText(x), Rule: ""})
		}
	}
	return out
}
