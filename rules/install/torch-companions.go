package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var _ = Checks.Add("torch-companions", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	version, ok := t.Version.Get()
	if !ok {
		r.Skip("the version of torch is not known")
		return
	}
	if installer(t) == "conda" || installer(t) == "debian" {
		return // their solvers keep the pairs together, under version numbers of their own
	}
	_, local, _ := strings.Cut(version, "+")
	for _, d := range b.Dists {
		if d.Name != "torchvision" && d.Name != "torchaudio" || d.Entry != t.Entry || d.Installer == "conda" {
			continue
		}
		public, dlocal, _ := strings.Cut(d.Version, "+")
		want := tables.Companion(d.Name, version)
		f := strings.Split(public, ".")
		a := args(b)
		a["extension"], a["extension_version"] = d.Name, d.Version
		switch {
		case want != "" && len(f) == 3 && f[0]+"."+f[1] != want:
			a["variant"], a["want"] = "version", want
			a["companion"] = d.Name + "==" + want + ".*"
		case strings.HasPrefix(local, "cu") && dlocal == "cpu", local == "cpu" && strings.HasPrefix(dlocal, "cu"),
			strings.HasPrefix(local, "cu") && strings.HasPrefix(dlocal, "cu") && local[:4] != dlocal[:min(4, len(dlocal))]:
			a["variant"], a["want"] = "build", "+"+local
			a["companion"] = d.Name + "==" + public
			if local == "cpu" {
				delete(a, "companion") // torch is the one to be replaced
			} else {
				a["cuda_tag"] = local
			}
		default:
			continue
		}
		r.Hit("torch-extension-built-for-other-torch", diag.Likely, a, fact.File(d.Dir), t.Version.At).
			Sev(diag.Warning).Need(a["python"] + " -c 'import " + d.Name + "'")
		return
	}
})
