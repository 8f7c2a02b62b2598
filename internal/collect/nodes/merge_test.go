package nodes

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

const testNonce = "0123456789abcdef01234567"

// gpuNode is the recorded node of the demo, as task of a step.
func gpuNode(t testing.TB, task int, name, list string) (*source.Machine, *fact.Bundle) {
	t.Helper()
	f, err := os.Open("../../demo/bundle.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := fact.ReadBundle(f)
	if err != nil {
		t.Fatal(err)
	}
	at := fact.EnvVarAt("SLURMD_NODENAME", name)
	b.Host.Name = fact.Of(name+".cluster", fact.File("/proc/sys/kernel/hostname"))
	b.Slurm.NodeName, b.Slurm.Rank = fact.Of(name, at), fact.Of(task, fact.EnvVarAt("SLURM_PROCID", fmt.Sprint(task)))
	env := map[string]string{"SLURM_PROCID": fmt.Sprint(task), "SLURMD_NODENAME": name, "SLURM_STEP_NODELIST": list, "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "3", "NCCL_DEBUG_FILE": "/tmp/" + name + ".log"}
	b.Env = nil
	for _, k := range []string{"SLURM_PROCID", "SLURMD_NODENAME", "NCCL_DEBUG_FILE"} {
		b.Env = append(b.Env, fact.EnvVar{Name: k, Value: env[k]})
	}
	addr := fmt.Sprintf("10.1.%d.%d/16", task/250, task%250+1)
	b.Node.Ifaces = fact.Of([]fact.Iface{{Name: "lo", Up: true, Loop: true, Addrs: []string{"127.0.0.1/8"}}, {Name: "eth0", Up: true, Addrs: []string{addr}, MTU: 9000}}, fact.Command("interfaces", addr))
	gpus := append([]fact.GPU(nil), b.Node.GPUs.V...)
	for i := range gpus {
		gpus[i].UUID = fmt.Sprintf("GPU-%08x-%d", task, i)
	}
	b.Node.GPUs.V = gpus
	b.Node.Memory = fact.Of(fact.Memory{Total: 1 << 40, Available: 900<<30 + int64(task)<<20}, fact.FileExcerpt("/proc/meminfo", fmt.Sprint(task)))
	return &source.Machine{FS: fstest.MapFS{}, Env: env}, b
}

// output is what srun prints of a report: labelled frames.
func output(t testing.TB, task int, m *source.Machine, b *fact.Bundle) []string {
	t.Helper()
	var w bytes.Buffer
	if err := WriteReport(&w, testNonce, m, b); err != nil {
		t.Fatal(err)
	}
	return labelled(t, task, w.String())
}

func labelled(t testing.TB, task int, text string) []string {
	t.Helper()
	var out []string
	n := 0
	for _, l := range strings.Split(strings.Trim(text, "\n"), "\n") {
		if len(l) > 1023 {
			t.Fatalf("srun would cut a line of %d bytes", len(l))
		}
		n += len(l) + 1
		out = append(out, fmt.Sprintf("%3d: %s", task, l))
	}
	if n > MaxLine+1024 {
		t.Fatalf("task %d sends %d bytes", task, n)
	}
	return out
}

func feed(m *Merger, lines ...string) {
	for _, l := range lines {
		m.Line([]byte(l + "\n"))
	}
}

func value(s *fact.NodeSet, name string) []fact.ValueFor {
	for _, c := range s.Compared {
		if c.Name == name {
			return c.Values
		}
	}
	return nil
}

func TestEqualNodesAreOneGroup(t *testing.T) {
	names := []string{"gpu-1", "gpu-2", "gpu-3", "gpu-4"}
	m := NewMerger(testNonce, names)
	// Frames of several tasks come mixed, banners stand between them.
	var all [][]string
	for i, n := range names {
		mach, b := gpuNode(t, i, n, "gpu-[1-4]")
		if n == "gpu-3" {
			b.Torch[0].Version = fact.Of("2.5.1+cu121", fact.Evidence{})
		}
		all = append(all, output(t, i, mach, b))
	}
	for k := 0; k < 20; k++ {
		for i := range all {
			if k < len(all[i]) {
				feed(m, all[i][k], fmt.Sprintf("%3d: *** welcome to node %d ***", i, i), "no label")
			}
		}
	}
	s := m.Set(nil, "silent")
	if s.Total != 4 || s.Reported != 4 || s.Expected != "gpu-[1-4]" || len(s.Missing)+len(s.Odd) != 0 {
		t.Errorf("%+v", s)
	}
	if len(s.Groups) != 2 || s.Groups[0].Nodes != "gpu-[1-2,4]" || s.Groups[1].Nodes != "gpu-3" {
		t.Fatalf("groups %+v", s.Groups)
	}
	want := []fact.ValueFor{{Value: "2.6.0+cpu", Nodes: "gpu-[1-2,4]", Count: 3}, {Value: "2.5.1+cu121", Nodes: "gpu-3", Count: 1}}
	if d := cmp.Diff(want, value(s, "torch.version")); d != "" {
		t.Error(d)
	}
	if v := value(s, "set.NCCL_DEBUG_FILE"); len(v) != 1 {
		t.Errorf("a value that differs by the node's own name alone: %v", v)
	}
	b := s.Groups[1].Bundle
	_, orig := gpuNode(t, 2, "gpu-3", "gpu-[1-4]")
	if d := cmp.Diff(orig.Node, b.Node); d != "" {
		t.Errorf("facts of the node that stands for its group (-sent +restored):\n%s", d)
	}
	if d := cmp.Diff(orig.Slurm, b.Slurm); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(orig.Env, b.Env); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(orig.Host, b.Host); d != "" {
		t.Error(d)
	}
	if s.Job != "77" || s.Step != "3" || s.First != "gpu-1" {
		t.Errorf("job %q step %q first %q", s.Job, s.Step, s.First)
	}
}

// TestHostileLines: nothing that is not a whole report of the right task is
// used, and everything of that kind is told.
func TestHostileLines(t *testing.T) {
	names := []string{"n1", "n2", "n3"}
	good := func(i int, as string) []string {
		m, b := gpuNode(t, i, as, "n[1-3]")
		return output(t, i, m, b)
	}
	for _, c := range []struct {
		name  string
		lines []string
		kind  string
		node  string
		got   int // reports used
	}{
		{"second report", append(good(1, "n2"), good(1, "n2")...), fact.FaultTwice, "n2", 1},
		{"end is missing", good(1, "n2")[:2], fact.FaultCut, "n2", 0},
		{"middle is missing", append([]string{good(1, "n2")[0]}, good(1, "n2")[2:]...), fact.FaultCut, "n2", 0},
		{"frame cut in its head", []string{"  1: @ncclinic " + testNonce + " n"}, fact.FaultCut, "n2", 0},
		{"frame cut in its body, then whole again", append([]string{good(1, "n2")[0][:100]}, good(1, "n2")...), fact.FaultCut, "n2", 1},
		{"another node's name", good(1, "n3"), fact.FaultOtherName, "n2", 1},
		{"escapes in the name", good(1, "n2\x1b[31m"), fact.FaultBadName, "n2", 1},
		{"a list as the name", good(1, "n[1-3]"), fact.FaultBadName, "n2", 1},
		{"wrong nonce", []string{"  1: @ncclinic 000000000000000000000000 n 1/1 {}"}, fact.FaultForeign, "n2", 0},
		{"task that is not there", []string{"  7: @ncclinic " + testNonce + " n 1/1 {}"}, fact.FaultForeign, "", 0},
		{"no label", []string{"@ncclinic " + testNonce + " n 1/1 {}"}, fact.FaultForeign, "", 0},
		{"not JSON", []string{"  1: @ncclinic " + testNonce + " n 1/1 {\"v\":1,"}, fact.FaultCut, "n2", 0},
		{"JSON of another form", []string{"  1: @ncclinic " + testNonce + ` n 1/1 {"v":1,"n":"n2","z":"AAAA"}`}, fact.FaultCut, "n2", 0},
		{"too many frames", []string{"  1: @ncclinic " + testNonce + " n 1/4000 x"}, fact.FaultCut, "n2", 0},
		{"answer without a report", []string{"  1: @ncclinic " + testNonce + ` r 1/1 {}`}, fact.FaultCut, "n2", 0},
		{"of an unknown kind", []string{"  1: @ncclinic " + testNonce + ` q 1/1 {}`}, fact.FaultCut, "n2", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMerger(testNonce, names)
			feed(m, c.lines...)
			s := m.Set(nil, "silent")
			if s.Reported != c.got {
				t.Errorf("%d reports used, want %d", s.Reported, c.got)
			}
			if len(s.Odd) == 0 || s.Odd[0].Kind != c.kind || s.Odd[0].Nodes != c.node {
				t.Errorf("odd: %+v, want %s of %q", s.Odd, c.kind, c.node)
			}
			for _, o := range s.Odd {
				if strings.ContainsAny(o.Why+o.Nodes, "\x1b\n") {
					t.Errorf("an escape is passed on: %q %q", o.Nodes, o.Why)
				}
			}
			if want := 3 - c.got; s.Total-s.Reported != want || len(s.Missing) != 1 || s.Missing[0].Count != want {
				t.Errorf("missing %+v of %d", s.Missing, s.Total)
			}
		})
	}
}

// TestHostileStream: what srun's output may look like besides whole lines.
func TestHostileStream(t *testing.T) {
	good := func(i int) string {
		m, b := gpuNode(t, i, fmt.Sprintf("n%d", i+1), "n[1-3]")
		return strings.Join(output(t, i, m, b), "\n") + "\n"
	}
	ours := "  1: @ncclinic " + testNonce + " n 1/1 "
	deep := strings.Repeat(`{"a":`, 1200)
	var z packer
	packed := func(plain string) string {
		s, err := z.pack([]byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	half := len(good(1)) / 2
	for _, c := range []struct {
		name, text string
		got        int
		kind       string // of what is odd; "" for nothing
	}{
		{"a line of 10 MB without an end before it", strings.Repeat("x", 10<<20) + "\n" + good(1), 1, ""},
		{"a line of 10 MB that begins as a frame", ours + strings.Repeat("x", 10<<20) + "\n" + good(1), 1, fact.FaultCut},
		{"banners between the frames", strings.ReplaceAll(good(1), "\n", "\nWelcome to the cluster\n  1: # module load\n\n"), 1, ""},
		{"a banner in front on the same line", strings.ReplaceAll(good(1), "1: @", "1: Welcome! @"), 1, ""},
		{"a banner in the middle of a frame", good(1)[:half] + "*** maintenance ***\n" + good(1)[half:], 0, fact.FaultCut},
		{"a banner in the middle, then another node", good(1)[:half] + "***" + good(1)[half:] + good(2), 1, fact.FaultCut},
		{"carriage returns", strings.ReplaceAll(good(1), "\n", "\r\n"), 1, ""},
		{"two nodes frame by frame", interleave(good(1), good(2)), 2, ""},
		{"no UTF-8", ours + "{\"v\":1,\"n\":\"n\xff\xfe\",\"z\":\"\xc0\"}\n", 0, fact.FaultBadName},
		{"nested without end", ours + `{"v":1,"n":"n2","z":` + deep[:800] + "\n", 0, fact.FaultCut},
		{"nested facts", ours + `{"v":1,"n":"n2","z":"` + packed("{}\n"+strings.Repeat(`{"python":`, 90000)) + "\"}\n", 0, fact.FaultCut},
		{"values that are none", ours + `{"v":1,"n":"n2","z":"` + packed("[[[]]]\n{}") + "\"}\n", 0, fact.FaultCut},
		{"a bomb", ours + `{"v":1,"n":"n2","z":"` + packed(strings.Repeat(" ", 600<<10)) + "\"}\n", 0, fact.FaultCut},
		{"NUL bytes", strings.Repeat("\x00", 5000) + "\n" + good(1), 1, ""},
		{"a number that is no task", "99999999999999999999: @ncclinic " + testNonce + " n 1/1 {}\n" + good(1), 1, fact.FaultForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMerger(testNonce, []string{"n1", "n2", "n3"})
			l := &lines{each: m.Line, max: 4 * 1024}
			for text := []byte(c.text); len(text) > 0; { // as pipes give it
				n := min(len(text), 4093)
				if _, err := l.Write(text[:n]); err != nil {
					t.Fatal(err)
				}
				text = text[n:]
			}
			l.flush()
			if cap(l.buf) > 8*1024 {
				t.Errorf("%d bytes are kept of a line", cap(l.buf))
			}
			s := m.Set(nil, "silent")
			kind := ""
			if len(s.Odd) > 0 {
				kind = s.Odd[0].Kind
			}
			if s.Reported != c.got || kind != c.kind {
				t.Errorf("%d reports used, want %d; odd %+v", s.Reported, c.got, s.Odd)
			}
			for _, o := range s.Odd {
				if o.Why != clean(o.Why) || o.Nodes != clean(o.Nodes) {
					t.Errorf("passed on: %+v", o)
				}
			}
		})
	}
}

// interleave takes a line of each in turn.
func interleave(a, b string) string {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	var out strings.Builder
	for i := range max(len(x), len(y)) {
		if i < len(x) {
			out.WriteString(x[i])
		}
		if i < len(y) {
			out.WriteString(y[i])
		}
	}
	return out.String()
}

func TestTwoTasksWithOneName(t *testing.T) {
	m := NewMerger(testNonce, nil) // an allocation of its own: names are not known before
	for i := range 2 {
		mach, b := gpuNode(t, i, "n1", "")
		feed(m, output(t, i, mach, b)...)
	}
	s := m.Set(nil, "")
	if s.Reported != 1 || len(s.Odd) != 1 || s.Odd[0].Kind != fact.FaultTwice {
		t.Errorf("%d reports, odd %+v", s.Reported, s.Odd)
	}
}

func TestFloodOfBadLinesIsBounded(t *testing.T) {
	m := NewMerger(testNonce, []string{"n1"})
	for i := range 20000 {
		feed(m, fmt.Sprintf("0: @ncclinic %s n 1/%d x", testNonce, i+100))
		feed(m, fmt.Sprintf("%d: @ncclinic %s n 1/2 x", i+1, testNonce))
	}
	if s := m.Set(nil, ""); len(s.Odd) > maxOdd+1 {
		t.Errorf("%d", len(s.Odd))
	}
}

func TestMissingNodesAreNamed(t *testing.T) {
	m := NewMerger(testNonce, []string{"n1", "n2", "n3", "n4", "n5"})
	mach, b := gpuNode(t, 0, "n1", "n[1-5]")
	feed(m, output(t, 0, mach, b)...)
	h := newHearsay()
	for _, l := range []string{"srun: error: Node failure on n2", "srun: error: n[3-4]: tasks 2-3: Killed", "srun: error: Task launch for StepId=3.0 failed on node n9: Communication connection failure",
		"srun: error: \x1b[31m: task 2: Killed", "srun: error: n3: task 2: Exited with exit code 2", "  2: slurmstepd-n3: error: out of \x07memory"} {
		h.line([]byte(l))
	}
	s := m.Set(h.nodes(), "no report within 1m0s")
	want := []fact.NodeFault{
		{Nodes: "n2", Kind: fact.FaultNodeFailed, Why: "Node failure on n2", Count: 1},
		{Nodes: "n3", Kind: fact.FaultKilled, Why: "Exited with exit code 2: out of memory", Count: 1},
		{Nodes: "n4", Kind: fact.FaultKilled, Why: "Killed", Count: 1},
		{Nodes: "n5", Kind: fact.FaultSilent, Why: "no report within 1m0s", Count: 1},
	}
	if d := cmp.Diff(want, s.Missing); d != "" {
		t.Error(d)
	}
}

func TestClockAndMemory(t *testing.T) {
	m := NewMerger(testNonce, []string{"n1", "n2", "n3"})
	base := time.Now()
	for i, n := range m.expected {
		m.now = func() time.Time {
			if n == "n3" {
				return base.Add(-time.Hour) // its clock is an hour ahead of ours
			}
			return base
		}
		mach, b := gpuNode(t, i, n, "")
		if n == "n2" {
			b.Node.Memory.V.Available = 9 << 30
		}
		feed(m, output(t, i, mach, b)...)
	}
	s := m.Set(nil, "")
	if v := value(s, "clock"); len(v) != 2 || v[1].Nodes != "n3" || v[1].Value != "+3600 s" {
		t.Errorf("clock %+v", v)
	}
	if v := value(s, "memory.free"); len(v) != 2 || v[1].Nodes != "n2" || v[1].Value != "9 GiB of 1000 GiB" {
		t.Errorf("memory %+v", v)
	}
}

// TestLongFactsAreTrimmed: a report fits on the wire whatever is in it.
func TestLongFactsAreTrimmed(t *testing.T) {
	mach, b := gpuNode(t, 0, "n1", "n1")
	for i := range 900 {
		b.Env = append(b.Env, fact.EnvVar{Name: fmt.Sprintf("NCCL_X%d", i), Value: fmt.Sprintf("%x", []byte(fmt.Sprint(i*7919, i*104729)))})
		b.Dists = append(b.Dists, fact.Dist{Name: fmt.Sprintf("p%d", i*7919)})
	}
	m := NewMerger(testNonce, []string{"n1"})
	feed(m, output(t, 0, mach, b)...)
	s := m.Set(nil, "")
	if s.Reported != 1 || len(s.Odd) != 0 {
		t.Fatalf("%+v", s)
	}
	said := false
	for _, p := range s.Groups[0].Bundle.Problems {
		said = said || strings.Contains(p.Why, "too long")
	}
	if !said {
		t.Error("nothing says that facts were left out")
	}
}

func FuzzLine(f *testing.F) {
	mach, b := gpuNode(f, 0, "n1", "n[1-2]")
	for _, l := range output(f, 0, mach, b) {
		f.Add([]byte(l))
	}
	f.Add([]byte("0: @ncclinic " + testNonce + ` n 1/1 {"v":1,"n":"n1","z":"AQ=="}`))
	f.Add([]byte("0: @ncclinic " + testNonce + ` r 1/1 {"n":1,"f":[{"t":9}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := NewMerger(testNonce, nil)
		for _, l := range bytes.Split(raw, []byte("\n")) {
			m.Line(l)
		}
		s := m.Set(nil, "")
		for _, x := range append(s.Missing, s.Odd...) {
			if strings.ContainsAny(x.Nodes, "\x1b\x00\n") {
				t.Fatalf("%q", x.Nodes)
			}
		}
	})
}

func FuzzHearsay(f *testing.F) {
	f.Add([]byte("srun: error: n3: task 2: Killed"))
	f.Add([]byte("srun: error: Task launch for StepId=3.0 failed on node n[1-9]: x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := newHearsay()
		h.line(raw)
		for n := range h.nodes() {
			if !nodeName.MatchString(n) {
				t.Fatalf("%q", n)
			}
		}
	})
}
