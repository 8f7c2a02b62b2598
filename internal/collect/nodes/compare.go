package nodes

import (
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/netsel"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Prefixes of names of compared values; the rest of such a name is a variable's.
const (
	SetPrefix = "set." // a setting of NCCL as it is in force, from whatever layer
	EnvPrefix = "env." // another variable
)

// trimmed is the value of a node whose variables did not all fit: that one is
// not among them says nothing.
const trimmed = "trimmed"

// maxValue bounds a compared value; a longer one ends in a checksum, so that it
// still differs from others.
const maxValue = 240

// comparedVars are variables, besides those of comparedPrefixes, that must be
// the same everywhere.
var comparedVars = []string{"LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LOADEDMODULES", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE",
	"OMP_NUM_THREADS", "PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "USE_LIBUV", "http_proxy", "https_proxy"}

var comparedPrefixes = []string{"CUDA_", "GLOO_", "TORCH_", "PYTORCH_", "TP_", "FI_", "UCX_", "OFI_", "RDMAV_", "HSA_", "HIP_", "RCCL_", "NVSHMEM_"}

// values are what is compared of a node. What nobody looked at is left out;
// what is not there has the value fact.NoValue.
func values(m *source.Machine, b *fact.Bundle) map[string]string {
	v := map[string]string{}
	set := func(name, value string) {
		if len(value) > maxValue {
			value = fact.Clip(value, maxValue) + fmt.Sprintf(" #%08x", crc32.ChecksumIEEE([]byte(value)))
		}
		v[name] = value
	}
	str := func(name string, val fact.Val[string]) {
		if s, ok := val.Get(); ok {
			set(name, s)
		} else if val.IsAbsent() {
			set(name, fact.NoValue)
		}
	}
	str("python.exe", b.Python.Exe)
	str("python.version", b.Python.Version)
	switch t := b.Winner(); {
	case t != nil:
		str("torch.version", t.Version)
		str("torch.cuda", t.CUDA)
		str("torch.git", t.Git)
		set("torch.dir", t.Dir)
		if n, ok := t.NCCL.Get(); ok {
			set("torch.nccl", strconv.FormatBool(n))
		}
		if mp := mountOf(m, t.Dir); mp != "" {
			set("torch.mount", mp)
		}
	case b.Python.Exe.IsKnown() && len(b.Python.Path) > 0:
		set("torch.version", fact.NoValue)
	}
	if l := b.LoadOf("libnccl.so.2"); l != nil {
		str("nccl.version", l.Version)
		str("nccl.path", l.Path)
	}
	n := &b.Node
	if d, ok := n.Driver.Get(); ok {
		set("driver", d.Version)
	} else if n.Driver.IsAbsent() {
		set("driver", fact.NoValue)
	}
	if g, ok := n.GPUs.Get(); ok {
		set("gpu.count", strconv.Itoa(len(g)))
		var kinds []string
		for _, x := range g {
			kinds = append(kinds, fmt.Sprintf("%s (%d MiB)", x.Name, x.MemMiB))
		}
		set("gpu.kind", uniq(kinds))
	}
	str("kernel", b.Host.Kernel)
	str("distro", b.Host.Distro)
	str("glibc", b.Host.Glibc)
	str("container", b.Container.Kind)
	if l, ok := n.Limits.Memlock.Get(); ok {
		set("memlock", kib(l))
	}
	if l, ok := n.Limits.Nofile.Get(); ok {
		set("nofile", strconv.FormatInt(l, 10))
	}
	if s, ok := n.Shm.Get(); ok {
		set("shm", gib(s.Total))
	}
	if p, ok := n.Plugins.Get(); ok {
		set("plugin", uniq(baseNames(p)))
	} else if n.Plugins.IsAbsent() {
		set("plugin", fact.NoValue)
	}
	hcas(set, n.RDMA)
	if ifs, ok := n.Ifaces.Get(); ok {
		for _, w := range ways(b, ifs) {
			set("iface."+w.Way, w.Iface)
			if p, err := netip.ParsePrefix(w.Addr); err == nil {
				set("net."+w.Way, p.Masked().String())
			}
			for _, i := range ifs {
				if i.Name == w.Iface {
					set("mtu."+w.Way, strconv.Itoa(i.MTU))
				}
			}
		}
	}
	for _, s := range b.NCCLConf {
		if s.Wins && strings.HasPrefix(s.Name, "NCCL_") {
			set(SetPrefix+s.Name, s.Value)
		}
	}
	for _, e := range b.Env {
		switch {
		case strings.HasPrefix(e.Name, "NCCL_"):
			if _, has := v[SetPrefix+e.Name]; !has {
				set(SetPrefix+e.Name, e.Value)
			}
		case compares(e.Name):
			set(EnvPrefix+e.Name, e.Value)
		}
	}
	return v
}

func compares(name string) bool {
	if ownVar(name) {
		return false
	}
	for _, n := range comparedVars {
		if n == name {
			return true
		}
	}
	for _, p := range comparedPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// hcas compares what of a node's adapters NCCL could use, not their names.
func hcas(set func(name, value string), v fact.Val[[]fact.HCA]) {
	list, ok := v.Get()
	if !ok {
		if v.IsAbsent() {
			set("hca", fact.NoValue)
		}
		return
	}
	ports, rates := map[string]int{}, map[string]int{}
	for _, h := range list {
		for _, p := range h.Ports {
			if p.State == "" || strings.EqualFold(p.State, "ACTIVE") {
				ports[p.Link]++
				rates[p.Rate]++
			}
		}
	}
	set("hca", counted(ports))
	set("hca.rate", counted(rates))
}

func counted(n map[string]int) string {
	var out []string
	for k, c := range n {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d × %s", c, k)))
	}
	if len(out) == 0 {
		return fact.NoValue
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

// uniq joins the different ones of a list, sorted.
func uniq(list []string) string {
	n := map[string]int{}
	for _, s := range list {
		n[s]++
	}
	var out []string
	for s := range n {
		out = append(out, s)
	}
	if len(out) == 0 {
		return fact.NoValue
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

func baseNames(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, path.Base(p))
	}
	return out
}

func kib(bytes int64) string {
	if bytes < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(bytes>>10, 10) + " KiB"
}

// gib rounds to two digits: nodes that are alike differ by some MiB.
func gib(bytes int64) string {
	v := float64(bytes) / (1 << 30)
	step := math.Pow(10, math.Floor(math.Log10(max(v, 0.1)))-1)
	return strconv.FormatFloat(math.Round(v/step)*step, 'f', -1, 32) + " GiB"
}

// trimValues makes what is compared smaller, by the levels of trim.
func trimValues(v map[string]string, level int) {
	if level < 2 {
		return
	}
	var vars []string
	for n, s := range v {
		if len(s) > 60 {
			v[n] = fact.Clip(s, 50) + fmt.Sprintf(" #%08x", crc32.ChecksumIEEE([]byte(s)))
		}
		if strings.HasPrefix(n, SetPrefix) || strings.HasPrefix(n, EnvPrefix) {
			vars = append(vars, n)
		}
	}
	sort.Strings(vars)
	keep := []int{200, 60, 0}[min(level-2, 2)]
	for _, n := range vars[min(len(vars), keep):] {
		delete(v, n)
		v[trimmed] = "true"
	}
}

// ways returns the interfaces and addresses that NCCL's bootstrap and Gloo
// would listen on.
func ways(b *fact.Bundle, ifs []fact.Iface) []endpoint {
	setting := func(name string) string {
		if s, ok := b.NCCL(name); ok {
			return s.Value
		}
		v, _ := b.Lookup(name)
		return v
	}
	var out []endpoint
	if c := netsel.SelectNCCL(ifs, setting("NCCL_SOCKET_IFNAME")); len(c.Names) > 0 {
		out = append(out, endpoint{Way: fact.WayNCCL, Iface: c.Names[0], Addr: addrOf(ifs, c.Names[0])})
	}
	v, _ := b.Lookup("GLOO_SOCKET_IFNAME")
	if c := netsel.SelectGloo(ifs, v); len(c.Names) > 0 {
		out = append(out, endpoint{Way: fact.WayGloo, Iface: c.Names[0], Addr: addrOf(ifs, c.Names[0])})
	}
	return out
}

// addrOf returns the address of an interface that others would connect to:
// IPv4 first, a link-local one never.
func addrOf(ifs []fact.Iface, name string) string {
	six := ""
	for _, i := range ifs {
		if i.Name != name {
			continue
		}
		for _, s := range i.Addrs {
			p, err := netip.ParsePrefix(s)
			if err != nil || p.Addr().IsLinkLocalUnicast() {
				continue
			}
			if p.Addr().Is4() {
				return s
			}
			if six == "" {
				six = s
			}
		}
	}
	return six
}

// mountOf says on which file system a path lies: its type and what is mounted.
func mountOf(m *source.Machine, p string) string {
	raw, err := source.ReadHead(m.FS, "/proc/self/mountinfo", 1<<20)
	if err != nil {
		return ""
	}
	best, found := -1, ""
	for _, l := range strings.Split(string(raw), "\n") {
		f := strings.Fields(l)
		i := 6
		for i < len(f) && f[i] != "-" {
			i++
		}
		if len(f) < 10 || i+2 >= len(f) {
			continue
		}
		at := f[4]
		if at != "/" && p != at && !strings.HasPrefix(p, at+"/") || len(at) < best {
			continue
		}
		best, found = len(at), f[i+1]
		if src := f[i+2]; networkFS(f[i+1]) { // names of local disks differ and say nothing
			found += " " + src
		}
	}
	return found
}

func networkFS(kind string) bool {
	for _, k := range []string{"nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "wekafs", "panfs", "pvfs2", "glusterfs", "fuse.", "cvmfs"} {
		if strings.HasPrefix(kind, k) {
			return true
		}
	}
	return false
}
