package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("platform-no-nccl", func(b *fact.Bundle, r *diag.Reporter) {
	os, ok := b.Host.OS.Get()
	if !ok {
		r.Skip("the operating system is not known")
		return
	}
	name := map[string]string{"windows": "Windows", "darwin": "macOS"}[os]
	if name == "" {
		return
	}
	a := args(b)
	a["os"], a["os_name"] = os, name
	r.Hit("torch-platform-has-no-nccl", diag.Proven, a, b.Host.OS.At)
})
