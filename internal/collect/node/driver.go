package node

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var driverVersion = lazyre.New(`^\d{3}\.\d{1,3}(\.\d{1,3})?$`)

// parseNVRM reads /proc/driver/nvidia/version:
//
//	NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Fri …
//	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build …
func parseNVRM(text string) (fact.Driver, string, bool) {
	for _, l := range strings.Split(text, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(l), "NVRM version:")
		if !ok {
			continue
		}
		for _, w := range strings.Fields(rest) {
			if driverVersion.MatchString(w) {
				return fact.Driver{Version: w, Open: strings.Contains(rest, "Open Kernel Module")}, firstLine(l), true
			}
		}
	}
	return fact.Driver{}, "", false
}

const (
	procVersion = "/proc/driver/nvidia/version"
	sysVersion  = "/sys/module/nvidia/version"
)

func (r *reader) driver() {
	n := &r.b.Node
	text, err := r.text(procVersion)
	if err == nil {
		if d, line, ok := parseNVRM(text); ok {
			n.Driver = fact.Of(d, fact.FileExcerpt(procVersion, line))
		} else {
			n.Driver = fact.Fail[fact.Driver]("no version in it", fact.FileExcerpt(procVersion, firstLine(text)))
		}
		r.procGPUs = r.gpusOfProc()
	} else {
		v, err2 := r.text(sysVersion)
		switch {
		case err2 == nil && driverVersion.MatchString(v):
			n.Driver = fact.Of(fact.Driver{Version: v}, fact.FileExcerpt(sysVersion, v))
		case r.exists("/sys/module/nvgpu"):
			// The GPU inside a Jetson has a driver of its own without a version; its
			// release is that of Jetson Linux.
			n.Driver = fact.Fail[fact.Driver]("Jetson: the GPU is driven by nvgpu, which has no version of its own", fact.File("/sys/module/nvgpu"))
		case r.exists("/dev/dxg"):
			n.Driver = fact.Fail[fact.Driver]("WSL: the driver is that of Windows", fact.File("/dev/dxg"))
		case !missing(err):
			n.Driver = fact.Fail[fact.Driver](err.Error(), fact.File(procVersion))
		default:
			n.Driver = fact.None[fact.Driver](fact.File(procVersion))
		}
	}
	if names, err := r.names("/proc/driver/nvidia/gpus"); err == nil {
		n.GPUsBound = fact.Of(len(names), fact.File("/proc/driver/nvidia/gpus"))
	}
}

// parseInformation reads /proc/driver/nvidia/gpus/BUS/information, lines of
// "Key: \t value". A GPU that was never initialised has ?? in its UUID.
func parseInformation(text string) fact.GPU {
	var g fact.GPU
	for _, l := range strings.Split(text, "\n") {
		k, v, ok := strings.Cut(l, ":")
		if !ok {
			continue
		}
		v = fact.Clip(printable(strings.TrimSpace(v)), 120)
		switch strings.TrimSpace(k) {
		case "Model":
			g.Name = v
		case "GPU UUID":
			if !strings.Contains(v, "?") {
				g.UUID = v
			}
		case "Bus Location":
			g.Bus = busID(v)
		}
	}
	return g
}

const maxGPUs = 128

// gpusOfProc lists the GPUs that the kernel module drives, whether or not this
// process may use them: cgroups hide nothing here.
func (r *reader) gpusOfProc() []fact.GPU {
	const dir = "/proc/driver/nvidia/gpus"
	names, err := r.names(dir)
	if err != nil {
		if !missing(err) {
			r.b.AddProblem(dir, err.Error())
		}
		return nil
	}
	var out []fact.GPU
	for i, name := range names {
		if i == maxGPUs {
			break
		}
		p := dir + "/" + name + "/information"
		text, err := r.text(p)
		if err != nil {
			r.b.AddProblem(p, err.Error())
			text = ""
		}
		g := parseInformation(text)
		g.Index = i
		if g.Bus == "" {
			g.Bus = busID(name)
		}
		capFromName(&g)
		out = append(out, g)
	}
	return out
}

// busID brings the forms of a PCI address to one: 00000000:1B:00.0 and
// 0000:1b:00.0 are 0000:1b:00.0.
func busID(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	dom, rest, ok := strings.Cut(s, ":")
	if !ok || !strings.Contains(rest, ":") {
		return s
	}
	dom = strings.TrimLeft(dom, "0")
	if len(dom) < 4 {
		dom = strings.Repeat("0", 4-len(dom)) + dom
	}
	return dom + ":" + rest
}

func (r *reader) pci() {
	const dir = "/sys/bus/pci/devices"
	n := &r.b.Node
	names, err := r.names(dir)
	if err != nil {
		if !missing(err) {
			n.PCIGPUs = fact.Fail[[]fact.PCIGPU](err.Error(), fact.File(dir))
			n.NVSwitches = fact.Fail[int](err.Error(), fact.File(dir))
		}
		return
	}
	gpus := []fact.PCIGPU{}
	switches := 0
	for _, name := range names {
		p := dir + "/" + name
		class, err := r.text(p + "/class")
		if err != nil {
			continue // it went away, or it is closed to us: nothing can be said
		}
		display := strings.HasPrefix(class, "0x0300") || strings.HasPrefix(class, "0x0302") ||
			strings.HasPrefix(class, "0x0380") || strings.HasPrefix(class, "0x1200")
		bridge := strings.HasPrefix(class, "0x0680")
		if !display && !bridge {
			continue
		}
		vendor, _ := r.text(p + "/vendor")
		if bridge {
			if vendor == "0x10de" {
				switches++
			}
			continue
		}
		known := map[string]string{"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}[vendor]
		if known == "" || len(gpus) == maxGPUs {
			continue // the display controller of a board's management processor
		}
		dev, _ := r.text(p + "/device")
		g := fact.PCIGPU{Bus: busID(name), Vendor: known, Device: dev}
		if to := r.link(p + "/driver"); to != "" {
			g.Driver = to[strings.LastIndexByte(to, '/')+1:]
		}
		gpus = append(gpus, g)
	}
	n.PCIGPUs = fact.Of(gpus, fact.File(dir))
	n.NVSwitches = fact.Of(switches, fact.FileExcerpt(dir, fmt.Sprintf("%d bridges of class 0x0680, vendor 0x10de", switches)))
}
