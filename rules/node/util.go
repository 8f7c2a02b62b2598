package node

import (
	"path"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
)

// Outside a job, on a machine with Slurm's commands, limits and devices are
// not those that training will have.
const loginSkip = "outside a job: what a login node has says nothing about the compute nodes"

func inJob(b *fact.Bundle) bool { return b.Slurm.Job.IsKnown() }

func inStep(b *fact.Bundle) bool { return inJob(b) && b.Slurm.Where == "step" }

// loginLike reports whether this looks like a login node: Slurm's commands and
// no job, or the shell of a salloc that stayed where it was started.
func loginLike(b *fact.Bundle) bool {
	return !inJob(b) && b.Slurm.Commands.Or(false) || sallocShell(b)
}

// sallocShell reports whether this is a shell that holds a job but was not
// started by Slurm on one of its nodes.
func sallocShell(b *fact.Bundle) bool {
	return inJob(b) && b.Slurm.Where == "interactive" && b.Slurm.NodeName.IsAbsent()
}

// otherAccelerator reports whether this machine or its torch is not about
// NVIDIA GPUs of a data centre: AMD, Intel, Jetson, WSL.
func otherAccelerator(b *fact.Bundle) bool {
	if t := b.Winner(); t != nil && (t.Accel() == fact.AccelROCm || t.Accel() == fact.AccelXPU) {
		return true
	}
	if b.Host.Board.IsKnown() || strings.Contains(strings.ToLower(b.Host.Kernel.Or("")), "microsoft") {
		return true
	}
	for _, g := range b.Node.PCIGPUs.Or(nil) {
		if g.Vendor == "amd" && b.Node.PCIGPUs.At.Source == fact.SrcFlag {
			return true // named by hand
		}
	}
	for _, d := range b.Node.DeviceFiles.Or(nil) {
		switch d.Path {
		case "/dev/kfd", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvmap":
			return true
		}
	}
	return false
}

// cudaWorks reports whether the job's own interpreter saw a device.
func cudaWorks(b *fact.Bundle) bool { return b.Live.Devices.Or(0) > 0 }

// smiOK reports whether nvidia-smi answered.
func smiOK(b *fact.Bundle) bool {
	s, ok := b.Node.SMI.Get()
	return ok && s.Code == 0 && !s.Hung && s.Error == ""
}

// noDevices is what nvidia-smi says when it may open no GPU.
const noDevices = "No devices were found"

// listed returns the GPUs that this process can open. Only nvidia-smi knows:
// /proc/driver/nvidia/gpus shows the GPUs of the whole node, whatever the
// cgroup of the job allows.
func listed(b *fact.Bundle) (gpus []fact.GPU, ok bool) {
	s, has := b.Node.SMI.Get()
	if !has || s.Hung {
		return nil, false
	}
	if strings.Contains(s.Error, noDevices) {
		return nil, true
	}
	if s.Code != 0 || s.Error != "" || !b.Node.GPUs.IsKnown() {
		return nil, false
	}
	return b.Node.GPUs.V, true
}

func anyMIG(gpus []fact.GPU) bool {
	for _, g := range gpus {
		if g.MIG == "Enabled" || strings.HasPrefix(g.UUID, "MIG-") {
			return true
		}
	}
	return false
}

// filter returns the entries of CUDA_VISIBLE_DEVICES and whether it is set.
func filter(b *fact.Bundle) (entries []string, value string, set bool) {
	v, ok := b.Lookup("CUDA_VISIBLE_DEVICES")
	if !ok {
		return nil, "", false
	}
	for _, e := range strings.Split(v, ",") {
		entries = append(entries, strings.TrimSpace(e))
	}
	return entries, v, true
}

// emptyFilter reports whether a value of CUDA_VISIBLE_DEVICES leaves no device
// by itself, whatever devices there are.
func emptyFilter(v string) bool {
	first, _, _ := strings.Cut(v, ",")
	switch strings.ToLower(strings.TrimSpace(first)) {
	case "", "-1", "nodevfiles", "none", "void":
		return true
	}
	return false
}

// inUse returns the GPUs that CUDA would take: those listed, without what
// CUDA_VISIBLE_DEVICES hides.
func inUse(b *fact.Bundle) []fact.GPU {
	gpus, ok := listed(b)
	if !ok {
		return nil
	}
	entries, _, set := filter(b)
	if !set {
		return gpus
	}
	var out []fact.GPU
	for _, e := range entries {
		g := findGPU(gpus, e)
		if g == nil {
			break
		}
		out = append(out, *g)
	}
	return out
}

