package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-uvm", func(b *fact.Bundle, r *diag.Reporter) {
	gpus, other := devices(b)
	if len(gpus) == 0 || cudaWorks(b) || otherAccelerator(b) {
		return
	}
	uvm, has := other["/dev/nvidia-uvm"]
	at := b.Node.DeviceFiles.At
	switch {
	case has && !uvm.OK:
		r.Hit("gpu-init-unknown-error", diag.Proven, diag.Args{"variant": "denied"}, at)
	case has:
	case container(b) != "":
		r.Hit("gpu-init-unknown-error", diag.Likely, diag.Args{"variant": "container"}, at)
	default:
		r.Hit("gpu-init-unknown-error", diag.Possible, nil, at).Sev(diag.Note).Need("nvidia-modprobe -u -c=0 && ls -l /dev/nvidia-uvm")
	}
})
