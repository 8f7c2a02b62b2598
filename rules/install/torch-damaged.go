package install

import (
	"path"
	"slices"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-damaged", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if len(t.Damage) == 0 {
		return
	}
	// Worst first: what is named decides how sure and how bad it is.
	rank := []string{fact.DamageMissingFile, fact.DamageTruncatedFile, fact.DamageVersionMismatch, fact.DamageTwoInstallers, fact.DamageTwoDists, fact.DamageChangedFile, fact.DamageLeftover}
	worst := len(rank)
	var ev []fact.Evidence
	var what []string
	for _, d := range t.Damage {
		for i, k := range rank {
			if d.Kind != k {
				continue
			}
			if i < worst {
				worst, what = i, nil
			}
			if i == worst && !slices.Contains(what, d.What) {
				what = append(what, d.What)
			}
		}
		ev = append(ev, d.At)
	}
	if worst == len(rank) {
		r.Skip("signs of damage of an unknown kind")
		return
	}
	a := args(b)
	sameBuild(b, a)
	a["variant"], a["what"] = rank[worst], first(what, 3)
	c, sev := diag.Likely, diag.Warning
	switch rank[worst] {
	case fact.DamageMissingFile, fact.DamageTruncatedFile:
		c, sev = diag.Proven, diag.Error
	case fact.DamageVersionMismatch:
		c, sev = diag.Proven, diag.Error
	case fact.DamageTwoDists, fact.DamageTwoInstallers:
		c = diag.Proven
	}
	if imports(b) {
		sev = diag.Warning // it can be imported all the same
	}
	if a["installer"] == "debian" || path.Base(t.Dir) != "torch" {
		delete(a, "site_dir") // never offer to remove what a package manager of the system owns
	}
	r.Hit("torch-install-damaged", c, a, ev...).Sev(sev)
})
