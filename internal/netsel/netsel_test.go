package netsel

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
)

func iface(name string, addrs ...string) fact.Iface {
	return fact.Iface{Name: name, Up: true, Addrs: addrs}
}

// machine is a typical GPU node: management Ethernet, IPoIB, a bridge, a link that is down.
func machine() []fact.Iface {
	down := iface("eno2", "192.168.9.1/24")
	down.NoCarrier = true
	return []fact.Iface{
		iface("lo", "127.0.0.1/8", "::1/128"),
		iface("eno1", "10.0.0.7/16", "fe80::1/64"),
		down,
		iface("ens9f0"),
		iface("docker0", "172.17.0.1/16"),
		iface("ib0", "10.10.0.7/16"),
		iface("ib1", "10.10.1.7/16"),
		iface("ib10", "fe80::10/64"),
		iface("virbr0", "192.168.122.1/24"),
	}
}

func TestSelectNCCL(t *testing.T) {
	without := func(names ...string) []fact.Iface {
		return slices.DeleteFunc(machine(), func(i fact.Iface) bool { return slices.Contains(names, i.Name) })
	}
	for _, tt := range []struct {
		name, spec string
		ifaces     []fact.Iface
		want       Choice
	}{
		{"default takes InfiniBand", "", machine(), Choice{Names: []string{"ib0", "ib1", "ib10"}, Default: true, Step: "ib"}},
		{"one character is no setting", "e", machine(), Choice{Names: []string{"ib0", "ib1", "ib10"}, Default: true, Step: "ib"}},
		{"then others", "", without("ib0", "ib1", "ib10"), Choice{Names: []string{"eno1"}, Down: []string{"eno2"}, Default: true, Step: "other"}},
		{"then docker", "", without("ib0", "ib1", "ib10", "eno1", "eno2"), Choice{Names: []string{"docker0"}, Default: true, Step: "docker"}},
		{"then loopback", "", []fact.Iface{iface("lo", "127.0.0.1/8"), iface("virbr0", "192.168.122.1/24")}, Choice{Names: []string{"lo"}, Default: true, Step: "lo"}},
		{"at last virbr", "", []fact.Iface{iface("virbr0", "192.168.122.1/24")}, Choice{Names: []string{"virbr0"}, Default: true, Step: "virbr"}},
		{"nothing", "", nil, Choice{Default: true}},
		{"IPv6 loopback does not count", "", []fact.Iface{iface("lo", "::1/128")}, Choice{Default: true}},
		{"prefix", "ib", machine(), Choice{Names: []string{"ib0", "ib1", "ib10"}}},
		{"prefix takes more than meant", "ib1", machine(), Choice{Names: []string{"ib1", "ib10"}}},
		{"exact", "=ib1", machine(), Choice{Names: []string{"ib1"}}},
		{"not", "^docker,lo,virbr,ib", machine(), Choice{Names: []string{"eno1"}, Down: []string{"eno2"}, NoAddress: []string{"ens9f0"}}},
		{"not exact", "^=lo,docker0,ib0,ib1,ib10,virbr0", machine(), Choice{Names: []string{"eno1"}, Down: []string{"eno2"}, NoAddress: []string{"ens9f0"}}},
		{"not of nothing is nothing", "^,", machine(), Choice{}},
		{"names nothing", "eth0", machine(), Choice{Unmatched: []string{"eth0"}}},
		{"blank after the comma", "eth0, eno1", machine(), Choice{Unmatched: []string{"eth0", " eno1"}}},
		{"no address", "ens9f0", machine(), Choice{NoAddress: []string{"ens9f0"}}},
		{"link is down", "eno2", machine(), Choice{Down: []string{"eno2"}}},
		{"an address is no name", "10.0.0.7", machine(), Choice{Unmatched: []string{"10.0.0.7"}}},
		{"port is cut off", "eno1:4000", machine(), Choice{Names: []string{"eno1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, SelectNCCL(tt.ifaces, tt.spec)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSelectGloo(t *testing.T) {
	for _, tt := range []struct {
		spec string
		want GlooChoice
	}{
		{"", GlooChoice{Default: true}},
		{"e", GlooChoice{Default: true}},
		{"eno1", GlooChoice{Names: []string{"eno1"}}},
		{"eno1,ib0", GlooChoice{Names: []string{"eno1", "ib0"}}},
		{"eno1,", GlooChoice{Names: []string{"eno1"}}},
		{"eno", GlooChoice{Bad: []string{"eno"}}},
		{"^lo,docker0", GlooChoice{Names: []string{"docker0"}, Bad: []string{"^lo"}}},
		{"=eno1", GlooChoice{Bad: []string{"=eno1"}}},
		{"ens9f0", GlooChoice{Bad: []string{"ens9f0"}}},
	} {
		if d := cmp.Diff(tt.want, SelectGloo(machine(), tt.spec)); d != "" {
			t.Errorf("%q: %s", tt.spec, d)
		}
	}
}

func TestSelectHCA(t *testing.T) {
	port := func(n int, state string) fact.HCAPort {
		return fact.HCAPort{Port: n, Link: "InfiniBand", State: state}
	}
	hcas := []fact.HCA{
		{Name: "mlx5_0", Ports: []fact.HCAPort{port(1, "ACTIVE")}},
		{Name: "mlx5_1", Ports: []fact.HCAPort{port(1, "ACTIVE"), port(2, "DOWN")}},
		{Name: "mlx5_10", Ports: []fact.HCAPort{port(1, "")}},
		{Name: "mlx5_bond_0", Ports: []fact.HCAPort{port(1, "INIT")}},
	}
	for _, tt := range []struct{ spec, ports, inactive, unmatched, wide string }{
		{"", "mlx5_0:1 mlx5_1:1 mlx5_10:1", "mlx5_1:2 mlx5_bond_0:1", "", ""},
		{"mlx5_1", "mlx5_1:1 mlx5_10:1", "mlx5_1:2", "", "mlx5_1"},
		{"=mlx5_1", "mlx5_1:1", "mlx5_1:2", "", ""},
		{"=mlx5_1:1", "mlx5_1:1", "", "", ""},
		{"^mlx5_bond,mlx5_0", "mlx5_1:1 mlx5_10:1", "mlx5_1:2", "", ""},
		{"^=mlx5_1", "mlx5_0:1 mlx5_10:1", "mlx5_bond_0:1", "", ""},
		{"mlx5_0:2", "", "", "mlx5_0:2", ""},
		{"mlx5_7,ib0", "", "", "mlx5_7 ib0", ""},
		{"mlx5_0:", "mlx5_0:1", "", "", ""},
		{"mlx5_0:1:3:0", "mlx5_0:1", "", "", ""},
	} {
		c := SelectHCA(hcas, tt.spec)
		str := func(ps []HCAPort) string {
			var s []string
			for _, p := range ps {
				s = append(s, p.String())
			}
			return strings.Join(s, " ")
		}
		got := []string{str(c.Ports), str(c.Inactive), strings.Join(c.Unmatched, " "), strings.Join(c.Wide, " ")}
		if d := cmp.Diff([]string{tt.ports, tt.inactive, tt.unmatched, tt.wide}, got); d != "" {
			t.Errorf("%q: %s", tt.spec, d)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"", "^", "^=", "=mlx5_0:1,mlx5_1", "::::,,", "eth0:-1", "a:99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n := len(ParseSpec(s).Items); n > maxHCAItems {
			t.Fatalf("%d items", n)
		}
		SelectNCCL(machine(), s)
		SelectGloo(machine(), s)
		SelectHCA([]fact.HCA{{Name: "mlx5_0", Ports: []fact.HCAPort{{Port: 1}}}}, s)
	})
}
