package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var _ = Checks.Add("torch-version-cpu", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	switch {
	case t.Form != "":
		return // not a package: torch-install-damaged or env-local-module-shadows
	case !t.CUDA.Looked() || t.CUDA.State == fact.Failed:
		r.Skip("torch/version.py was not read")
		return
	case t.Accel() != fact.AccelCPU:
		return
	}
	// version.py alone is one fact; an unknown accelerator would look like this too.
	c := diag.Likely
	ev := []fact.Evidence{t.CUDA.At}
	if nccl, ok := t.NCCL.Get(); ok && !nccl {
		c, ev = diag.Proven, append(ev, t.NCCL.At)
	}
	if nccl, ok := b.Live.NCCL.Get(); ok && !nccl {
		c, ev = diag.Proven, append(ev, b.Live.NCCL.At)
	}
	if strings.HasSuffix(t.Version.Or(""), "+cpu") {
		c, ev = diag.Proven, append(ev, t.Version.At)
	}
	a := args(b)
	d := t.Dist.Or(fact.Dist{})
	o := t.Origin.Or(fact.Origin{})
	switch {
	case o.Kind == fact.OriginConda && strings.HasPrefix(o.Build, "cpu"):
		c, ev = diag.Proven, append(ev, t.Origin.At.WithExcerpt("build "+o.Build))
		a["variant"], a["conda_build"], a["channel"] = "conda", o.Build, o.Channel
		if a["channel"] == "" {
			a["channel"] = "conda"
		}
	case o.Kind == fact.OriginDebian:
		a["variant"], a["package"] = "debian", o.Package
		ev = append(ev, t.Origin.At)
	case t.Machine.Or("") == "aarch64" && o.Kind == fact.OriginWheel && d.URL == "" &&
		tables.PyPIAarch64CPU(t.Version.Or("")) == tables.Yes && !strings.Contains(t.Version.Or(""), "+"):
		a["variant"] = "aarch64"
		ev = append(ev, t.Machine.At)
	}
	f := r.Hit("torch-cpu-build", c, a, ev...)
	if c != diag.Proven {
		f.Need("ncclinic check --live")
	}
})
