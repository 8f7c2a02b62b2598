package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-libcuda-missing", func(b *fact.Bundle, r *diag.Reporter) {
	if !b.Node.LibCUDA.IsAbsent() || container(b) != "" || otherAccelerator(b) || cudaWorks(b) {
		return
	}
	distro := b.Host.Distro.Or("")
	if strings.Contains(distro, "NixOS") || strings.Contains(distro, "Guix") {
		return // programs find it through paths of their own there
	}
	f := r.Hit("gpu-driver-missing", diag.Likely, diag.Args{"driver": b.Node.Driver.V.Version, "admin": "userland"}, b.Node.Driver.At, b.Node.LibCUDA.At)
	if loginLike(b) {
		f.Sev(diag.Warning).Need("srun --gres=gpu:1 ncclinic check")
	}
})
