package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// vendors says which vendors' GPUs this machine has and whether both the bus
// and the device files were looked at. A PCI device counts when a compute
// driver has it: servers and desktops have display controllers of AMD, ASPEED
// and Intel that compute nothing.
func vendors(b *fact.Bundle) (nvidia, amd, intel, complete bool, ev map[string]fact.Evidence) {
	ev = map[string]fact.Evidence{}
	see := func(have *bool, name string, e fact.Evidence) {
		if !*have {
			*have, ev[name] = true, e
		}
	}
	if b.Node.Driver.IsKnown() {
		see(&nvidia, "nvidia", b.Node.Driver.At)
	}
	for _, d := range b.Node.DeviceFiles.Or(nil) {
		switch {
		case d.Path == "/dev/kfd":
			see(&amd, "amd", fact.File(d.Path))
		case d.Path == "/dev/nvidiactl":
			see(&nvidia, "nvidia", fact.File(d.Path))
		}
	}
	for _, g := range b.Node.PCIGPUs.Or(nil) {
		e := fact.FileExcerpt("/sys/bus/pci/devices/"+g.Bus, strings.TrimSpace(g.Vendor+" "+g.Device+" "+g.Driver))
		switch {
		case g.Vendor == "nvidia":
			see(&nvidia, "nvidia", e)
		case g.Vendor == "amd" && b.Node.PCIGPUs.At.Source == fact.SrcFlag:
			see(&amd, "amd", b.Node.PCIGPUs.At) // named by hand, not a display controller
		case g.Vendor == "intel" && g.Driver == "xe":
			see(&intel, "intel", e)
		case g.Vendor == "intel" && g.Driver == "i915":
			// A processor's own graphics or a Data Center GPU: cannot be told, so XPU is not judged.
			see(&intel, "intel", e)
		}
	}
	return nvidia, amd, intel, b.Node.PCIGPUs.Looked() && b.Node.Driver.Looked() && b.Node.DeviceFiles.Looked(), ev
}
