package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-leftover-cuda", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	if t.Accel() != fact.AccelCPU || installer(t) == "conda" || installer(t) == "debian" {
		return
	}
	// Only a CUDA wheel of torch brings these two; jax, cupy and tensorflow bring others.
	var left []string
	var ev []fact.Evidence
	for _, d := range b.Dists {
		_, local, _ := strings.Cut(d.Version, "+")
		switch {
		case d.Entry != t.Entry:
		case strings.HasPrefix(d.Name, "nvidia-nvtx-cu"), strings.HasPrefix(d.Name, "nvidia-cusparselt-cu"),
			(d.Name == "torchvision" || d.Name == "torchaudio") && strings.HasPrefix(local, "cu"):
			left = append(left, d.Name+" "+d.Version)
			ev = append(ev, fact.File(d.Dir))
		}
	}
	if len(left) == 0 {
		return
	}
	a := args(b)
	a["left"] = first(left, 3)
	f := r.Hit("torch-replaced-by-dependency", diag.Likely, a, ev...).Sev(diag.Warning)
	f.As(diag.Contributing).Need(a["python"] + " -m pip check")
})
