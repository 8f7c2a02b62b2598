package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torchrun-other-prefix", func(b *fact.Bundle, r *diag.Reporter) {
	tr, ok := b.Python.Torchrun.Get()
	if !ok {
		return
	}
	if b.Python.By == fact.ByFlag || b.Python.By == fact.ByScript {
		r.Skip("the interpreter was not taken from PATH")
		return
	}
	py := tr.Python
	if !path.IsAbs(py) || path.Base(py) == "env" || !strings.HasPrefix(path.Base(py), "py") {
		return // "/usr/bin/env python" is the python of PATH
	}
	exe, real := b.Python.Exe.V, b.Python.Real.Or("")
	if path.Dir(py) == path.Dir(exe) || py == real && !b.Python.Venv.Or(false) && !b.Python.Conda.IsKnown() ||
		b.Python.Prefix.IsKnown() && within(py, b.Python.Prefix.V) && !deeperEnv(py, b.Python.Prefix.V) {
		return
	}
	named := false // the collector compares programs, links resolved; what it does not list is the same one
	var other fact.PythonRef
	for _, o := range b.Python.Others {
		if o.By == fact.ByTorchrun {
			named, other = true, o
		}
	}
	if !named && real == py {
		return
	}
	if b.Winner() == nil && !other.Missing && other.Accel != fact.AccelCUDA && other.Accel != fact.AccelROCm {
		return // no torch in either that could train: torch-not-found says it
	}
	a := args(b)
	a["torchrun"], a["torchrun_python"], a["variant"] = quote(tr.Path), quote(py), "other"
	if b.Winner() == nil && !other.Missing {
		// The launcher's environment could train, this one cannot even import torch.
		delete(a, "torchrun_python")
		a["variant"], a["other"], a["other_version"] = "there", quote(py), other.Torch.Or("?")
		r.Hit("env-not-activated", diag.Likely, a, b.Python.Torchrun.At, b.Python.Exe.At, other.Torch.At).Need("head -1 " + a["torchrun"])
		return
	}
	f := r.Hit("env-not-activated", diag.Likely, a, b.Python.Torchrun.At, b.Python.Exe.At)
	switch {
	case other.Missing:
		f.Args["variant"] = "missing"
		f.Certainty = diag.Proven
		if b.Winner() == nil || trains(b) {
			f.Sev(diag.Warning) // the job need not use torchrun
		}
	default:
		f.Sev(diag.Warning)
	}
	f.Need("head -1 " + a["torchrun"])
})

// deeperEnv reports whether a program under a prefix such as /usr belongs to an
// environment of its own further down (/usr/local, /usr/share/venv).
func deeperEnv(py, prefix string) bool {
	return path.Dir(py) != path.Join(prefix, "bin")
}
