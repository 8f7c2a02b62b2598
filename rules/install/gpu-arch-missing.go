package install

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var _ = Checks.Add("gpu-arch-missing", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if t.Accel() != fact.AccelCUDA {
		return
	}
	archs, ok := t.Archs.Get()
	at := t.Archs.At
	if live, asked := b.Live.Archs.Get(); asked && len(live) > 0 {
		archs, ok, at = live, true, b.Live.Archs.At
	}
	if !ok || len(archs) == 0 {
		r.Skip("the architectures of the build were not read")
		return
	}
	bad, good := -1, 0
	for i, g := range b.Node.GPUs.V {
		switch tables.Runs(archs, g.Cap) {
		case tables.No:
			if bad < 0 {
				bad = i
			}
		case tables.Yes:
			good++
		}
	}
	if bad < 0 {
		return
	}
	g := b.Node.GPUs.V[bad]
	a := args(b)
	a["gpu"], a["cap"], a["archs"] = g.Name, g.Cap, strings.Join(archs, " ")
	if a["gpu"] == "" {
		a["gpu"] = "GPU " + strconv.Itoa(g.Index)
	}
	if newest := highest(archs); newest != "" {
		a["age"] = "older"
		if tables.Compare(g.Cap, newest) > 0 {
			a["age"] = "newer"
		}
	}
	c := diag.Likely
	if g.CapFrom == "nvidia-smi" {
		c = diag.Proven // the driver's own word; a table of product names is mine
	}
	f := r.Hit("torch-gpu-arch-unsupported", c, a, at, b.Node.GPUs.At)
	if good > 0 {
		f.Sev(diag.Warning) // a small display card beside GPUs that work
	}
	if c != diag.Proven {
		f.Need("nvidia-smi --query-gpu=name,compute_cap --format=csv")
	}
})

// highest returns the highest capability among sm_ entries as "9.0".
func highest(archs []string) string {
	best := ""
	for _, a := range archs {
		n, ok := strings.CutPrefix(strings.TrimRight(a, "af"), "sm_")
		if v, err := strconv.Atoi(n); ok && err == nil && v >= 10 {
			if c := strconv.Itoa(v/10) + "." + strconv.Itoa(v%10); best == "" || tables.Compare(c, best) > 0 {
				best = c
			}
		}
	}
	return best
}
