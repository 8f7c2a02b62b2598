package explain

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// decideRendezvous judges how ranks find each other.
func (v *view) decideRendezvous() {
	if es := v.ev("S015", "S016", "S017"); len(es) > 0 {
		v.add(cand{id: "rdzv-variables-missing", cert: diag.Proven, over: []string{"run-exception"}}, cap4(es)...)
	}
	if !v.candidate("rdzv-variables-missing") {
		for _, x := range v.exc {
			if strings.HasSuffix(x.Type, "KeyError") && rdzvVar.MatchString(x.Message) {
				v.addExc(cand{id: "rdzv-variables-missing", cert: diag.Likely, args: diag.Args{"var": strings.Trim(x.Message, `'"`)}, over: []string{"run-exception"}}, x)
				break
			}
		}
	}
	v.launcherVars()
	v.notMyAddress()
	v.portInUse()
	v.unresolvable()
	v.pythonUnresolved()
	v.storeBarrier()
	v.clientsMissing()
	v.clientTimeout()
	v.joinTimeout()
	v.shownMasters()
}

var inUse = lazyre.New(`errno: 98|[Tt]ried to launch distributed communication on port|EADDRINUSE|code: -98|[Aa]ddress already in use`)

// portInUse judges EADDRINUSE: srun's own ports, several launchers, or a stranger.
func (v *view) portInUse() {
	var es []*fact.Event
	for _, e := range v.ev("S061", "S063", "S474", "log-address-already-in-use-old") {
		if inUse.MatchString(e.Text) {
			es = append(es, e)
		}
	}
	if own := v.ev("S299"); len(own) > 0 {
		v.add(cand{id: "slurm-service-fault", cert: diag.Proven, args: diag.Args{"variant": "port-range"}, over: []string{"rdzv-port-in-use", "run-exception"}}, cap4(own)...)
		return
	}
	if len(es) == 0 {
		return
	}
	tasks := map[string]bool{}
	for _, e := range es {
		if e.Task >= 0 {
			tasks[itoa(e.Task)] = true
		}
	}
	if s, at, n := v.launcherPerTask(); n > 1 {
		x := v.add(cand{id: "rdzv-launched-twice", cert: diag.Proven, over: []string{"rdzv-port-in-use", "run-exception"}}, cap4(es)...)
		x.ev = append(append(x.ev, s.ev(at)), s.opts("ntasks-per-node", "ntasks")...)
		return
	}
	// several tasks of one node fail to bind in one step
	multi := len(tasks) >= 2
	for _, x := range v.l.Exits {
		if x.By == "srun" && strings.ContainsAny(x.Tasks, ",-") && v.torchrunTrace() {
			multi = true
		}
	}
	if multi && v.torchrunTrace() {
		v.add(cand{id: "rdzv-launched-twice", cert: diag.Likely, over: []string{"rdzv-port-in-use", "run-exception"}, needs: []string{"grep -n -e ntasks -e srun job.sbatch", "is it one launcher per node?"}}, cap4(es)...)
		return
	}
	c := v.add(cand{id: "rdzv-port-in-use", cert: diag.Likely, tier: 0, over: []string{"run-exception"}}, cap4(es)...)
	for _, s := range v.facts(kind.NetOut) {
		if c.args["port"] == "" || strings.Contains(s.V, c.args["port"]) {
			v.said(c, s)
			c.cert = diag.Proven
		}
	}
	if c.cert != diag.Proven {
		c.needs = append(c.needs, "srun -w NODE ss -ltnp | grep PORT", "squeue -w NODE")
	}
}

// torchrunTrace reports whether the failing traceback is the launcher's own.
func (v *view) torchrunTrace() bool {
	for _, x := range v.l.Exceptions {
		for _, f := range x.Frames {
			if strings.HasSuffix(f.File, "/torchrun") || strings.Contains(f.File, "torch/distributed/run.py") || strings.Contains(f.File, "torch/distributed/launcher/") {
				return true
			}
		}
	}
	return false
}

