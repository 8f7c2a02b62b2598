package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("torch-machine", func(b *fact.Bundle, r *diag.Reporter) {
	have, ok1 := b.Host.Arch.Get()
	built, ok2 := b.Winner().Machine.Get()
	if !ok1 || !ok2 {
		r.Skip("the architecture of the host or of torch is not known")
		return
	}
	if have, built := machine(have), machine(built); have == built || have == "" || built == "" || imports(b) {
		return
	}
	a := args(b)
	a["arch"], a["built_for"] = have, built
	r.Hit("torch-other-machine", diag.Proven, a, b.Winner().Machine.At, b.Host.Arch.At)
})

// machine maps the names of an architecture to the one of uname, "" for those
// that are not known here.
func machine(s string) string {
	switch s {
	case "x86_64", "amd64", "x86-64":
		return "x86_64"
	case "aarch64", "arm64":
		return "aarch64"
	case "ppc64le":
		return s
	}
	return ""
}
