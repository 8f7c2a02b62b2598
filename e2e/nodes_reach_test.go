package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// network is one network namespace for each of eight nodes, on a bridge in a
// namespace of its own: what one of them drops is really dropped.
type network struct {
	t   *testing.T
	tag string
}

// newNetwork connects eight namespaces; addr names the address of node i.
func newNetwork(t *testing.T, addr func(i int) string) network {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Need(t, "root, for network namespaces", "run the tests as root")
	}
	testenv.Tool(t, "ip")
	testenv.Tool(t, "nft")
	n := network{t, fmt.Sprintf("nc%d", os.Getpid()%100000)}
	if out, err := exec.Command("ip", "netns", "add", n.tag+"b").CombinedOutput(); err != nil {
		testenv.Need(t, "network namespaces: "+strings.TrimSpace(string(out)), "a kernel and a container that allow them")
	}
	t.Cleanup(func() {
		for i := range 8 {
			_ = exec.Command("ip", "netns", "del", n.ns(i)).Run()
		}
		_ = exec.Command("ip", "netns", "del", n.tag+"b").Run()
	})
	b := n.tag + "b"
	n.do("ip -n %s link add br0 type bridge", b)
	n.do("ip -n %s link set br0 up", b)
	for i := range 8 {
		ns := n.ns(i)
		n.do("ip netns add %s", ns)
		n.do("ip -n %s link set lo up", ns)
		n.do("ip -n %s link add eth0 type veth peer name p%d netns %s", ns, i, b)
		n.do("ip -n %s link set p%d master br0 up", b, i)
		n.do("ip -n %s link set eth0 up", ns)
		n.do("ip -n %s addr add %s dev eth0", ns, addr(i))
	}
	return n
}

func (n network) ns(i int) string { return fmt.Sprintf("%sn%d", n.tag, i) }

func (n network) do(format string, args ...any) {
	n.t.Helper()
	f := strings.Fields(fmt.Sprintf(format, args...))
	if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v %s", strings.Join(f, " "), err, out)
	}
}

// wrap starts each task in the namespace of its node.
func (n network) wrap() string {
	return wrapper(n.t, "exec ip netns exec "+n.tag+"n$SLURM_PROCID \"$@\"")
}

func flat(i int) string { return fmt.Sprintf("10.213.7.%d/24", i+1) }

var reachEnv = []string{"MASTER_ADDR=10.213.7.1", "MASTER_PORT=29511", "NCCL_SOCKET_IFNAME=eth", "GLOO_SOCKET_IFNAME=eth0"}

func (n network) check(env []string) allocation {
	n.t.Helper()
	return checkNodes(n.t, cluster8(n.t), env, "--python", debian(n.t), "--prefix", n.wrap(), "--node-timeout", "60s")
}

func TestReachAcrossNamespaces(t *testing.T) {
	n := newNetwork(t, flat)
	a := n.check(reachEnv)
	// A ring and strides of 2 and 4 over one address, and MASTER_ADDR from seven nodes.
	if r := a.Nodes.Reach; r == nil || r.Tested != 8*3+7 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
	if a.has("rdzv-unreachable") || a.has("rdzv-port-in-use") || a.has("rdzv-master-wrong-host") {
		t.Errorf("findings %v", a.ids())
	}
	// Somebody listens on MASTER_PORT of the first node.
	hold := exec.Command("ip", "netns", "exec", n.ns(0), "/usr/bin/python3", "-c", "import socket,time; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); s.bind(('',29511)); s.listen(); print('up',flush=True); time.sleep(600)")
	out, err := hold.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Process.Kill(); _ = hold.Wait() }()
	if l, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(l, err)
	}
	a = n.check(reachEnv)
	if f := a.finding(t, "rdzv-port-in-use"); f.Certainty != "proven" || f.Args["port"] != "29511" || f.Args["first"] != "n1" {
		t.Errorf("%s %v", f.Certainty, f.Args)
	}
}

// TestReachFirewall: one node drops what comes in.
func TestReachFirewall(t *testing.T) {
	n := newNetwork(t, flat)
	nft := "ip netns exec " + n.ns(4) + " " + testenv.Tool(t, "nft") + " add "
	n.do("%stable inet f", nft)
	n.do("%schain inet f in { type filter hook input priority 0 ; }", nft)
	n.do("%srule inet f in tcp flags & (syn | ack) == syn drop", nft)
	a := n.check(reachEnv)
	f := a.finding(t, "rdzv-unreachable")
	if f.Args["odd"] != "n5" || f.Args["variant"] != "in" || f.Args["error"] != "timeout" || a.Nodes.Exclude != "n5" {
		t.Errorf("%v, exclude %q, %+v", f.Args, a.Nodes.Exclude, a.Nodes.Reach)
	}
	for _, x := range a.Nodes.Reach.Faults {
		if x.To != "n5" {
			t.Errorf("%+v", x)
		}
	}
}

// TestReachTwoNetworks: the nodes have addresses in two networks without a
// route between them.
func TestReachTwoNetworks(t *testing.T) {
	n := newNetwork(t, func(i int) string { return fmt.Sprintf("10.213.%d.%d/24", 7+i/4, i+1) })
	a := n.check(reachEnv)
	f := a.finding(t, "rdzv-unreachable")
	if f.Args["variant"] != "subnets" || f.Args["nodes"] != "n[1-4]" || f.Args["other"] != "n[5-8]" || f.Args["net"] != "10.213.7.0/24" || f.Args["error"] != "no-route" {
		t.Errorf("%v\n%+v", f.Args, a.Nodes.Reach)
	}
}

// TestReachWrongInterface: NCCL would take ib0, which leads nowhere, while the
// first node can be reached over eth0.
func TestReachWrongInterface(t *testing.T) {
	n := newNetwork(t, flat)
	for i := range 8 {
		n.do("ip -n %s link add ib0 type veth peer name ib1", n.ns(i))
		n.do("ip -n %s link set ib0 up", n.ns(i))
		n.do("ip -n %s link set ib1 up", n.ns(i))
		n.do("ip -n %s addr add 172.31.9.%d/24 dev ib0", n.ns(i), i+1)
	}
	a := n.check([]string{"MASTER_ADDR=10.213.7.1", "MASTER_PORT=29511", "GLOO_SOCKET_IFNAME=eth0"})
	f := a.finding(t, "net-interface-wrong")
	if f.Args["iface"] != "ib0" || f.Certainty != "likely" {
		t.Errorf("%s %v\n%+v", f.Certainty, f.Args, a.Nodes.Reach.Explain)
	}
	for _, x := range a.Nodes.Reach.Faults {
		if x.Way != "nccl" {
			t.Errorf("%+v", x)
		}
	}
}