// findGPU finds an entry of CUDA_VISIBLE_DEVICES: an index or the beginning of a UUID.
func findGPU(gpus []fact.GPU, entry string) *fact.GPU {
	if n, err := strconv.Atoi(entry); err == nil {
		if n < 0 || n >= len(gpus) {
			return nil
		}
		return &gpus[n]
	}
	for i := range gpus {
		if len(entry) >= len("GPU-x") && strings.HasPrefix(gpus[i].UUID, entry) {
			return &gpus[i]
		}
	}
	return nil
}

// isolated reports whether Slurm binds each task of the step to its own GPUs,
// and the words that say so.
func isolated(b *fact.Bundle) (fact.Evidence, bool) {
	if v, ok := b.Lookup("SLURM_GPUS_PER_TASK"); ok && v != "" {
		return fact.EnvVarAt("SLURM_GPUS_PER_TASK", v), true
	}
	if v, ok := b.Lookup("SLURM_TRES_PER_TASK"); ok && strings.Contains(v, "gpu") {
		return fact.EnvVarAt("SLURM_TRES_PER_TASK", v), true
	}
	v, _ := b.Lookup("SLURM_GPU_BIND")
	bind := strings.TrimPrefix(v, "verbose,")
	for _, p := range []string{"single", "per_task", "map", "mask", "closest"} {
		if strings.HasPrefix(bind, p) {
			return fact.EnvVarAt("SLURM_GPU_BIND", v), true
		}
	}
	return fact.Evidence{}, false
}

// devices returns what /dev holds: the numbered GPUs, and the other files by name.
func devices(b *fact.Bundle) (gpus []fact.DeviceFile, other map[string]fact.DeviceFile) {
	other = map[string]fact.DeviceFile{}
	for _, d := range b.Node.DeviceFiles.Or(nil) {
		if n, ok := strings.CutPrefix(d.Path, "/dev/nvidia"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
			gpus = append(gpus, d)
		} else {
			other[d.Path] = d
		}
	}
	return gpus, other
}

// lookedAtDevices reports whether somebody listed /dev; no file there is an answer too.
func lookedAtDevices(b *fact.Bundle) bool {
	return b.Node.DeviceFiles.IsKnown() || b.Node.DeviceFiles.IsAbsent()
}

// container returns the kind of container that the process runs in, "" for none.
func container(b *fact.Bundle) string { return b.Container.Kind.Or("") }

// nodeName names this node for a fix, "" when it is not known.
func nodeName(b *fact.Bundle) string {
	if n, ok := b.Slurm.NodeName.Get(); ok {
		return n
	}
	if n, ok := b.Host.Name.Get(); ok && inJob(b) {
		n, _, _ = strings.Cut(n, ".")
		return n
	}
	return ""
}

// setting returns the value that NCCL would use and where it is set.
func setting(b *fact.Bundle, name string) (string, fact.Evidence, bool) {
	if s, ok := b.NCCL(name); ok {
		if s.At.IsZero() {
			return s.Value, fact.EnvVarAt(name, s.Value), true
		}
		return s.Value, s.At, true
	}
	if v, ok := b.Lookup(name); ok {
		return v, fact.EnvVarAt(name, v), true
	}
	return "", fact.Evidence{}, false
}

// rdmaOff reports whether NCCL is told not to use verbs.
func rdmaOff(b *fact.Bundle) bool {
	v, _, _ := setting(b, "NCCL_IB_DISABLE")
	net, _, _ := setting(b, "NCCL_NET")
	return v != "" && v != "0" || strings.EqualFold(net, "Socket")
}

// oneNode reports whether the job is known to have a single node: what happens
// between nodes then does not matter.
func oneNode(b *fact.Bundle) bool { return nodesOf(b, 0) == 1 }

// nodesOf returns the number of nodes of the job, def when it is not known. A
// step that looks at one node may stand in a job that trains on many.
func nodesOf(b *fact.Bundle, def int) int {
	n, ok1 := b.Slurm.Nodes.Get()
	m, ok2 := b.Slurm.JobNodes.Get()
	if !ok1 && !ok2 {
		return def
	}
	return max(n, m)
}

// slurmAtLeast compares a Slurm version such as 23.11.4 with major.minor; ok is
// false when it cannot be read.
func slurmAtLeast(v string, major, minor int) (bool, bool) {
	f := strings.SplitN(v, ".", 3)
	if len(f) < 2 {
		return false, false
	}
	x, err1 := strconv.Atoi(f[0])
	y, err2 := strconv.Atoi(f[1])
	if err1 != nil || err2 != nil {
		return false, false
	}
	return x > major || x == major && y >= minor, true
}

