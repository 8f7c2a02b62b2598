package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// decideStates judges what Slurm's own listings say of a job: that it was
// preempted, or why it does not start.
func (v *view) decideStates() {
	if s, ok := v.sacctState("PREEMPTED"); ok && !v.sacctDone() && !v.has("S242") {
		c := v.add(cand{id: "job-preempted", cert: diag.Proven, over: []string{"run-exception", "job-cancelled", "run-collective-hang"}})
		v.said(c, s)
		c.where = append(c.where, v.where(s.Place))
	}
	if s, ok := v.sacctState("BOOT_FAIL"); ok && !v.sacctDone() {
		c := v.add(cand{id: "node-failed", cert: diag.Proven, over: []string{"run-exception", "job-cancelled"}})
		v.said(c, s)
		c.where = append(c.where, v.where(s.Place))
	}
	if v.dead || len(v.exc) > 0 || v.trained() || len(v.facts("success")) > 0 {
		return
	}
	runs := false // a limit on what one owner may use is no fault while other jobs use it
	for _, s := range v.facts(kind.Pending) {
		runs = runs || s.V == "running"
	}
	for _, s := range v.facts(kind.Pending) {
		cert := diag.Likely
		switch {
		case neverStarts.MatchString(s.V):
		case !runs && limitOf.MatchString(s.V):
			cert = diag.Possible
		default:
			continue
		}
		c := v.add(cand{id: "slurm-request-impossible", cert: cert, args: diag.Args{"reason": s.V}})
		v.said(c, s)
		c.where = append(c.where, v.where(s.Place))
		c.needs = append(c.needs, "scontrol show job JOBID | grep -e Reason -e ReqTRES", "scontrol show partition", "sacctmgr show qos")
		return
	}
}

var (
	// reasons with which a job waits for ever
	neverStarts = lazyre.New(`^(?:PartitionNodeLimit|PartitionTimeLimit|PartitionConfig|BadConstraints|InvalidAccount|InvalidQOS|QOSNotAllowed|AccountNotAllowed|AssocMaxWallDurationPerJobLimit|QOSMaxWallDurationPerJobLimit|\w*(?:Max|Min)\w*PerJob(?:Limit)?|\w*PerNode)$`)
	// reasons that end when other jobs of the same owner do, unless the job alone asks for more
	limitOf = lazyre.New(`^(?:QOS|Assoc)(?:Max|Grp|Min)\w+$`)
)

// ctrlC judges an srun that somebody at its terminal interrupted.
func (v *view) ctrlC() {
	es := v.peek("log-srun-ctrl-c", "log-allocation-revoked")
	if len(es) == 0 || v.candidate("job-time-limit") || v.candidate("job-cancelled") {
		return
	}
	for _, e := range es {
		if strings.Contains(e.Text, "forcing job termination") && len(es) == 1 {
			return // also after a time limit or a lost terminal
		}
	}
	v.used["log-srun-ctrl-c"], v.used["log-allocation-revoked"] = true, true
	v.add(cand{id: "job-cancelled", cert: diag.Likely, tier: 1, over: []string{"run-exception", "run-collective-hang"}, needs: []string{"sacct -j JOBID -o JobID,State%30,ExitCode,End"}}, cap4(es)...)
}

// deadPort judges a network failure of a node whose RDMA device has no link: the
// device that the message names, or every device that the listing shows.
func (v *view) deadPort(es []*fact.Event) bool {
	up := map[string]bool{}
	var down []fact.Said
	for _, s := range v.facts(kind.Port) {
		if s.V == "up" {
			up[s.Node] = true
		} else {
			down = append(down, s)
		}
	}
	if len(es) == 0 || len(down) == 0 {
		return false
	}
	hca, _, _ := v.env("NCCL_IB_HCA")
	for _, s := range down {
		named := strings.Contains(hca, s.Name)
		for _, e := range es {
			named = named || s.Name != "" && strings.Contains(e.Text, s.Name)
		}
		if up[s.Node] && !named {
			continue // cards have ports that nobody uses
		}
		c := v.add(cand{id: "net-rdma-device", cert: diag.Likely, tier: 1, args: diag.Args{"device": s.Name}, over: []string{"net-interface-wrong", "net-rdma-address", "net-differs-between-nodes", "run-collective-hang", "rdzv-unreachable"}}, cap4(es)...)
		v.said(c, s)
		if named {
			c.cert = diag.Proven
		}
		return true
	}
	return false
}

// sacctFailed reports that sacct or scontrol show one job, and that it did not end well.
func (v *view) sacctFailed() bool {
	state, id := "", ""
	for _, s := range v.facts(kind.Sacct) {
		if strings.Contains(s.Name, ".") {
			continue
		}
		if id != "" && s.Name != id {
			return false // a table of many jobs: which one is meant is not told
		}
		id, state = s.Name, s.V // the last row counts, when a job was started again
	}
	for _, w := range []string{"FAILED", "TIMEOUT", "OUT_OF_ME", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"} {
		if strings.HasPrefix(state, w) {
			return true
		}
	}
	return false
}
