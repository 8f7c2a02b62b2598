package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cuda-libs-shadowed", func(b *fact.Bundle, r *diag.Reporter) {
	var broken, aged *fact.Load
	for i := range b.Loads {
		l := &b.Loads[i]
		if !cudaLib(l.Soname) || !l.Path.IsKnown() || l.Via != "LD_LIBRARY_PATH" && l.Via != "preload" {
			continue
		}
		switch {
		case len(l.Missing) > 0:
			if broken == nil {
				broken = l
			}
		case l.Shadows != "" && l.Version.IsKnown() && l.ShadowsVer != "" && older(l.Version.V, l.ShadowsVer):
			if aged == nil {
				aged = l
			}
		}
	}
	l, c, sev := broken, diag.Proven, diag.Error
	if imports(b) {
		l = nil // whatever is missing, this import did not need it
	}
	if l == nil {
		l, c, sev = aged, diag.Likely, diag.Warning
	}
	if l == nil {
		return
	}
	a := args(b)
	a["lib"], a["path"], a["loaded"] = l.Soname, quote(l.Path.V), l.Version.Or("?")
	a["variant"] = "older"
	if l == broken {
		a["variant"], a["symbols"] = "broken", first(l.Missing, 3)
	}
	a["own"], a["own_version"] = quote(l.Shadows), l.ShadowsVer
	if a["own"] == "" {
		a["own"] = "-"
	}
	if a["own_version"] == "" {
		a["own_version"] = "?"
	}
	loaderArgs(b, a, l.Via, l.ViaDir)
	f := r.Hit("cuda-library-shadowed", c, a, l.Path.At, l.Version.At).Sev(sev)
	if v, ok := b.Lookup(a["var"]); ok {
		f.Evidence = append(f.Evidence, fact.EnvVarAt(a["var"], v))
	}
	if c != diag.Proven {
		f.Need(a["python"] + " -c 'import torch; print(torch.zeros(1).cuda() + 1)'")
	}
})
