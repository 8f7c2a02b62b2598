package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// An image of enroot says by two variables what its hook brings in of the
// driver; without them nothing, or too little. The job can set them too, which an image does not show.
var _ = Checks.Add("image-gpu-hook", func(b *fact.Bundle, r *diag.Reporter) {
	if b.Target.Kind != "squashfs" || container(b) != "enroot" || b.Winner().Accel() != fact.AccelCUDA {
		return
	}
	a := diag.Args{"kind": "enroot", "known": "1"}
	at := fact.File(b.Target.EnvAt)
	if at.Path == "" {
		at.Path = "/etc/environment"
	}
	vis, set := b.Lookup("NVIDIA_VISIBLE_DEVICES")
	caps, capsSet := b.Lookup("NVIDIA_DRIVER_CAPABILITIES")
	switch {
	case !set || vis == "" || vis == "void":
		at.Excerpt = "no NVIDIA_VISIBLE_DEVICES"
		if set {
			a["variant"], a["value"] = "void", `"`+vis+`"`
			at.Excerpt = "NVIDIA_VISIBLE_DEVICES=" + vis
		}
	case !strings.Contains(caps, "compute") && !strings.Contains(caps, "all"):
		a["variant"], a["value"] = "capabilities", "utility"
		at.Excerpt = "no NVIDIA_DRIVER_CAPABILITIES"
		if capsSet && caps != "" {
			a["value"], a["capabilities"] = caps, caps
			at.Excerpt = "NVIDIA_DRIVER_CAPABILITIES=" + caps
		}
	default:
		return
	}
	r.Hit("gpu-not-in-container", diag.Possible, a, at).Need("srun --gres=gpu:1 --container-image=" + fact.ShellWord(b.Target.Path) + " nvidia-smi -L")
})