// unresolvable judges host names that do not resolve.
func (v *view) unresolvable() {
	gai := v.ev("S067")
	old := v.ev("S077", "S172")
	if len(old) > 0 {
		c := v.add(cand{id: "rdzv-host-unresolvable", cert: diag.Proven, over: []string{"rdzv-unreachable", "run-exception"}}, cap4(old)...)
		if _, s, ok := v.env("MASTER_ADDR"); ok {
			v.said(c, s)
		}
		for _, s := range v.scripts {
			for _, a := range s.assigns("MASTER_ADDR") {
				c.ev = append(c.ev, s.ev(a.Pos))
			}
		}
		return
	}
	if len(gai) == 0 || !(v.has("S066", "S068", "S083") || v.dead && !v.trained()) {
		return
	}
	c := v.add(cand{id: "rdzv-host-unresolvable", cert: diag.Proven, over: []string{"rdzv-unreachable", "run-exception"}}, cap4(append(gai, v.peek("S066")...))...)
	v.nodeOfTable(c)
}

// nodeOfTable names the node of torchrun's failure table where nothing else does.
func (v *view) nodeOfTable(c *cand) {
	if len(c.where) == 0 || c.where[0].Node != "" {
		return
	}
	for _, x := range v.l.Exits {
		if x.Node != "" && (x.By == "table" || x.By == "srun") {
			c.where[0].Node = x.Node
			return
		}
	}
}

func (v *view) trained() bool {
	for _, s := range v.l.Streams {
		if s.Lines > 5 {
			return true
		}
	}
	return false
}

var barrierRe = lazyre.New(`world_size=(\d+), (?:worker_count|num_workers_joined)=(\d+)`)

// storeBarrier compares how many came to the barrier with how many should.
func (v *view) storeBarrier() {
	es := v.ev("S020")
	if len(es) == 0 {
		return
	}
	m := barrierRe.FindStringSubmatch(es[0].Text)
	if m == nil {
		v.unknown(es, "the logs of the other ranks")
		return
	}
	world, _ := strconv.Atoi(m[1])
	count, _ := strconv.Atoi(m[2])
	a := diag.Args{"world_size": m[1], "worker_count": m[2]}
	dup := v.duplicateRanks()
	switch {
	case count > world:
		if len(dup) > 0 && !v.requeued() {
			c := v.add(cand{id: "rdzv-launched-twice", cert: diag.Likely, args: a, over: []string{"run-exception"}}, cap4(es)...)
			v.said(c, first(dup, 3)...)
			return
		}
		c := v.add(cand{id: "rdzv-stale-store", cert: diag.Likely, args: a, over: []string{"run-exception", "job-preempted"}}, cap4(es)...)
		if v.requeued() {
			c.cert = diag.Proven
		}
		for _, s := range v.facts("restart") {
			v.said(c, s)
		}
	case len(dup) > 0:
		c := v.add(cand{id: "rdzv-launched-twice", cert: diag.Proven, args: a, over: []string{"run-exception"}}, cap4(es)...)
		v.said(c, first(dup, 4)...)
	default:
		c := v.add(cand{id: "rdzv-too-few-ranks", cert: diag.Likely, tier: 1, args: a, over: []string{"run-exception"}}, cap4(es)...)
		c.needs = append(c.needs, "the logs of the ranks that did not come", "sacct -j JOBID")
	}
}

func (v *view) requeued() bool {
	for _, s := range v.facts("restart") {
		if strings.Contains(s.V, "requeue") || strings.Contains(s.V, "RESTART_COUNT") {
			return true
		}
	}
	return v.has("S242", "S244")
}

// duplicateRanks returns lines of several processes that believe to be the same rank.
func (v *view) duplicateRanks() []fact.Said {
	seen := map[string]fact.Said{}
	for _, s := range v.facts("global-rank") {
		k := s.Name + "/" + s.V
		o, ok := seen[k]
		if ok && (o.Task != s.Task || o.Node != s.Node || o.File != s.File) {
			return []fact.Said{o, s}
		}
		if !ok {
			seen[k] = s
		}
	}
	return nil
}

