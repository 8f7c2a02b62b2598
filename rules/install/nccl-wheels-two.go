package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var ncclDist = lazyre.New(`^nvidia-nccl-cu1[0-9]$`)

var _ = Checks.Add("nccl-wheels-two", func(b *fact.Bundle, r *diag.Reporter) {
	byEntry := map[int][]fact.Dist{}
	var hit []fact.Dist
	for _, d := range b.Dists {
		if !ncclDist.MatchString(d.Name) {
			continue
		}
		byEntry[d.Entry] = append(byEntry[d.Entry], d)
		if ds := byEntry[d.Entry]; hit == nil && len(ds) > 1 && ds[0].Name != d.Name {
			hit = ds
		}
	}
	if hit == nil {
		return // one in each of two environments is no collision
	}
	a := args(b)
	wheel, want := ncclPin(b.Winner())
	var all, others []string
	ev := []fact.Evidence{}
	for _, d := range hit {
		all = append(all, d.Name+" "+d.Version)
		ev = append(ev, fact.File(d.Dir))
		if d.Name != wheel {
			others = append(others, d.Name)
		}
	}
	a["wheels"] = strings.Join(all, ", ")
	if wheel != "" && len(others) > 0 {
		a["wheel"], a["wheel_version"], a["others"] = wheel, want, strings.Join(others, " ")
	}
	l := b.LoadOf(ncclSoname)
	a["variant"], a["loaded"] = "unknown", "?"
	sev := diag.Warning
	if l != nil {
		ev = append(ev, l.Version.At)
		v, known := l.Version.Get()
		switch {
		case l.Path.IsAbsent():
			a["variant"], sev = "gone", diag.Error
		case len(l.Missing) > 0 && !imports(b):
			a["variant"], a["loaded"], sev = "wrong", l.Version.Or("?"), diag.Error
		case known && want != "" && v == want:
			a["variant"], a["loaded"], sev = "right", v, diag.Note
		case known:
			a["variant"], a["loaded"] = "wrong", v
		}
	}
	r.Hit("nccl-wheels-collide", diag.Proven, a, ev...).Sev(sev)
})