// driverCmp orders driver versions such as 535.161.08; ok is false when one of
// them is not of that form (Jetson and WSL have a libcuda.so.1.1).
func driverCmp(a, b string) (cmp int, ok bool) {
	x, okx := driverParts(a)
	y, oky := driverParts(b)
	if !okx || !oky {
		return 0, false
	}
	for i := range x {
		if x[i] != y[i] {
			if x[i] < y[i] {
				return -1, true
			}
			return 1, true
		}
	}
	return 0, true
}

func driverParts(v string) (p [3]int, ok bool) {
	f := strings.Split(v, ".")
	if len(f) < 2 || len(f) > 3 {
		return p, false
	}
	for i, s := range f {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return p, false
		}
		p[i] = n
	}
	return p, p[0] >= 300
}

func dirOf(file string) string { return path.Dir(file) }

func itoa(n int) string { return strconv.Itoa(n) }

// mib writes bytes as whole MiB.
func mib(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) }

// nvidiaPCI returns the NVIDIA GPUs on the PCI bus, with or without a driver.
func nvidiaPCI(b *fact.Bundle) []fact.PCIGPU {
	var out []fact.PCIGPU
	for _, g := range b.Node.PCIGPUs.Or(nil) {
		if g.Vendor == "nvidia" {
			out = append(out, g)
		}
	}
	return out
}

// gpuCount reads a number of GPUs out of a Slurm variable: "4" and "a100:4" of
// a count, "0,1,2,3" of a list of indexes. "1" when it cannot.
func gpuCount(name, value string) string {
	if name == "SLURM_JOB_GPUS" {
		return itoa(len(strings.Split(value, ",")))
	}
	if i := strings.LastIndexByte(value, ':'); i >= 0 {
		value = value[i+1:]
	}
	if n, err := strconv.Atoi(value); err == nil && n > 0 && n < 1000 {
		return itoa(n)
	}
	return "1"
}

// ifaceNames lists interfaces for a message.
func ifaceNames(ifs []fact.Iface) string {
	var names []string
	for _, i := range ifs {
		names = append(names, i.Name)
	}
	if len(names) == 0 {
		return "-"
	}
	return fact.Clip(strings.Join(names, ", "), 200)
}

// goodIface returns the interface that NCCL would choose by itself, "" when
// other nodes could not reach it.
func goodIface(ifs []fact.Iface) string {
	c := netsel.SelectNCCL(ifs, "")
	if len(c.Names) == 0 || local(ifs, c.Names[0]) {
		return ""
	}
	return c.Names[0]
}

// local reports whether an interface leads nowhere but to this machine.
func local(ifs []fact.Iface, name string) bool {
	for _, i := range ifs {
		if i.Name == name {
			return i.Loop || name == "lo" || strings.HasPrefix(name, "docker") || strings.HasPrefix(name, "virbr")
		}
	}
	return false
}

// hcaNames lists RDMA devices for a message.
func hcaNames(hcas []fact.HCA) string {
	var names []string
	for _, h := range hcas {
		names = append(names, h.Name)
	}
	return fact.Clip(strings.Join(names, ", "), 200)
}

// goodHCA returns a value of NCCL_IB_HCA that takes all active InfiniBand
// devices, or all active RoCE ones where there is no InfiniBand; "" for none.
func goodHCA(hcas []fact.HCA) string {
	for _, link := range []string{"InfiniBand", "Ethernet"} {
		var names []string
		for _, h := range hcas {
			for _, p := range h.Ports {
				if p.Link == link && strings.EqualFold(p.State, "ACTIVE") {
					names = append(names, h.Name)
					break
				}
			}
		}
		if len(names) > 0 {
			return "=" + strings.Join(names, ",")
		}
	}
	return ""
}

func findPort(hcas []fact.HCA, name string, port int) *fact.HCAPort {
	for i := range hcas {
		if hcas[i].Name != name {
			continue
		}
		for j := range hcas[i].Ports {
			if hcas[i].Ports[j].Port == port {
				return &hcas[i].Ports[j]
			}
		}
	}
	return nil
}

// gidAt returns an entry of a GID table, nil when it is empty, and the index of
// the RoCE v2 entry with an IPv4 address, "" when there is none.
func gidAt(p *fact.HCAPort, index int) (g *fact.GID, good string) {
	for i := range p.GIDs {
		e := &p.GIDs[i]
		if e.Index == index {
			g = e
		}
		if good == "" && strings.Contains(e.Type, "v2") && strings.HasPrefix(e.GID, "0000:0000:0000:0000:0000:ffff:") {
			good = itoa(e.Index)
		}
	}
	return g, good
}
