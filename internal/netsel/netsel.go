// Package netsel says which network interfaces and RDMA ports NCCL and Gloo
// pick on a machine, given their settings. It is pure: facts in, names out.
//
// Read in the sources of NCCL v2.4.8 to v2.30.7 (src/misc/socket.cc, later
// src/os/linux.cc; src/misc/utils.cc parseStringList and matchIfList;
// src/transport/net_ib) and of gloo (gloo/transport/tcp/device.cc) with
// PyTorch's torch/csrc/distributed/c10d/init.cpp, on 2026-11-30.
package netsel

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// maxItems is NCCL's MAX_IFS: what a list names beyond it is not read.
// NCCL_IB_HCA has MAX_IB_DEVS (32).
const (
	maxIfItems  = 16
	maxHCAItems = 32
)

// Spec is a value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: a list of names with
// an optional "^" (all but these), then an optional "=" (whole names, not
// prefixes).
type Spec struct {
	Not   bool
	Exact bool
	Items []Item
}

// Item is one name of a Spec. Port is -1 when none is given.
type Item struct {
	Name string
	Port int
}

// ParseSpec reads a setting as NCCL does. Blanks are part of a name: NCCL does
// not trim them, so "eth0, eth1" names an interface " eth1".
func ParseSpec(spec string) Spec { return parse(spec, maxHCAItems) }

func parse(spec string, max int) Spec {
	var s Spec
	spec, s.Not = cutPrefix(spec, "^")
	spec, s.Exact = cutPrefix(spec, "=")
	for _, f := range strings.Split(spec, ",") {
		name, port, has := strings.Cut(f, ":")
		if name == "" {
			continue
		}
		it := Item{Name: name, Port: -1}
		if has {
			// since 2.29.7 the port may be followed by rail and plane; atoi of an empty
			// one was 0 before and is "any" since.
			port, _, _ = strings.Cut(port, ":")
			if port != "" {
				it.Port = atoi(port)
			}
		}
		s.Items = append(s.Items, it)
		if len(s.Items) == max {
			break
		}
	}
	return s
}

func cutPrefix(s, p string) (string, bool) {
	if rest, ok := strings.CutPrefix(s, p); ok {
		return rest, true
	}
	return s, false
}

// atoi reads the leading digits, as C does; anything else is 0.
func atoi(s string) int {
	s = strings.TrimLeft(s, " \t")
	n := 0
	for n < len(s) && n < 6 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	v, _ := strconv.Atoi(s[:n])
	return v
}

func (it Item) matches(name string, exact bool) bool {
	if exact {
		return name == it.Name
	}
	return strings.HasPrefix(name, it.Name)
}

// takes reports whether NCCL would consider name (and port, -1: any). A list
// with no name in it matches everything, and everything but that with "^".
func (s Spec) takes(name string, port int) bool {
	if len(s.Items) == 0 {
		return !s.Not
	}
	for _, it := range s.Items {
		if it.matches(name, s.Exact) && (port == -1 || it.Port == -1 || port == it.Port) {
			return !s.Not
		}
	}
	return s.Not
}

// Choice is what a setting selects among the interfaces of a machine.
type Choice struct {
	// Names are the interfaces that NCCL can use, in the order in which it takes
	// them: the first one carries its bootstrap. Empty: "no socket interface found".
	Names []string
	// Down are interfaces that match and have an address but are not up or have
	// no link. NCCL takes them before 2.28 (and cannot connect) and skips them since.
	Down []string
	// NoAddress are interfaces that match and have neither IPv4 nor IPv6 address.
	NoAddress []string
	// Unmatched are the names of the setting that fit no interface at all.
	Unmatched []string
	// Default says that NCCL's own order was used because nothing is set, and
	// Step which of its steps found something: ib, other, docker, lo or virbr.
	Default bool
	Step    string
}

// defaultSteps is NCCL's own order. virbr* is set apart since 2.28; before, it
// is an interface like others.
var defaultSteps = []struct{ name, spec string }{
	{"ib", "ib"}, {"other", "^docker,lo,virbr"}, {"docker", "docker"}, {"lo", "lo"}, {"virbr", "virbr"},
}

// SelectNCCL applies a value of NCCL_SOCKET_IFNAME; "" and, as in NCCL, any
// single character mean that nothing is set.
func SelectNCCL(ifaces []fact.Iface, spec string) Choice {
	if len(spec) > 1 {
		return choose(ifaces, parse(spec, maxIfItems))
	}
	var down []string
	for _, step := range defaultSteps {
		c := choose(ifaces, parse(step.spec, maxIfItems))
		if len(c.Names) > 0 {
			return Choice{Names: c.Names, Down: c.Down, Default: true, Step: step.name}
		}
		down = append(down, c.Down...)
	}
	return Choice{Down: down, Default: true}
}

