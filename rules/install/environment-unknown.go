package install

import (
	"path"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// What nobody could look at must not come out as "nothing is wrong".
var _ = Checks.Add("environment-unknown", func(b *fact.Bundle, r *diag.Reporter) {
	live := "ncclinic check --live"
	if b.Target.Kind != "" { // an artefact has no interpreter that could be asked here
		live = "python -c 'import torch, torch.distributed as d; print(torch.__version__, torch.version.cuda, d.is_nccl_available())'"
	}
	if imports(b) {
		return
	}
	py := &b.Python
	w := b.Winner()
	a := args(b)
	switch {
	case !py.Exe.Looked() && len(py.Path) == 0 && w == nil && !b.Node.Driver.Looked() && !b.Slurm.Job.Looked() && len(b.Env) == 0:
		a["variant"] = "empty"
		r.Hit("environment-unknown", diag.Proven, a).Need("ncclinic facts -o facts.json")
	case py.Exe.IsAbsent() && len(py.Path) == 0:
		a["variant"] = "none"
		r.Hit("environment-unknown", diag.Proven, a, py.Exe.At).Need("ncclinic check --python /path/to/python")
	case py.Exe.State == fact.Failed:
		a["variant"], a["reason"] = "failed", py.Exe.Why
		r.Hit("environment-unknown", diag.Proven, a, py.Exe.At).Need("ncclinic check --python /path/to/python")
	case w == nil && py.Exe.IsKnown() && py.Version.State == fact.Failed:
		a["variant"], a["reason"] = "path", py.Version.Why
		r.Hit("environment-unknown", diag.Proven, a, py.Exe.At).Need(live)
	case w == nil && py.Exe.IsKnown() && notSeen(b) != "":
		a["variant"], a["reason"] = "packages", notSeen(b)
		r.Hit("environment-unknown", diag.Proven, a, py.Exe.At).Need(live)
	case w != nil && w.Form == fact.FormNamespace && barred(b, w) != "":
		a["variant"], a["reason"] = "nccl", barred(b, w)
		r.Hit("environment-unknown", diag.Proven, a, fact.File(w.Dir)).Need(live)
	case w != nil && w.Form == "" && w.Version.State == fact.Failed && !w.NCCL.IsKnown() && w.NCCL.State != fact.Failed:
		a["variant"], a["reason"] = "nccl", w.Version.Why
		r.Hit("environment-unknown", diag.Proven, a, w.Version.At).Need(live)
	case w != nil && w.Form == "" && w.NCCL.State == fact.Failed && w.Accel() != fact.AccelCPU:
		a["variant"], a["reason"] = "nccl", w.NCCL.Why
		r.Hit("environment-unknown", diag.Proven, a, w.NCCL.At).Need(live)
	case ncclFailed(b) != nil:
		l := ncclFailed(b)
		a["variant"], a["reason"], a["lib"] = "loader", l.Path.Why, l.Soname
		r.Hit("environment-unknown", diag.Proven, a, l.Path.At).Need(live)
	case compatUnknown(b, a):
		r.Hit("environment-unknown", diag.Proven, a, b.Target.Compat.At, b.Node.Driver.At).Need("python -c 'import torch; torch.zeros(1).cuda(); print(torch.version.cuda)'")
	case b.Node.Driver.State == fact.Failed && !b.Node.GPUs.IsKnown() && !b.Host.Board.IsKnown():
		a["variant"], a["reason"] = "node", b.Node.Driver.Why
		r.Hit("environment-unknown", diag.Proven, a, b.Node.Driver.At).Need("nvidia-smi")
	}
})

// barred says why the folder of a torch, which looks like one without code, could not be read.
func barred(b *fact.Bundle, w *fact.Torch) string {
	for _, p := range b.Problems {
		if p.What == w.Dir+"/__init__.py" {
			return p.What + ": " + p.Why
		}
	}
	return ""
}

// compatUnknown puts into a what is to be told of a forward compatibility package on
// which it depends whether an image runs.
func compatUnknown(b *fact.Bundle, a diag.Args) bool {
	l, ok := forwardCompat(b)
	if ok {
		a["variant"], a["lib"], a["lib_version"], a["compat"] = "compat", l.Path, l.Version, path.Dir(l.Path)
		a["driver"] = b.Node.Driver.V.Version
	}
	return ok
}

// ncclFailed returns the search for NCCL's library when something in its way could not be read.
func ncclFailed(b *fact.Bundle) *fact.Load {
	w, l := b.Winner(), b.LoadOf(ncclSoname)
	if w == nil || l == nil || l.Path.State != fact.Failed || !w.NCCL.Or(false) || w.NCCLStatic.Or(false) {
		return nil
	}
	return l
}
