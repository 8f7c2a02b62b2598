package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("missing-rdzv", func(c *Ctx) {
	if c.S.HetGroups > 0 {
		return
	}
	for _, v := range []string{"PET_NNODES", "PET_RDZV_ENDPOINT", "PET_MASTER_ADDR"} {
		if c.assigned(v) {
			return
		}
	}
	hit := func(l *fact.Launch, variant string, nodes int) *Result {
		kv := []string{"variant", variant, "nodes", itoa(nodes)}
		if !c.assigned("MASTER_ADDR") || !c.assigned("MASTER_PORT") {
			kv = append(kv, "unset", "yes") // the fix sets what it names
		}
		return c.Hit(l.Pos, kv...)
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		st := c.stepOf(l)
		if st == nil || !c.inSrun(l) || l.Open || c.perNode(l) {
			return
		}
		if l.Kind == fact.LaunchDeepSpeed && st.Tool == "srun" && !st.Unknown && st.EffNodes >= 2 && st.EffTPN == 1 && !given(l.Hostfile) && !given(l.NodeRank) && !c.assigned("DLTS_HOSTFILE") {
			c.Hit(l.Pos, "variant", "deepspeed", "launcher", "deepspeed", "nodes", itoa(st.EffNodes))
			return
		}
		if c.rankless(l, st) {
			h := c.Hit(l.Pos, "variant", "noderank", "launcher", "rank", "name", show(l), "nodes", itoa(st.EffNodes))
			if given(l.NodeRank) {
				h.Args["variant"], h.Args["rank"] = "samerank", clip(l.NodeRank.Text, 60)
			}
			return
		}
		if !elastic(l) {
			return
		}
		n, known := num(l.Nnodes)
		endpoint := given(l.Endpoint) || given(l.MasterAddr)
		if st.Unknown && st.Nodes == 0 && st.Opt("nodes") == nil && given(l.Nnodes) && !(known && n == 1) && !endpoint && !l.Standalone {
			// srun $ARGS: whatever is in it, torchrun has no place to meet.
			if r := &c.S.Request; r.EffectiveNodes >= 2 && r.EffectiveTPN == 1 {
				hit(l, "endpoint", r.EffectiveNodes)
			}
			return
		}
		if st.Unknown || st.EffNodes < 2 {
			return
		}
		if st.EffTPN > 1 {
			// One launcher per task is reported by torchrun-per-gpu-task. With the
			// tasks mended, there is still no place to meet.
			if nodes := l.Nnodes; given(nodes) && nodes.Known && !(known && n < 2) && !endpoint && !l.Standalone && !given(l.Backend) {
				hit(l, "endpoint", st.EffNodes)
			}
			return
		}
		switch {
		case l.Standalone:
			hit(l, "standalone", st.EffNodes)
		case !given(l.Nnodes) || known && n == 1:
			hit(l, "nnodes", st.EffNodes)
		case !endpoint:
			hit(l, "endpoint", st.EffNodes)
		case !given(l.Endpoint) && l.Backend.Known && l.Backend.Text == "c10d":
			hit(l, "c10d", st.EffNodes).Sev(diag.Warning)
		}
	})
})

// rankless reports a launcher that meets by the static backend, the default, and
// is not told which node it is on, or the same on all: each takes itself for node 0.
func (c *Ctx) rankless(l *fact.Launch, st *fact.Step) bool {
	if st.Unknown || st.EffNodes < 2 || st.EffTPN != 1 || l.Guessed || l.Standalone || given(l.NodeRank) && !c.sameRank(l.NodeRank) || !given(l.Nnodes) || given(l.Backend) && l.Backend.Text != "static" {
		return false
	}
	if n, known := num(l.Nnodes); known && n < 2 || strings.Contains(l.Nnodes.Text, ":") {
		return false
	}
	switch {
	case elastic(l):
		return (given(l.Endpoint) || given(l.MasterAddr)) && !c.assigned("PET_NODE_RANK") && !c.assigned("PET_RDZV_BACKEND")
	case l.Kind == fact.LaunchAccelerate:
		return given(l.MasterAddr) && !given(l.Config) // a file may name another backend
	}
	return false
}

// sameRank reports a rank that is the same in the only task of each node: a
// number, or SLURM_LOCALID.
func (c *Ctx) sameRank(w fact.Word) bool {
	if _, ok := num(w); ok {
		return true
	}
	hs := c.S.HolesOf(w.Val)
	return len(hs) == 1 && len([]rune(w.Val)) == 1 && hs[0].Kind == "var" && hs[0].Name == "SLURM_LOCALID" && hs[0].Step
}
