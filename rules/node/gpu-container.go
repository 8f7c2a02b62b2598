package node

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("gpu-container", func(b *fact.Bundle, r *diag.Reporter) {
	kind := container(b)
	if kind == "" || otherAccelerator(b) || cudaWorks(b) {
		return
	}
	noLib := b.Node.LibCUDA.IsAbsent()
	gpus, _ := devices(b)
	noDev := lookedAtDevices(b) && len(gpus) == 0
	if !noLib && !noDev {
		if !b.Node.LibCUDA.Looked() && !lookedAtDevices(b) {
			r.Skip("neither libcuda nor the device files were observed")
		}
		return
	}
	a := diag.Args{"kind": kind, "driver": b.Node.Driver.V.Version}
	ev := []fact.Evidence{b.Container.Kind.At, b.Node.LibCUDA.At, b.Node.DeviceFiles.At}
	c := diag.Likely
	vis, visSet := b.Lookup("NVIDIA_VISIBLE_DEVICES")
	caps, capsSet := b.Lookup("NVIDIA_DRIVER_CAPABILITIES")
	switch {
	case visSet && (vis == "void" || vis == "none" || vis == "") && kind != "apptainer" && kind != "singularity":
		a["variant"], a["value"] = "void", vis
		if vis == "" {
			a["value"] = `""`
		}
		c, ev = diag.Proven, append(ev, fact.EnvVarAt("NVIDIA_VISIBLE_DEVICES", vis))
	case noLib && capsSet && len(gpus) > 0 && !strings.Contains(caps, "compute") && !strings.Contains(caps, "all"):
		a["variant"], a["value"], a["capabilities"] = "capabilities", caps, caps
		c, ev = diag.Proven, append(ev, fact.EnvVarAt("NVIDIA_DRIVER_CAPABILITIES", caps))
	case noLib && len(gpus) > 0:
		a["variant"] = "library"
	case noDev && !noLib:
		a["variant"] = "devices"
	}
	if nv, ok := b.Container.NV.Get(); ok && !nv {
		c, ev = diag.Proven, append(ev, b.Container.NV.At)
	}
	switch kind {
	case "apptainer", "singularity", "docker", "podman", "enroot":
		a["known"] = "1"
	}
	r.Hit("gpu-not-in-container", c, a, ev...)
})
