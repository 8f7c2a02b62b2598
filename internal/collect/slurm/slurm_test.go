package slurm

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// machine has a recorded environment and the files given as path, text pairs.
func machine(t *testing.T, env string, files ...string) *source.Machine {
	t.Helper()
	m := &source.Machine{Env: map[string]string{}}
	if !strings.Contains(env, "=") {
		raw, err := os.ReadFile("testdata/" + env + ".env")
		if err != nil {
			t.Fatal(err)
		}
		env = string(raw)
	}
	for _, l := range strings.Split(env, "\n") {
		if k, v, ok := strings.Cut(l, "="); ok {
			m.Env[k] = v
		}
	}
	fsys := fstest.MapFS{}
	for i := 0; i+1 < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	m.FS = fsys
	return m
}

func slurm(t *testing.T, m *source.Machine) *fact.Slurm {
	t.Helper()
	b := &fact.Bundle{}
	if err := Context(context.Background(), m, b); err != nil {
		t.Fatal(err)
	}
	return &b.Slurm
}

const host, cgroup = "proc/sys/kernel/hostname", "proc/self/cgroup"

func TestRealEnvironments(t *testing.T) {
	type want struct {
		job, where, step string
		gpus             int // -1: Absent, -2: NotLooked
		nodes, jobNodes  int
		tasks, here      int
		cpus             int
	}
	for name, w := range map[string]want{
		"batch":      {"1", "batch", "", 2, 2, 2, 2, 0, 2},
		"step":       {"1", "step", "0", 1, 2, 2, 2, 1, 2},
		"nogpu":      {"1", "step", "1", -1, 1, 2, 1, 1, 2},
		"exportnone": {"1", "step", "2", 2, 1, 2, 1, 1, 2},
		"salloc":     {"2", "interactive", "", -2, 1, 1, 1, 0, 0},
		"srun":       {"3", "step", "0", -1, 1, 1, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := slurm(t, machine(t, name, host, "n1.cluster\n"))
			got := want{s.Job.V, s.Where, s.Step.V, s.GPUsGranted.V, s.Nodes.V, s.JobNodes.V, s.Tasks.V, s.TasksHere.V, s.CPUsPerTask.V}
			switch {
			case s.GPUsGranted.IsAbsent():
				got.gpus = -1
			case !s.GPUsGranted.Looked():
				got.gpus = -2
			}
			if got != w {
				t.Errorf("got %+v, want %+v", got, w)
			}
			if s.Stale.IsKnown() {
				t.Errorf("stale: %+v", s.Stale)
			}
		})
	}
}

func TestIsItThisJob(t *testing.T) {
	const one = "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[1-2]\nSLURMD_NODENAME=n1\nSLURM_TASK_PID=400\nSLURM_STEP_ID=0\nSLURM_GPUS_ON_NODE=4\n"
	for _, tt := range []struct {
		name, env string
		files     []string
		state     fact.State
		job       string
		where     string
		stale     bool
	}{
		{"nothing", "A=b", []string{host, "login1"}, fact.Absent, "", "", false},
		{"id alone, exported in a login shell", "SLURM_JOB_ID=7", []string{host, "login1"}, fact.Absent, "", "", true},
		{"host is the node", one, []string{host, "n1"}, fact.Known, "7", "step", false},
		{"names with and without domain", one, []string{host, "N1.cluster.example"}, fact.Known, "7", "step", false},
		{"node has another host name, but Slurm's task is an ancestor", one, []string{host, "vm", "proc/self/stat", "500 (a) b) S 450 1 1", "proc/450/stat", "450 (sh) S 400 1 1"}, fact.Known, "7", "step", false},
		{"cgroup v2", one, []string{host, "vm", cgroup, "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"}, fact.Known, "7", "step", false},
		{"cgroup v1, batch", one, []string{host, "vm", cgroup, "4:memory:/slurm/uid_1/job_7/step_batch/task_0\n0::/\n"}, fact.Known, "7", "batch", false},
		{"another host, nothing of Slurm above", one, []string{host, "login1", "proc/self/stat", "500 (sh) S 450 1 1", "proc/450/stat", "450 (sshd) S 1 1 1"}, fact.Failed, "", "", true},
		{"the cgroup says another job", one, []string{host, "n1", cgroup, "0::/system.slice/slurmstepd.scope/job_8/step_1/user/task_0\n"}, fact.Known, "8", "step", true},
		{"adopted login without variables", "HOME=/h", []string{host, "n1", cgroup, "0::/system.slice/slurmstepd.scope/job_8/step_extern/user\n"}, fact.Known, "8", "extern", false},
		{"not an id", "SLURM_JOB_ID=$(id)", []string{host, "n1"}, fact.Failed, "", "", false},
		{"interactive step", strings.Replace(one, "STEP_ID=0", "STEP_ID=4294967290", 1), []string{host, "n1"}, fact.Known, "7", "interactive", false},
		{"a loop of parents", one, []string{host, "x", "proc/self/stat", "5 (a) S 6 1", "proc/6/stat", "6 (b) S 6 1"}, fact.Failed, "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := slurm(t, machine(t, tt.env, tt.files...))
			if s.Job.State != tt.state || s.Job.V != tt.job || s.Where != tt.where || s.Stale.IsKnown() != tt.stale {
				t.Errorf("job %+v, where %q, stale %+v", s.Job, s.Where, s.Stale)
			}
		})
	}
}

