package nodes

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func TestStrides(t *testing.T) {
	for n := 1; n < 40; n++ {
		seen := map[[2]int]bool{}
		for i := range n {
			for _, j := range strides(i, n) {
				if i == j || seen[[2]int{i, j}] {
					t.Fatalf("%d of %d connects to %d", i, n, j)
				}
				seen[[2]int{i, j}] = true
			}
			if n > 1 && !seen[[2]int{i, (i + 1) % n}] {
				t.Fatalf("no ring at %d of %d", i, n)
			}
		}
	}
	if got := len(strides(0, 10000)); got != 14 {
		t.Errorf("%d connections of each of 10,000 nodes", got)
	}
}

// tried makes the links of n nodes; bad says which fail.
func tried(n int, bad func(from, to int) bool) []link {
	var out []link
	for i := range n {
		for _, j := range strides(i, n) {
			out = append(out, link{i, j, !bad(i, j)})
		}
	}
	return out
}

func TestBlame(t *testing.T) {
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("n%d", i+1))
		}
		return
	}
	one := func(n int) []string { return slices.Repeat([]string{"10.0.0.0/24"}, n) }
	halves := append(slices.Repeat([]string{"10.0.0.0/24"}, 4), slices.Repeat([]string{"10.1.0.0/24"}, 4)...)
	for _, c := range []struct {
		name string
		n    int
		nets []string
		bad  func(i, j int) bool
		want []fact.Blame
	}{
		{"nothing", 8, one(8), func(i, j int) bool { return false }, nil},
		{"nobody reaches one", 8, one(8), func(i, j int) bool { return j == 4 }, []fact.Blame{{Kind: fact.BlameIn, Nodes: "n5", Faults: 3}}},
		{"one reaches nobody", 8, one(8), func(i, j int) bool { return i == 4 }, []fact.Blame{{Kind: fact.BlameOut, Nodes: "n5", Faults: 3}}},
		{"one is cut off", 8, one(8), func(i, j int) bool { return i == 4 || j == 4 }, []fact.Blame{{Kind: fact.BlameNode, Nodes: "n5", Faults: 6}}},
		{"two are cut off", 16, one(16), func(i, j int) bool { return i == 4 || j == 4 || i == 9 || j == 9 }, []fact.Blame{{Kind: fact.BlameNode, Nodes: "n[5,10]", Faults: 16}}},
		{"two halves", 8, halves, func(i, j int) bool { return i/4 != j/4 }, []fact.Blame{{Kind: fact.BlameSubnet, Nodes: "n[1-4]", Other: "n[5-8]", Net: "10.0.0.0/24", Net2: "10.1.0.0/24", Faults: 14}}},
		{"one direction of two halves", 8, halves, func(i, j int) bool { return i < 4 && j >= 4 }, []fact.Blame{{Kind: fact.BlameOneWay, Nodes: "n[1-4]", Other: "n[5-8]", Net: "10.0.0.0/24", Net2: "10.1.0.0/24", Faults: 7}}},
		{"one in a network of its own", 8, append(one(7), "10.9.0.0/24"), func(i, j int) bool { return i == 7 || j == 7 }, []fact.Blame{{Kind: fact.BlameNode, Nodes: "n8", Faults: 6}}},
		{"a pair", 8, one(8), func(i, j int) bool { return i == 1 && j == 2 }, []fact.Blame{{Kind: fact.BlamePair, Nodes: "n[2-3]", Faults: 1}}},
		{"two nodes", 2, one(2), func(i, j int) bool { return true }, []fact.Blame{{Kind: fact.BlamePair, Nodes: "n[1-2]", Faults: 2}}},
		{"many of many", 1000, one(1000), func(i, j int) bool { return j%100 == 7 }, []fact.Blame{{Kind: fact.BlameIn, Nodes: "n[8,108,208,308,408,508,608,708,808,908]", Faults: 100}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, blame(tried(c.n, c.bad), names(c.n), c.nets)); d != "" {
				t.Error(d)
			}
		})
	}
}

// fakeSrun runs probes in this process, with real sockets, the way srun does:
// labelled output, one input for all.
type fakeSrun struct {
	names  []string
	silent map[int]bool   // tasks that hang before they report
	dies   map[int]bool   // tasks that end after their report
	ends   map[int]string // addresses that they give in place of theirs
	t      *testing.T
}

func (f *fakeSrun) LookPath(name string) (string, error) {
	if name == "srun" {
		return "srun", nil
	}
	return "", fmt.Errorf("%s is not here", name)
}

func (f *fakeSrun) Run(context.Context, source.Cmd) (source.Result, error) {
	return source.Result{}, fmt.Errorf("nothing runs here")
}

func (f *fakeSrun) Stream(ctx context.Context, c source.Cmd, s source.Streams) (source.Result, error) {
	nonce := ""
	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a, "--nonce="); ok {
			nonce = v
		}
	}
	out := &labels{w: s.Stdout}
	var wg sync.WaitGroup
	var ins []*io.PipeWriter
	for i, n := range f.names {
		r, w := io.Pipe()
		ins = append(ins, w)
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer r.Close()
			if f.silent[i] {
				<-ctx.Done()
				return
			}
			m, b := gpuNode(f.t, i, n, "")
			m.Runner = f
			b.Node.Ifaces = fact.Of([]fact.Iface{{Name: "eth0", Up: true, Addrs: []string{"127.0.0.1/8"}, MTU: 1500}}, fact.Evidence{})
			if a := f.ends[i]; a != "" {
				b.Node.Ifaces.V[0].Addrs[0] = a
			}
			in := io.Reader(r)
			if f.dies[i] {
				in = strings.NewReader("")
			}
			if err := Probe(ctx, m, ProbeOptions{Nonce: nonce, In: in, Out: out.task(i), Reach: true}, func(context.Context) (*fact.Bundle, error) { return b, nil }); err != nil {
				f.t.Error(err)
			}
			if f.dies[i] {
				fmt.Fprintf(s.Stderr, "srun: error: %s: task %d: Killed\n", n, i)
			}
		}()
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := s.Stdin.Read(buf)
			for _, w := range ins {
				if n > 0 {
					_, _ = w.Write(buf[:n]) // one that ended reads no more
				}
				if err != nil {
					w.Close()
				}
			}
			if err != nil {
				return
			}
		}
	}()
	wg.Wait()
	return source.Result{}, nil
}