// clientsMissing judges "waiting for clients. 1/2 clients joined".
func (v *view) clientsMissing() {
	es := v.ev("S072")
	if len(es) == 0 {
		return
	}
	if c, ok := v.busyPeers(es[0]); ok {
		v.add(c, cap4(es)...)
		return
	}
	if v.multiNode() {
		for _, s := range v.scripts {
			for _, a := range s.assigns("MASTER_ADDR") {
				if isLocal(exportedValue(a)) || a.Step >= 0 && strings.Contains(a.Value.Text, "$(hostname") {
					p := v.add(cand{id: "rdzv-master-is-localhost", cert: diag.Proven, over: []string{"rdzv-too-few-ranks", "run-exception"}}, cap4(es)...)
					p.ev = append(p.ev, s.ev(a.Pos))
					return
				}
			}
		}
	}
	c := cand{id: "rdzv-too-few-ranks", cert: diag.Likely, tier: 1, over: []string{"run-exception"}}
	for _, s := range v.batch() {
		if r := &s.f.Request; (r.TasksPerNode > 1 || r.Tasks > 1 || r.Nodes > 1) && len(s.f.Steps) == 0 && !s.blind() {
			c.cert, c.tier = diag.Proven, 0
			c.ev = append(c.ev, s.opts("ntasks-per-node", "ntasks")...)
			if r.Nodes > 1 {
				c.ev = append(c.ev, s.opts("nodes")...)
			}
		}
	}
	if w := v.ev("S358"); len(w) > 0 {
		c.cert = diag.Proven
		c.ev = append(c.ev, v.evidence(w[0].Place, w[0].Text))
	}
	if c.cert != diag.Proven {
		c.needs = append(c.needs, "the logs of the other ranks", "scontrol show step JOBID")
	}
	v.add(c, cap4(es)...)
}

var (
	rdzvVar = lazyre.New(`^['"]?(?:RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT)['"]?$`)
)

// busyPeers reports that other ranks were alive and busy with work of their
// own when this one gave up.
func (v *view) busyPeers(e *fact.Event) (cand, bool) {
	me := v.rankOf(e.Place)
	c := cand{id: "run-rank-slow", cert: diag.Likely, over: []string{"rdzv-too-few-ranks", "run-exception", "job-cancelled"}}
	n := 0
	for _, s := range v.l.Streams {
		if s.Rank < 0 || s.Rank == me || s.Lines < 3 {
			continue
		}
		if s.Last.TK != 0 && s.Last.TK == e.TK && e.Time-s.Last.Time > 15*60*1000 {
			continue
		}
		if s.File != e.File && s.Last.TK == 0 {
			continue
		}
		if n < 3 {
			c.ev = append(c.ev, v.evidence(s.Last, s.Text))
			w := v.where(s.Last)
			r := s.Rank
			w.Rank = &r
			c.where = append(c.where, w)
		}
		n++
	}
	return c, n > 0
}

var toHost = lazyre.New(`(?:connect to|host) \(?\[?([\w.-]+)\]?[,:] ?(\d+)`)

// clientTimeout judges a store that could not be reached.
func (v *view) clientTimeout() {
	fatal := v.ev("S066", "S068", "S079")
	retry := v.ev("S064")
	v.used["S065"], v.used["S062"] = true, true
	if len(fatal) == 0 {
		return
	}
	for _, id := range []string{"rdzv-host-unresolvable", "rdzv-launched-twice"} {
		if v.candidate(id) {
			return
		}
	}
	es := append(append([]*fact.Event{}, fatal...), first1(retry)...)
	host, port := "", ""
	if m := toHost.FindStringSubmatch(fatal[0].Text); m != nil {
		host, port = m[1], m[2]
	}
	a := diag.Args{"host": host, "port": port}
	if r0 := v.hostOfRank0(); r0.V != "" && host != "" && !isLocal(host) && !sameHost(r0.V, host) {
		c := v.add(cand{id: "rdzv-master-wrong-host", cert: diag.Proven, tier: 1, args: mergeArgs(a, diag.Args{"node": r0.V}), over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}}, cap4(es)...)
		v.said(c, r0)
		return
	}
	if v.ownMasters(fatal, a) {
		return
	}
	if isLocal(host) && (v.multiNode() || len(v.nodesSeen()) > 1 || len(v.peek("S072")) > 0) { // one waits for clients, the other finds nobody on its own loopback
		cert := diag.Proven
		if !v.multiNode() && len(v.nodesSeen()) < 2 {
			cert = diag.Likely // that there are two nodes is only inferred
		}
		v.add(cand{id: "rdzv-master-is-localhost", cert: cert, tier: 1, args: a, over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}}, cap4(es)...)
		return
	}
	if own := v.rank0Refused(append(append([]*fact.Event{}, fatal...), retry...)); own != nil && host != "" {
		c := v.add(cand{id: "rdzv-master-wrong-host", cert: diag.Likely, tier: 1, args: a, over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}, needs: []string{"srun -l hostname", "srun bash -c 'echo $MASTER_ADDR'"}}, own)
		if _, s, ok := v.env("MASTER_ADDR"); ok {
			v.said(c, s)
		}
		for _, s := range v.scripts {
			for _, x := range s.assigns("MASTER_ADDR") {
				c.ev = append(c.ev, s.ev(x.Pos))
			}
		}
		return
	}
	c := v.add(cand{id: "rdzv-unreachable", cert: diag.Likely, tier: 1, args: a, over: []string{"rdzv-too-few-ranks", "run-exception"}}, cap4(es)...)
	c.needs = append(c.needs, "the log of rank 0 on "+hostOr(host), "srun bash -c 'getent hosts "+hostOr(host)+"; nc -zv "+hostOr(host)+" "+portOr(port)+"'")
}