func TestNoDevFiles(t *testing.T) {
	s := slurm(t, machine(t, "SLURM_JOB_ID=7\nSLURMD_NODENAME=n1\nSLURM_STEP_ID=0\nCUDA_VISIBLE_DEVICES=NoDevFiles", host, "n1"))
	if !s.GPUsGranted.IsAbsent() || s.GPUsGranted.At.Path != "CUDA_VISIBLE_DEVICES" {
		t.Errorf("%+v", s.GPUsGranted)
	}
}

func TestLists(t *testing.T) {
	for s, want := range map[string]int{"0": 1, "0,1": 2, "0,2-5": 5, "": 0, "a": 0, "3-1": 0, "0-9999999": 0, "-1": 0} {
		if n, ok := countList(s); n != want && ok || ok != (want > 0) {
			t.Errorf("%q: %d %v", s, n, ok)
		}
	}
	for _, tt := range []struct {
		list    string
		node, n int
		ok      bool
	}{{"2(x3),1", 0, 2, true}, {"2(x3),1", 3, 1, true}, {"2(x3),1", 4, 0, false}, {"4", 0, 4, true}, {"x", 0, 0, false}, {"1", -1, 0, false}} {
		if n, ok := nthTasks(tt.list, tt.node); n != tt.n || ok != tt.ok {
			t.Errorf("%q[%d]: %d %v", tt.list, tt.node, n, ok)
		}
	}
}

// answers runs nothing and answers scontrol.
type answers struct {
	res   source.Result
	known map[string]bool
}

func (a answers) LookPath(name string) (string, error) {
	if a.known[name] {
		return "/usr/bin/" + name, nil
	}
	return "", exec.ErrNotFound
}

func (a answers) Run(context.Context, source.Cmd) (source.Result, error) { return a.res, nil }

func TestVersion(t *testing.T) {
	for _, tt := range []struct {
		res   source.Result
		cmds  string
		state fact.State
		v     string
	}{
		{source.Result{Stdout: []byte("slurm-wlm 22.05.8\n")}, "srun scontrol", fact.Known, "22.05.8"},
		{source.Result{Stdout: []byte("slurm 23.11.4\n")}, "srun scontrol", fact.Known, "23.11.4"},
		{source.Result{Stdout: []byte("slurm 24.05.0-rc1")}, "srun scontrol", fact.Known, "24.05.0-rc1"},
		{source.Result{Stdout: []byte("bash: no")}, "srun scontrol", fact.Failed, ""},
		{source.Result{TimedOut: true}, "srun scontrol", fact.Failed, ""},
		{source.Result{}, "", fact.Absent, ""},
		{source.Result{}, "srun", fact.NotLooked, ""},
	} {
		m := machine(t, "A=b")
		known := map[string]bool{}
		for _, c := range strings.Fields(tt.cmds) {
			known[c] = true
		}
		m.Runner = answers{tt.res, known}
		s := slurm(t, m)
		if s.Version.State != tt.state || s.Version.V != tt.v || s.Commands.V != (tt.cmds != "") {
			t.Errorf("%+v: %+v", tt, s.Version)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", 1)
	f.Add("500 (a) b) S 450 1 1", 0)
	f.Add("2(x3),1", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		start := time.Now()
		parseCgroup(s)
		parseStat(s)
		nthTasks(s, n)
		countList(s)
		if time.Since(start) > 5*time.Second {
			t.Fatal("slow")
		}
	})
}
