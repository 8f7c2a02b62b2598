package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab"
)

// eight is a cluster of eight nodes whose TaskProlog is a file that a test may
// write: what it prints changes the environment of tasks, node by node.
var eight = sync.OnceValues(func() (*lab.Cluster, error) {
	return lab.Start(context.Background(), lab.Options{Nodes: 8, Conf: []string{"TaskProlog=" + prologPath()}})
})

var eightStarted bool

func prologPath() string { return filepath.Join(workDir, "prolog.sh") }

func cluster8(t *testing.T) *lab.Cluster {
	t.Helper()
	if m := lab.Missing(); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh packages")
	}
	prolog(t, "")
	c, err := eight()
	if err != nil {
		t.Fatal(err)
	}
	eightStarted = true
	return c
}

// prolog sets what every task's prolog does; $N is the name of the node.
func prolog(t *testing.T, body string) {
	t.Helper()
	write(t, prologPath(), "#!/bin/sh\nN=$SLURMD_NODENAME\n"+body+"\nexit 0\n")
}

// wrapper is a script that starts the probe and does something else on some
// nodes before; $N is the name of the node.
func wrapper(t *testing.T, body string) string {
	t.Helper()
	p := filepath.Join(temp(t), "wrap.sh")
	write(t, p, "#!/bin/bash\nN=$SLURMD_NODENAME\n"+body+"\nexec \"$@\"\n")
	return p
}

// allocation is the report on the nodes, beside the findings.
type allocation struct {
	report
	Nodes *diag.NodesReport
	took  time.Duration
	text  string
}

func (a allocation) finding(t *testing.T, id string) finding {
	t.Helper()
	for _, f := range a.Findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no finding %s among %v\n%s", id, a.ids(), a.text)
	return finding{}
}

// checkNodes runs check --nodes in an allocation of all of a cluster's nodes
// and looks that nothing of it is left afterwards.
func checkNodes(t *testing.T, c *lab.Cluster, env []string, args ...string) allocation {
	t.Helper()
	all := append([]string{"-N" + fmt.Sprint(len(c.Nodes)), "--gres=gpu:2", program, "check", "--nodes", "--format", "json"}, args...)
	return runNodes(t, c, env, "salloc", all...)
}