type labels struct {
	mu sync.Mutex
	w  io.Writer
}

type taskWriter struct {
	l  *labels
	id int
}

func (l *labels) task(id int) io.Writer { return taskWriter{l, id} }

func (w taskWriter) Write(p []byte) (int, error) {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	for _, line := range strings.SplitAfter(string(p), "\n") {
		if line != "" {
			fmt.Fprintf(w.l.w, "%d: %s", w.id, line)
		}
	}
	return len(p), nil
}

func runFake(t *testing.T, f *fakeSrun, limit time.Duration) (*fact.NodeSet, time.Duration) {
	t.Helper()
	f.t = t
	began := time.Now()
	s, err := Run(t.Context(), &source.Machine{Runner: f, Env: map[string]string{}}, Options{Exe: "ncclinic", JobID: "7", Nodes: f.names, NodeLimit: limit, Reach: true})
	if err != nil {
		t.Fatal(err)
	}
	return s, time.Since(began)
}

func TestAllReachAll(t *testing.T) {
	s, _ := runFake(t, &fakeSrun{names: []string{"n1", "n2", "n3", "n4", "n5"}}, time.Minute)
	r, ok := s.Reach.Get()
	if !ok || s.Reported != 5 || r.Tested != 15 || r.Good != 15 || len(r.Explain) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestSilentAndDyingNodes: one that hangs costs its limit and nothing else, and
// one that ended after its report is no fault of the network.
func TestSilentAndDyingNodes(t *testing.T) {
	s, took := runFake(t, &fakeSrun{names: []string{"n1", "n2", "n3", "n4"}, silent: map[int]bool{2: true}, dies: map[int]bool{3: true}}, 2*time.Second)
	if len(s.Missing) != 1 || s.Missing[0].Nodes != "n3" || s.Missing[0].Kind != fact.FaultSilent {
		t.Errorf("missing %+v", s.Missing)
	}
	r, _ := s.Reach.Get()
	if r.Failed != 0 || r.Good != 2 {
		t.Errorf("reach %+v", r)
	}
	if took > 45*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestNobodyListensThere: an address of no machine, and one at which somebody
// else answers.
func TestNobodyListensThere(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go func() {
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "220 mail.example")
			c.Close()
		}
	}()
	if e := connect(t.Context(), other.Addr().String(), "token", 3); e != fact.ReachOther {
		t.Errorf("another server: %s", e)
	}
	addr := other.Addr().String()
	other.Close()
	if e := connect(t.Context(), addr, "token", 3); e != fact.ReachRefused {
		t.Errorf("nobody: %s", e)
	}
	a := newAnswering(3)
	port, err := a.listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	a.know("token")
	at := hostPort("127.0.0.1", port)
	if e := connect(t.Context(), at, "token", 3); e != "" {
		t.Errorf("the right one: %s", e)
	}
	if e := connect(t.Context(), at, "token", 4); e != fact.ReachOther {
		t.Errorf("another task: %s", e)
	}
	if e := connect(t.Context(), at, "guess", 3); e != fact.ReachClosed {
		t.Errorf("another token: %s", e)
	}
}

func TestSrunArguments(t *testing.T) {
	o := Options{Exe: "/sw/ncclinic", ProbeArgs: []string{"node-probe"}, JobID: "7", Count: 4, Version: "22.05.8", Prefix: []string{"apptainer", "exec", "X.sif"}, SrunArgs: []string{"--cpu-bind=none"}}
	got := strings.Join(o.srunArgs("N"), " ")
	for _, want := range []string{"--jobid=7 --overlap --nodes=4 --ntasks=4", "--cpu-bind=none apptainer exec X.sif /sw/ncclinic node-probe --nonce=N", "--ntasks-per-node=1", "--label", "--kill-on-bad-exit=0"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	for v, overlap := range map[string]bool{"20.02.7": false, "19.05.5": false, "20.11.0": true, "23.11.4": true, "": true} {
		o.Version = v
		if slices.Contains(o.srunArgs("N"), "--overlap") != overlap {
			t.Errorf("Slurm %s: --overlap is %v", v, !overlap)
		}
	}
	o = Options{Exe: "/x", AllocArgs: []string{"--partition=gpu"}, Nodes: []string{"n1", "n2"}, Bcast: "/tmp/nc", Container: []string{"--container-image=a.sqsh"}}
	got = strings.Join(o.srunArgs("N"), " ")
	for _, want := range []string{"--partition=gpu --nodes=2 --ntasks=2 --bcast=/tmp/nc --container-image=a.sqsh /x --nonce=N"} {
		if !strings.Contains(got, want) || strings.Contains(got, "overlap") {
			t.Errorf("no %q in %s", want, got)
		}
	}
}
