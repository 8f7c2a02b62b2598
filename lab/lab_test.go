package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

func need(t *testing.T) {
	t.Helper()
	if m := Missing(); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh installs them")
	}
}

func startLab(t *testing.T, o Options) *Cluster {
	t.Helper()
	need(t)
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		gone(t, c.Dir)
	})
	return c
}

// gone checks that neither the folder nor a living process of a lab is left.
func gone(t *testing.T, dir string) {
	t.Helper()
	var left []string
	// Killed processes stay in /proc until init collects them; and the sweep of
	// another test process may be at work on the same folder.
	for range 600 {
		left = nil
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, e := range environs {
			env, err := os.ReadFile(e)
			if err == nil && bytes.Contains(env, []byte("NCCLINIC_LAB="+dir)) {
				comm, _ := os.ReadFile(filepath.Join(filepath.Dir(e), "comm"))
				left = append(left, e+" "+strings.TrimSpace(string(comm)))
			}
		}
		if _, err := os.Stat(dir); err == nil {
			left = append(left, dir)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("left behind: %v", left)
}

func TestStart(t *testing.T) {
	began := time.Now()
	c := startLab(t, Options{})
	took := time.Since(began)
	t.Logf("four nodes were idle after %v", took)
	if took > 10*time.Second {
		t.Errorf("the start took %v, more than 10 s", took)
	}

	out, err := c.Command(t.Context(), "srun", "-N2", "--gres=gpu:2", "env").CombinedOutput()
	if err != nil {
		t.Fatalf("srun: %v\n%s", err, out)
	}
	for _, want := range []string{"CUDA_VISIBLE_DEVICES=0,1", "SLURMD_NODENAME=n1", "SLURMD_NODENAME=n2"} {
		if !strings.Contains(string(out), "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "\nCUDA_VISIBLE_DEVICES=0,1\n"); n != 2 {
		t.Errorf("CUDA_VISIBLE_DEVICES=0,1 was set for %d tasks, want 2", n)
	}

	// One GPU per task and job: Slurm numbers them per node.
	job, err := c.Run(t.Context(), "#!/bin/bash\n#SBATCH -N1 --gres=gpu:1\necho \"gpu $CUDA_VISIBLE_DEVICES\"\nexit 3\n")
	if err != nil {
		t.Fatal(err)
	}
	if job.State != "FAILED" || job.ExitCode != "3:0" || job.Output != "gpu 0\n" {
		t.Errorf("batch job: %+v", job)
	}
}

func TestStopKillsJobs(t *testing.T) {
	c := startLab(t, Options{Nodes: 1})
	// A task that leaves its session and ignores signals.
	id, err := c.Submit(t.Context(), "#!/bin/bash\ntrap '' TERM\nsetsid sh -c 'echo $$ >pid; trap \"\" TERM; while :; do sleep 1; done' &\nwait\n")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Dir, "work", "pid")
	var pid int
	for range 200 {
		if b, err := os.ReadFile(file); err == nil && len(b) > 1 {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if pid == 0 {
		t.Fatalf("job %s did not start", id)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	waitDead(t, pid)
	gone(t, c.Dir)
	if err := c.Stop(); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
}

func waitDead(t *testing.T, pid int) {
	t.Helper()
	for range 100 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(b, []byte(") Z ")) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d still lives", pid)
}

func TestConf(t *testing.T) {
	c := startLab(t, Options{
		Nodes: 2, GPUsPerNode: -1, NodePrefix: "cpu",
		Conf:      []string{"MaxArraySize=17"},
		Plugstack: []string{"optional spank_none_such.so"},
		Files:     map[string]string{"prolog.sh": "#!/bin/sh\necho export FROM_PROLOG=yes\n"},
	})
	if got := strings.Join(c.Nodes, " "); got != "cpu1 cpu2" {
		t.Errorf("nodes %s", got)
	}
	st, err := os.Stat(filepath.Join(c.Dir, "prolog.sh"))
	if err != nil || st.Mode()&0o111 == 0 {
		t.Errorf("prolog.sh: %v %v", st, err)
	}
	if out, err := c.Command(t.Context(), "scontrol", "show", "config").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("MaxArraySize            = 17")) {
		t.Errorf("MaxArraySize was not set: %v\n%s", err, out)
	}
	if _, err := c.Command(t.Context(), "srun", "--gres=gpu:1", "true").CombinedOutput(); err == nil {
		t.Error("a cluster without GPUs granted one")
	}
}

func TestConfReplaces(t *testing.T) {
	c := config{Options: Options{Conf: []string{"KillWait=30", "MaxArraySize=10"}}}
	c.defaults()
	s := c.slurmConf()
	if strings.Contains(s, "KillWait=2\n") || !strings.Contains(s, "KillWait=30\n") || !strings.Contains(s, "MaxArraySize=10\n") {
		t.Errorf("the caller's line does not replace the lab's:\n%s", s)
	}
}

// buildLab builds the command into a folder that every user can read.
func buildLab(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ncclinic-labtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	bin := filepath.Join(dir, "lab")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/lab").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// TestOrdinaryUser starts the whole cluster under a user id that owns nothing.
func TestOrdinaryUser(t *testing.T) {
	need(t)
	if os.Getuid() != 0 {
		t.Log("this process is an ordinary user already: TestStart has shown it")
		return
	}
	bin := buildLab(t)
	cmd := exec.CommandContext(t.Context(), bin, "run", "-nodes", "2", "--", "srun", "-N2", "--gres=gpu:2", "sh", "-c", `echo "$(id -u) $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"`)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"65534 n1 0,1\n", "65534 n2 0,1\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
}

// TestCrash kills the starter, and then the starter and the reaper, as hard as
// it can be done.
func TestCrash(t *testing.T) {
	need(t)
	bin := buildLab(t)
	run := func() (*exec.Cmd, string) {
		t.Helper()
		cmd := exec.Command(bin, "run", "-nodes", "1", "--", "sh", "-c", `echo "$NCCLINIC_LAB"; exec srun sleep 600`)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 200)
		n, err := out.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		dir := strings.TrimSpace(string(buf[:n]))
		if !strings.Contains(dir, Prefix) {
			t.Fatalf("the command runs without the lab's mark: %q", dir)
		}
		return cmd, dir
	}

	cmd, dir := run()
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, dir)

	cmd, dir = run()
	for _, pid := range children(t, cmd.Process.Pid) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(b, []byte("reap.sh")) {
			syscall.Kill(pid, syscall.SIGKILL)
			for _, sub := range children(t, pid) { // its cat
				syscall.Kill(sub, syscall.SIGKILL)
			}
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the reaper was not killed: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := Sweep(ctx); err != nil {
		t.Error(err)
	}
	gone(t, dir)
}

func children(t *testing.T, pid int) []int {
	t.Helper()
	var kids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(s)
			kids = append(kids, n)
		}
	}
	return kids
}

// TestTwo runs two labs side by side; the end of one leaves the other alone.
func TestTwo(t *testing.T) {
	a := startLab(t, Options{Nodes: 1})
	b := startLab(t, Options{Nodes: 1})
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := b.Command(t.Context(), "srun", "true").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestStartFails(t *testing.T) {
	need(t)
	_, err := Start(t.Context(), Options{Nodes: 1, Conf: []string{"SelectType=select/none_such"}, StartTimeout: 20 * time.Second})
	if err == nil {
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), "none_such") {
		t.Errorf("the error does not quote the log: %v", err)
	}
}

func TestDownRefuses(t *testing.T) {
	for _, dir := range []string{"/", "/tmp", "ncclinic-lab-1", t.TempDir()} {
		if err := Down(dir); err == nil {
			t.Errorf("Down(%q) did not refuse", dir)
		}
	}
}