func runNodes(t *testing.T, c *lab.Cluster, env []string, name string, args ...string) allocation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := c.Command(ctx, name, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	a := allocation{took: time.Since(began), text: errs.String()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	a.report = parse(t, out.Bytes(), errs.String())
	if err := json.Unmarshal(out.Bytes(), &struct{ Nodes **diag.NodesReport }{&a.Nodes}); err != nil || a.Nodes == nil {
		t.Fatalf("no nodes in the report: %v\n%s", err, errs.String())
	}
	nothingLeft(t, c, !strings.Contains(t.Name(), "SlurmdKilled"))
	return a
}

// nothingLeft waits until no probe runs and, where all nodes live, no step is
// known any more.
func nothingLeft(t *testing.T, c *lab.Cluster, alive bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		left := probes()
		steps, _ := c.Command(t.Context(), "squeue", "--noheader", "--steps", "--format=%i %j").Output()
		if left == "" && !(alive && strings.Contains(string(steps), "ncclinic")) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind: processes %q, steps %q", left, steps)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// probes lists the processes of probes of the program under test.
func probes() string {
	var out []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		b, err := os.ReadFile(p)
		if err == nil && bytes.Contains(b, []byte(program)) && bytes.Contains(b, []byte("node-probe")) && !bytes.HasPrefix(b, []byte("srun")) {
			out = append(out, filepath.Base(filepath.Dir(p)))
		}
	}
	return strings.Join(out, " ")
}

func TestNodesAlike(t *testing.T) {
	c := cluster8(t)
	python := debian(t)
	prolog(t, `echo "print *** maintenance on sunday, node $N ***"`) // goes to the output of every task
	a := checkNodes(t, c, nil, "--python", python)
	if a.Nodes.Total != 8 || a.Nodes.Reported != 8 || a.Nodes.Expected != "n[1-8]" || a.Nodes.AlikeCount != 8 || len(a.Nodes.Different) != 0 || a.Nodes.Exclude != "" {
		t.Errorf("%+v", a.Nodes)
	}
	if a.cause() != "torch-cpu-build" || a.top(t).Args["nodes_all"] != "1" {
		t.Errorf("cause %q %v: a build that is wrong everywhere has no outlier", a.cause(), a.Findings[0].Args)
	}
	if r := a.Nodes.Reach; r == nil || r.Failed != 0 || r.Tested == 0 {
		t.Errorf("reach %+v", r)
	}
	if a.has("nodes-odd-lines") {
		t.Error("a banner is taken for a report")
	}
}

// TestNodesOtherTorch: on one node another environment comes first.
func TestNodesOtherTorch(t *testing.T) {
	c := cluster8(t)
	debian(t)
	cuda := prefix(t, "cuda")
	prolog(t, `[ $N = n3 ] && echo "export PATH=/usr/bin:/bin" || echo "export PATH=`+cuda+`/bin:/usr/bin:/bin"`)
	a := checkNodes(t, c, nil)
	f := a.finding(t, "torch-cpu-build")
	if f.Args["nodes"] != "n3" || f.Certainty != "proven" {
		t.Errorf("torch-cpu-build: %s %v", f.Certainty, f.Args)
	}
	d := a.finding(t, "env-differs-between-nodes")
	if d.Args["odd"] != "n3" || d.Role != "symptom" || d.Certainty != "proven" {
		t.Errorf("env-differs-between-nodes: %s %s %v", d.Role, d.Certainty, d.Args)
	}
	if a.Nodes.Exclude != "n3" || a.Nodes.Alike != "n[1-2,4-8]" {
		t.Errorf("exclude %q, alike %q", a.Nodes.Exclude, a.Nodes.Alike)
	}
	if !strings.Contains(d.Message, "2.6.0+cu124") {
		t.Errorf("message %q", d.Message)
	}
}

func TestNodesOtherVariables(t *testing.T) {
	c := cluster8(t)
	prolog(t, `[ $N = n5 ] && echo "export NCCL_IB_DISABLE=1"
[ $N = n6 ] && echo "export LD_LIBRARY_PATH=/opt/old/lib"
echo "export NCCL_DEBUG_FILE=/tmp/nccl.$N"`)
	a := checkNodes(t, c, nil, "--python", debian(t))
	if f := a.finding(t, "net-differs-between-nodes"); f.Args["odd"] != "n5" || f.Args["what"] != "NCCL_IB_DISABLE" || f.Certainty != "likely" {
		t.Errorf("%s %v", f.Certainty, f.Args)
	}
	if f := a.finding(t, "env-differs-between-nodes"); f.Args["odd"] != "n6" || f.Severity != "warning" {
		t.Errorf("%s %v", f.Severity, f.Args)
	}
	for _, d := range a.Nodes.Different {
		if d.Name == "set.NCCL_DEBUG_FILE" {
			t.Error("a value that has only the node's own name in it is called different")
		}
	}
}

// TestNodesOddProbes: a lowered limit, a probe that reports twice, one whose
// output is cut off, one that dies, in one step.
func TestNodesOddProbes(t *testing.T) {
	c := cluster8(t)
	wrap := wrapper(t, `case $N in
n2) ulimit -l 16;;
n4) "$@" </dev/null;;
n6) "$@" | head -c 1500; exit;;
n8) kill -KILL $$;;
esac`)
	a := checkNodes(t, c, nil, "--python", debian(t), "--prefix", wrap, "--node-timeout", "20s")
	if f := a.finding(t, "nodes-limits"); f.Args["odd"] != "n2" {
		t.Errorf("memlock: %v", f.Args)
	}
	odd := a.finding(t, "nodes-odd-lines")
	var twice, cut bool
	for _, e := range odd.Evidence {
		twice = twice || e.Node == "n4" && strings.Contains(e.Excerpt, "twice")
		cut = cut || e.Node == "n6" && strings.Contains(e.Excerpt, "cut")
	}
	if !twice || !cut {
		t.Errorf("odd lines: %+v", odd.Evidence)
	}
	missing := ""
	for _, m := range a.Nodes.Missing {
		missing += m.Nodes + " "
		if m.Nodes == "n8" && !strings.Contains(m.Why, "Killed") {
			t.Errorf("n8: %+v", m)
		}
	}
	if !strings.Contains(missing, "n8") || !strings.Contains(missing, "n6") || a.Nodes.Reported != 6 {
		t.Errorf("missing %q, reported %d", missing, a.Nodes.Reported)
	}
	if a.took > 80*time.Second {
		t.Errorf("a probe that died cost %v", a.took)
	}
	if a.Nodes.Exclude == "" || !strings.Contains(a.Nodes.Exclude, "8") {
		t.Errorf("exclude %q", a.Nodes.Exclude)
	}
}

// TestNodesHangingNode: a node that hangs costs its limit and nothing else.
func TestNodesHangingNode(t *testing.T) {
	c := cluster8(t)
	wrap := wrapper(t, `[ $N = n6 ] && kill -STOP $$`)
	a := checkNodes(t, c, nil, "--python", debian(t), "--prefix", wrap, "--node-timeout", "15s")
	f := a.finding(t, "node-failed")
	if f.Args["nodes"] != "n6" || f.Certainty != "likely" || a.Nodes.Reported != 7 || a.Nodes.Exclude != "n6" {
		t.Errorf("%s %v, reported %d, exclude %q", f.Certainty, f.Args, a.Nodes.Reported, a.Nodes.Exclude)
	}
	if r := a.Nodes.Reach; r == nil || r.Nodes != 7 || r.Failed != 0 {
		t.Errorf("reach %+v", r)
	}
}

// TestNodesSlurmdKilled: the daemon and the step of a node die before its probe
// has reported.
func TestNodesSlurmdKilled(t *testing.T) {
	if m := lab.Missing(); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh packages")
	}
	c, err := lab.Start(t.Context(), lab.Options{Nodes: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	mark := filepath.Join(temp(t), "n3")
	if err := os.Chmod(filepath.Dir(mark), 0o777); err != nil {
		t.Fatal(err)
	}
	wrap := wrapper(t, `if [ $N = n3 ]; then echo $PPID $$ >`+mark+`.tmp; mv `+mark+`.tmp `+mark+`; exec sleep 600; fi`)
	go func() {
		for t.Context().Err() == nil {
			if b, err := os.ReadFile(mark); err == nil {
				var stepd, task, slurmd int
				_, _ = fmt.Sscan(string(b), &stepd, &task)
				p, _ := os.ReadFile(filepath.Join(c.Dir, "pids", "n3"))
				_, _ = fmt.Sscan(string(p), &slurmd)
				if stepd > 1 && slurmd > 1 && task > 1 { // a node that dies takes all with it
					_ = syscall.Kill(task, syscall.SIGKILL)
					_ = syscall.Kill(slurmd, syscall.SIGKILL)
					_ = syscall.Kill(stepd, syscall.SIGKILL)
				}
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	a := checkNodes(t, c, nil, "--python", debian(t), "--prefix", wrap, "--node-timeout", "20s")
	f := a.finding(t, "node-failed")
	if f.Args["nodes"] != "n3" || a.Nodes.Reported != 3 || a.Nodes.Exclude != "n3" {
		t.Errorf("%v, reported %d, exclude %q", f.Args, a.Nodes.Reported, a.Nodes.Exclude)
	}
}

// TestNodesFromOutside: a job by its number, an allocation of its own, and the
// calls of Slurm's commands, which do not depend on the number of nodes.
func TestNodesFromOutside(t *testing.T) {
	c := cluster8(t)
	python := debian(t)
	shims := temp(t)
	if err := os.Chmod(shims, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"srun", "squeue", "scontrol", "sinfo", "sacct", "scancel"} {
		write(t, filepath.Join(shims, name), "#!/bin/sh\necho "+name+" >>"+shims+"/calls\nexec /usr/bin/"+name+" \"$@\"\n")
	}
	env := []string{"PATH=" + shims + ":" + os.Getenv("PATH")}
	calls := func() string {
		b, _ := os.ReadFile(filepath.Join(shims, "calls"))
		_ = os.Remove(filepath.Join(shims, "calls"))
		return strings.Join(strings.Fields(string(b)), " ")
	}
	var seen []string
	for _, n := range []int{2, 7} {
		out, err := c.Command(t.Context(), "salloc", "--no-shell", fmt.Sprintf("-N%d", n)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		var job int
		for _, l := range strings.Split(string(out), "\n") {
			if _, err := fmt.Sscanf(l, "salloc: Granted job allocation %d", &job); err == nil {
				break
			}
		}
		a := runNodes(t, c, env, program, "check", "--nodes", "--format", "json", "--python", python, "--jobid", fmt.Sprint(job))
		if a.Nodes.Reported != n || a.Nodes.Total != n {
			t.Errorf("%+v", a.Nodes)
		}
		seen = append(seen, calls())
		command(t, c.Env(), "scancel", fmt.Sprint(job))
	}
	if seen[0] != seen[1] || strings.Count(seen[0], "srun") != 1 {
		t.Errorf("calls over 2 nodes %q, over 7 %q", seen[0], seen[1])
	}
	a := runNodes(t, c, env, program, "check", "--nodes", "--format", "json", "--python", python, "--nodelist", "n[3-5]", "--no-reach")
	if a.Nodes.Expected != "n[3-5]" || a.Nodes.Reported != 3 || a.Nodes.Reach != nil {
		t.Errorf("own allocation: %+v", a.Nodes)
	}
	if got := calls(); strings.Count(got, "srun") != 1 || strings.Contains(got, "squeue") {
		t.Errorf("calls %q", got)
	}
	// Outside of a job and without an allocation there is nothing to look at.
	o := call{env: c.Env()}.run(t, "check", "--nodes")
	if o.code != 2 || !strings.Contains(o.stderr, "--jobid") {
		t.Errorf("exit %d %s", o.code, o.stderr)
	}
	o = call{env: c.Env()}.run(t, "check", "--nodes", "--jobid", "999999")
	if o.code != 2 {
		t.Errorf("exit %d %s", o.code, o.stderr)
	}
	o = call{env: c.Env()}.run(t, "check", "--nodes", "--partition", "nowhere")
	if o.code != 2 || !strings.Contains(o.stderr, "partition") {
		t.Errorf("exit %d %s", o.code, o.stderr)
	}
}

// TestNodesBcast: the program is on one machine only and is gone afterwards.
func TestNodesBcast(t *testing.T) {
	c := cluster8(t)
	dir := temp(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "copy")
	a := runNodes(t, c, nil, program, "check", "--nodes", "--format", "json", "--python", debian(t), "--nodelist", "n2", "--bcast", at)
	if a.Nodes.Reported != 1 {
		t.Errorf("%+v", a.Nodes)
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("the copy was left behind")
	}
}

// TestNodesInterrupted: Ctrl-C ends the step and leaves nothing.
func TestNodesInterrupted(t *testing.T) {
	c := cluster8(t)
	mark := filepath.Join(temp(t), "up")
	if err := os.Chmod(filepath.Dir(mark), 0o777); err != nil {
		t.Fatal(err)
	}
	wrap := wrapper(t, "touch "+mark+"\n[ $N = n2 ] && sleep 600")
	cmd := c.Command(t.Context(), program, "check", "--nodes", "--nodelist", "n[1-4]", "--prefix", wrap)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(mark); err == nil || time.Now().After(deadline) {
			break
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d", code)
	}
	nothingLeft(t, c, true)
}

// TestNodesParentKilled: not even kill -9 leaves a step behind, nor a node that
// hangs.
func TestNodesParentKilled(t *testing.T) {
	c := cluster8(t)
	mark := filepath.Join(temp(t), "up")
	if err := os.Chmod(filepath.Dir(mark), 0o777); err != nil {
		t.Fatal(err)
	}
	wrap := wrapper(t, "touch "+mark+"\n[ $N = n2 ] && kill -STOP $$")
	cmd := c.Command(t.Context(), program, "check", "--nodes", "--nodelist", "n[1-4]", "--prefix", wrap)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(mark); err == nil || time.Now().After(deadline) {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	nothingLeft(t, c, true)
}

// TestNodesLive forms a real process group over gloo on eight nodes, and finds
// the rank that cannot take part.
func TestNodesLive(t *testing.T) {
	c := cluster8(t)
	python := debian(t)
	env := []string{"MASTER_ADDR=127.0.0.1", "GLOO_SOCKET_IFNAME=lo"}
	a := checkNodes(t, c, env, "--python", python, "--live", "--live-timeout", "150s", "--no-reach")
	if g := a.Nodes.Group; g == nil || g.Backend != "gloo" || g.World != 8 || g.Good != 8 || g.First != nil {
		t.Errorf("%+v", g)
	}
	prolog(t, `[ $N = n5 ] && echo "export PYTHONPATH=`+broken(t)+`"`)
	a = checkNodes(t, c, env, "--python", python, "--live", "--live-timeout", "150s", "--no-reach")
	g := a.Nodes.Group
	if g == nil || g.First == nil || g.First.Node != "n5" || g.First.Rank != 4 || g.First.Step != "import" || g.Good != 0 {
		t.Fatalf("%+v %+v", g, g.First)
	}
	if f := a.finding(t, "run-exception"); f.Args["node"] != "n5" {
		t.Errorf("%v", f.Args)
	}
	// The others are not waited for to the limit.
	if !strings.Contains(fmt.Sprint(g.Faults), "stopped: another rank had failed") {
		t.Errorf("%+v", g.Faults)
	}
}

// broken is a folder whose numpy-less torch cannot be imported.
func broken(t *testing.T) string {
	dir := temp(t)
	write(t, filepath.Join(dir, "torch", "__init__.py"), "raise ImportError('libcudart.so.12: cannot open shared object file')\n")
	write(t, filepath.Join(dir, "torch", "version.py"), "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n")
	return dir
}
