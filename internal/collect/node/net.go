package node

import (
	"path"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

func (r *reader) ifaces() {
	if r.m.OS == nil {
		return
	}
	at := fact.File("/sys/class/net")
	ifs, err := r.m.OS.Interfaces()
	if err != nil {
		r.b.Node.Ifaces = fact.Fail[[]fact.Iface](err.Error(), at)
		return
	}
	out := make([]fact.Iface, len(ifs))
	for i, f := range ifs {
		if f.Kind == "" && !f.Loop {
			f.Kind = r.ifaceKind(f.Name)
		}
		out[i] = f
	}
	r.b.Node.Ifaces = fact.Of(out, at)
}

// ifaceKind tells interfaces apart by ARPHRD type and by what sysfs has for them.
func (r *reader) ifaceKind(name string) string {
	if strings.Contains(name, "/") || name == ".." {
		return ""
	}
	dir := "/sys/class/net/" + name
	t, err := r.text(dir + "/type")
	switch {
	case err != nil:
		return ""
	case t == "32":
		return "infiniband"
	case r.exists(dir + "/bridge"):
		return "bridge"
	case t == "1" && (r.exists(dir+"/device") || r.exists(dir+"/bonding")):
		return "ethernet"
	}
	return "virtual"
}

const (
	maxHCAs  = 64
	maxPorts = 8
	maxGIDs  = 256 // mlx5 has as many
	sysIB    = "/sys/class/infiniband"
)

func (r *reader) rdma() {
	n := &r.b.Node
	n.CXI = r.listed("/sys/class/cxi", "cxi")
	n.Uverbs = r.listed("/dev/infiniband", "uverbs")
	names, err := r.names(sysIB)
	if err != nil {
		n.RDMA = orAbsent[[]fact.HCA](err, fact.File(sysIB))
		return
	}
	if len(names) == 0 {
		n.RDMA = fact.None[[]fact.HCA](fact.File(sysIB))
		return
	}
	if len(names) > maxHCAs {
		r.b.AddProblem(sysIB, "has too many devices, the rest was not looked at")
		names = names[:maxHCAs]
	}
	var out []fact.HCA
	for _, name := range names {
		out = append(out, r.hca(name))
	}
	n.RDMA = fact.Of(out, fact.File(sysIB))
}

// hca reads every file on its own: one that the driver refuses must not lose the rest.
func (r *reader) hca(name string) fact.HCA {
	h := fact.HCA{Name: name, Driver: path.Base(r.link(sysIB + "/" + name + "/device/driver"))}
	if h.Driver == "." {
		h.Driver = ""
	}
	ports, err := r.names(sysIB + "/" + name + "/ports")
	if err != nil {
		r.b.AddProblem(sysIB+"/"+name+"/ports", err.Error())
		return h
	}
	for i, pn := range ports {
		num := number(pn)
		if num < 1 || i == maxPorts {
			continue
		}
		dir := sysIB + "/" + name + "/ports/" + pn
		p := fact.HCAPort{Port: num}
		p.Link = r.field(dir + "/link_layer")
		p.State = afterColon(r.field(dir + "/state"))
		p.Phys = afterColon(r.field(dir + "/phys_state"))
		p.Rate = r.field(dir + "/rate")
		p.GIDs = r.gids(dir)
		h.Ports = append(h.Ports, p)
	}
	return h
}

// field reads a one-line file; one that cannot be read is a problem and "".
func (r *reader) field(p string) string {
	s, err := r.text(p)
	if err != nil {
		r.b.AddProblem(p, err.Error())
		return ""
	}
	return firstLine(s)
}

// afterColon reads "4: ACTIVE" and "5: LinkUp".
func afterColon(s string) string {
	if _, v, ok := strings.Cut(s, ":"); ok {
		return strings.TrimSpace(v)
	}
	return s
}

var zeroGID = lazyre.New(`^[0:]*$`)

// gids lists the GID table without its empty entries. Their types cannot be
// read (EINVAL), which is why the GID comes first.
func (r *reader) gids(port string) []fact.GID {
	names, err := r.names(port + "/gids")
	if err != nil {
		if !missing(err) {
			r.b.AddProblem(port+"/gids", err.Error())
		}
		return nil
	}
	var out []fact.GID
	for idx := range min(len(names), maxGIDs) {
		i := strconv.Itoa(idx) // the names are 0, 1, …; by number, not by letter
		s, err := r.text(port + "/gids/" + i)
		if err != nil || zeroGID.MatchString(s) {
			continue
		}
		g := fact.GID{Index: idx, GID: firstLine(s)}
		if s, err := r.text(port + "/gid_attrs/types/" + i); err == nil {
			g.Type = firstLine(s)
		}
		if s, err := r.text(port + "/gid_attrs/ndevs/" + i); err == nil {
			g.Ndev = firstLine(s)
		}
		out = append(out, g)
	}
	return out
}

// plugins looks for network plugins of NCCL where the loader would: the folders
// of LD_LIBRARY_PATH and the system's. Only names that NCCL would ask for count.
func (r *reader) plugins() {
	names := []string{"libnccl-net.so", "libnccl-net-ofi.so"}
	if p := r.m.Getenv("NCCL_NET_PLUGIN"); p != "" && p != "none" && !strings.Contains(p, "/") {
		names = append(names, "libnccl-net-"+p+".so", p)
	}
	var out []string
	seen := map[string]bool{}
	for _, dir := range r.libDirs() {
		if seen[dir] {
			continue
		}
		seen[dir] = true
		for _, name := range names {
			if p := dir + "/" + name; strings.HasSuffix(name, ".so") && !seen[p] && r.exists(p) {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	at := fact.EnvVarAt("LD_LIBRARY_PATH", r.m.Getenv("LD_LIBRARY_PATH"))
	if len(out) == 0 {
		r.b.Node.Plugins = fact.None[[]string](at)
		return
	}
	r.b.Node.Plugins = fact.Of(out, at)
}

// libDirs are the folders that the loader searches for a library that names no
// path of its own. /etc/ld.so.conf stands in for the cache that is made from it.
func (r *reader) libDirs() []string {
	var out []string
	for _, d := range strings.FieldsFunc(r.m.Getenv("LD_LIBRARY_PATH"), func(c rune) bool { return c == ':' || c == ';' }) {
		if path.IsAbs(d) && len(out) < 256 {
			out = append(out, path.Clean(d))
		}
	}
	out = append(out, r.ldConf("/etc/ld.so.conf", 0)...)
	arch := r.b.Host.Arch.Or("x86_64")
	return append(out, "/lib/"+arch+"-linux-gnu", "/usr/lib/"+arch+"-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

// ldConf reads ld.so.conf with its includes.
func (r *reader) ldConf(p string, depth int) []string {
	text, err := r.text(p)
	if err != nil || depth > 4 {
		return nil
	}
	var out []string
	for _, l := range strings.Split(text, "\n") {
		l, _, _ = strings.Cut(l, "#")
		l = strings.TrimSpace(l)
		if pat, ok := strings.CutPrefix(l, "include "); ok {
			pat = strings.TrimSpace(pat)
			if !path.IsAbs(pat) {
				pat = path.Join(path.Dir(p), pat)
			}
			for _, name := range r.optional(path.Dir(pat)) {
				if ok, _ := path.Match(path.Base(pat), name); ok && len(out) < 256 {
					out = append(out, r.ldConf(path.Join(path.Dir(pat), name), depth+1)...)
				}
			}
		} else if path.IsAbs(l) && len(out) < 256 {
			out = append(out, path.Clean(l))
		}
	}
	return out
}
