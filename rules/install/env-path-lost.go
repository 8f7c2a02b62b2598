package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("env-path-lost", func(b *fact.Bundle, r *diag.Reporter) {
	if b.Python.By != fact.ByPath {
		r.Skip("the interpreter was not taken from PATH")
		return
	}
	if hostEnv(b) {
		r.Skip("inside a container variables of the host's environment mean nothing")
		return
	}
	exe := b.Python.Exe.V
	name := fact.ByVirtualEnv
	prefix, ok := b.Lookup(name)
	if !ok || prefix == "" {
		name = fact.ByCondaPrefix
		prefix, ok = b.Lookup(name)
	}
	if !ok || prefix == "" || within(exe, prefix) || trains(b) {
		return // a python that can train is perhaps the one that was meant
	}
	var own *fact.PythonRef
	for i, o := range b.Python.Others {
		if o.By == name && !o.Missing {
			own = &b.Python.Others[i]
		}
	}
	if own == nil || own.Torch.IsAbsent() || own.Accel == fact.AccelCPU {
		return // the environment is not here, is the same interpreter by another name, or could not train either
	}
	a := args(b)
	a["prefix"], a["var"] = quote(prefix), name
	c := diag.Proven
	if base, _ := b.Lookup("CONDA_DEFAULT_ENV"); name == fact.ByCondaPrefix && base == "base" {
		c = diag.Likely // conda's base is active by itself in many shells and not always meant
	}
	a["variant"] = "lost"
	ev := []fact.Evidence{fact.EnvVarAt(name, prefix), b.Python.Exe.At}
	if p, ok := b.Lookup("PATH"); ok {
		for _, d := range strings.Split(p, ":") {
			if within(d, prefix) {
				a["variant"] = "behind"
			}
		}
		ev = append(ev, fact.EnvVarAt("PATH", p))
	}
	r.Hit("env-modules-reset-after-activation", c, a, ev...).Need("which -a python")
})

// hostEnv reports whether the process is in a container that takes over the
// variables of the host, as those of clusters do: what was active outside was
// not meant inside. Docker and Podman pass nothing on, so there a variable was
// set inside; a slurmd that itself runs in such a container is a usual node.
func hostEnv(b *fact.Bundle) bool {
	kind, ok := b.Container.Kind.Get()
	return ok && kind != "docker" && kind != "podman"
}
