package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
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

var (
	hwXid = map[string]bool{"48": true, "61": true, "62": true, "63": true, "64": true, "74": true, "79": true, "92": true, "94": true, "95": true, "119": true, "120": true, "121": true, "140": true, "143": true}
)
