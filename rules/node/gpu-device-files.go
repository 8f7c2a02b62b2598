package node

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-device-files", func(b *fact.Bundle, r *diag.Reporter) {
	if !lookedAtDevices(b) {
		r.Skip("device files were not looked at")
		return
	}
	if container(b) != "" || b.Slurm.GPUsGranted.IsAbsent() || smiOK(b) || cudaWorks(b) || otherAccelerator(b) {
		return
	}
	gpus, other := devices(b)
	ctl, hasCtl := other["/dev/nvidiactl"]
	a := diag.Args{"driver": b.Node.Driver.V.Version}
	c := diag.Proven
	switch {
	case len(gpus) == 0 || !hasCtl:
		a["variant"], a["files"] = "missing", "/dev/nvidiactl"
		if len(gpus) == 0 {
			a["files"] = "/dev/nvidia0"
		}
		if !b.Node.SMI.IsKnown() {
			c = diag.Likely // nvidia-smi would make the files where nvidia-modprobe may
		}
	case !ctl.OK:
		a["files"], a["why_not"] = ctl.Path, ctl.Why
	default:
		for _, d := range gpus {
			if d.OK {
				return
			}
		}
		a["files"], a["why_not"] = gpus[0].Path, gpus[0].Why
	}
	if w, has := a["why_not"]; has && w == "" {
		a["why_not"] = "permission denied"
	}
	f := r.Hit("gpu-init-unknown-error", c, a, b.Node.DeviceFiles.At, b.Node.SMI.At)
	if loginLike(b) {
		f.Sev(diag.Warning).Need("srun --gres=gpu:1 ncclinic check")
	}
})
