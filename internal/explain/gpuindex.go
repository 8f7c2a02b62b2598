package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

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