// rank0Refused returns the line in which rank 0 itself is refused at MASTER_ADDR.
// The store listens on every address of rank 0's host before its own client
// connects, so the name leads to another host. Under torchrun it is the agents
// that meet, and what a rank says proves nothing of the kind.
func (v *view) rank0Refused(es []*fact.Event) *fact.Event {
	if v.launchers || v.torchrunTrace() || v.has("S061", "S063", "S474") {
		return nil
	}
	for _, e := range es {
		if v.rankOf(e.Place) == 0 && (strings.Contains(e.Text, "Connection refused") || strings.Contains(e.Text, "errno: 111")) {
			return e
		}
	}
	return nil
}

func hostOr(h string) string {
	if h == "" {
		return "$MASTER_ADDR"
	}
	return h
}

func portOr(p string) string {
	if p == "" {
		return "$MASTER_PORT"
	}
	return p
}

func first1(es []*fact.Event) []*fact.Event {
	if len(es) > 1 {
		return es[:1]
	}
	return es
}

func sameHost(a, b string) bool {
	if _, err := netip.ParseAddr(a); err == nil { // numbers have no domain
		return a == b
	}
	return strings.SplitN(a, ".", 2)[0] == strings.SplitN(b, ".", 2)[0]
}

func isLocal(h string) bool {
	return h == "localhost" || strings.HasPrefix(h, "127.") || h == "::1" || h == "0.0.0.0"
}

// hostOfRank0 is where rank 0 runs, as far as the program prints it.
func (v *view) hostOfRank0() fact.Said {
	for _, s := range v.facts(kind.RankHost) {
		if s.Name == "0" {
			return s
		}
	}
	return fact.Said{}
}

// onNodes is how many nodes a typed or traced command of Slurm asks for.
var onNodes = lazyre.New(`^(?:srun|salloc|sbatch)\b.* (?:-N ?|--nodes[= ])(\d+)\b`)

func (v *view) multiNode() bool {
	for _, s := range v.scripts {
		if s.f.Request.Nodes > 1 {
			return true
		}
	}
	for _, e := range v.facts("nnodes") {
		if n, err := strconv.Atoi(e.V); err == nil && n > 1 {
			return true
		}
	}
	for _, c := range v.l.Commands {
		if m := onNodes.FindStringSubmatch(c.Text); m != nil && atoi(m[1]) > 1 {
			return true
		}
	}
	return false
}

// joinTimeout judges torchrun's RendezvousTimeoutError.
func (v *view) joinTimeout() {
	es := v.ev("S084")
	if len(es) == 0 {
		return
	}
	for _, s := range v.facts("rdzv-endpoint") {
		h := s.V
		if i := strings.LastIndexByte(h, ':'); i > 0 {
			h = h[:i]
		}
		if isLocal(h) && v.multiNode() {
			c := v.add(cand{id: "rdzv-master-is-localhost", cert: diag.Proven, args: diag.Args{"host": h}, over: []string{"run-exception"}}, cap4(es)...)
			v.said(c, s)
			return
		}
	}
	v.used["S085"] = true
	for _, s := range v.batch() {
		ls := s.launchers()
		if s.f.Request.Nodes < 2 || s.blind() || len(s.f.Steps) > 0 || len(ls) != 1 || ls[0].Standalone || ls[0].Nnodes.Val == "" && ls[0].Nnodes.Text == "" || ls[0].Nnodes.Val == "1" {
			continue
		}
		c := v.add(cand{id: "rdzv-too-few-ranks", cert: diag.Likely, tier: 1, over: []string{"run-exception"}}, cap4(es)...)
		c.ev = append(append(c.ev, s.opts("nodes")...), s.ev(s.stmt(ls[0].Cmd)))
		return
	}
	v.unknown(es, "the logs of the other nodes and the sbatch script", "did their agents start, with the same rdzv_id and endpoint?")
}