func choose(ifaces []fact.Iface, s Spec) Choice {
	var c Choice
	// getifaddrs lists all IPv4 addresses before the IPv6 ones, so interfaces that
	// have only IPv6 come last.
	var six []string
	for _, i := range ifaces {
		if !s.takes(i.Name, -1) {
			continue
		}
		v4, v6 := families(i)
		switch {
		case !v4 && !v6:
			c.NoAddress = append(c.NoAddress, i.Name)
		case !i.Up || i.NoCarrier:
			c.Down = append(c.Down, i.Name)
		case v4:
			c.Names = append(c.Names, i.Name)
		default:
			six = append(six, i.Name)
		}
	}
	c.Names = append(c.Names, six...)
	for _, it := range s.Items {
		found := false
		for _, i := range ifaces {
			found = found || it.matches(i.Name, s.Exact)
		}
		if !found {
			c.Unmatched = append(c.Unmatched, it.Name)
		}
	}
	return c
}

// families says which address families of an interface NCCL looks at: ::1 does not count.
func families(i fact.Iface) (v4, v6 bool) {
	for _, a := range i.Addrs {
		ip, err := addr(a)
		switch {
		case err != nil:
		case ip.Is4():
			v4 = true
		case !ip.IsLoopback():
			v6 = true
		}
	}
	return
}

func addr(s string) (netip.Addr, error) {
	s, _, _ = strings.Cut(s, "/")
	return netip.ParseAddr(s)
}

// GlooChoice is what GLOO_SOCKET_IFNAME selects.
type GlooChoice struct {
	// Names are the interfaces that it names and that have an address. Gloo makes
	// one device for each name, so every name must be good.
	Names []string
	// Bad are the names for which Gloo says "Unable to find address for".
	Bad []string
	// Default: nothing is set; Gloo binds to the address of the host's name.
	Default bool
}

// SelectGloo applies a value of GLOO_SOCKET_IFNAME: whole names with commas
// between them. Neither prefixes nor "^" nor "=" have a meaning, blanks are not
// trimmed, and a name given twice is two devices. PyTorch ignores values of
// fewer than two characters.
func SelectGloo(ifaces []fact.Iface, spec string) GlooChoice {
	if len(spec) < 2 {
		return GlooChoice{Default: true}
	}
	var c GlooChoice
	for _, name := range strings.Split(spec, ",") {
		if name == "" { // an empty name is the default device
			continue
		}
		ok := false
		for _, i := range ifaces {
			ok = ok || i.Name == name && len(i.Addrs) > 0
		}
		if ok {
			c.Names = append(c.Names, name)
		} else {
			c.Bad = append(c.Bad, name)
		}
	}
	return c
}

// HCAChoice is what NCCL_IB_HCA selects.
type HCAChoice struct {
	// Ports are the ports that NCCL can use: selected, active and InfiniBand or Ethernet.
	Ports []HCAPort
	// Inactive are selected ports that are not ACTIVE: NCCL passes over them.
	Inactive []HCAPort
	// Unmatched are the names (with port) of the setting that fit no port of any device.
	Unmatched []string
	// Wide are names that, as prefixes, take more than the device of that very
	// name: mlx5_1 also takes mlx5_10.
	Wide []string
}

// HCAPort names one port of an RDMA device.
type HCAPort struct {
	HCA  string
	Port int
	Link string // InfiniBand or Ethernet, as sysfs says; "" when it could not be read
}

// String is the form in which NCCL writes it: mlx5_0:1.
func (p HCAPort) String() string { return p.HCA + ":" + strconv.Itoa(p.Port) }

// SelectHCA applies a value of NCCL_IB_HCA; "" selects everything. A port whose
// state could not be read counts as usable: nothing is said against it.
func SelectHCA(hcas []fact.HCA, spec string) HCAChoice {
	s := parse(spec, maxHCAItems)
	var c HCAChoice
	for _, h := range hcas {
		for _, p := range h.Ports {
			if !s.takes(h.Name, p.Port) {
				continue
			}
			hp := HCAPort{h.Name, p.Port, p.Link}
			if p.State == "" || strings.EqualFold(p.State, "ACTIVE") {
				c.Ports = append(c.Ports, hp)
			} else {
				c.Inactive = append(c.Inactive, hp)
			}
		}
	}
	for _, it := range s.Items {
		found, own, other := false, false, false
		for _, h := range hcas {
			if !it.matches(h.Name, s.Exact) {
				continue
			}
			own = own || h.Name == it.Name
			other = other || h.Name != it.Name
			for _, p := range h.Ports {
				found = found || it.Port == -1 || it.Port == p.Port
			}
			found = found || len(h.Ports) == 0 && it.Port == -1
		}
		if !found {
			name := it.Name
			if it.Port != -1 {
				name += ":" + strconv.Itoa(it.Port)
			}
			c.Unmatched = append(c.Unmatched, name)
		}
		if own && other {
			c.Wide = append(c.Wide, it.Name)
		}
	}
	return c
}
