package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab"
)

// accounted is a cluster with accounting, memory cgroups and preemption. Tests of
// jobs share it.
func accounted(t *testing.T) *lab.Cluster {
	t.Helper()
	if m := append(lab.Missing(), lab.MissingAccounting()...); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh packages")
	}
	o := lab.Options{Nodes: 4, Accounting: true, Memory: lab.MissingMemory() == "", Conf: []string{
		"PreemptType=preempt/partition_prio", "PreemptMode=CANCEL", "SlurmdTimeout=10", "EnforcePartLimits=NO",
		"PartitionName=gpu Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP PriorityTier=5 PreemptMode=OFF",
		"PartitionName=low Nodes=n[1-4] MaxTime=INFINITE State=UP PriorityTier=1",
		"PartitionName=high Nodes=n[1-4] MaxTime=INFINITE State=UP PriorityTier=10",
		"PartitionName=short Nodes=n[1-4] MaxTime=1 State=UP PriorityTier=1"}}
	c, err := lab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// jobReport is what the tests read of a report.
type jobReport struct {
	Verdict  string
	Cause    *string
	Subject  struct{ Kind, Name string }
	Findings []struct {
		ID, Role, Certainty string
		Evidence            []struct{ Path, Excerpt string }
		Where               []struct{ Node string }
		Fixes               []struct{ Commands []string }
	}
	Problems []struct{ What, Why string }
	Job      struct {
		ID    string
		State struct{ V string }
		Steps []struct{ ID, State string }
	}
}

func (r *jobReport) cause() string {
	if r.Cause == nil {
		return ""
	}
	return *r.Cause
}

// explainJob runs "ncclinic job" and reads its report.
func explainJob(t *testing.T, c *lab.Cluster, args ...string) (jobReport, int) {
	t.Helper()
	cmd := c.Command(t.Context(), program, append([]string{"job", "--format", "json", "--lang", "en"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var rep jobReport
	if e := json.Unmarshal(out, &rep); e != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, errs.String())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return rep, exit.ExitCode()
	}
	return rep, 0
}

// ended waits until accounting knows how a job and its steps ended.
func ended(t *testing.T, c *lab.Cluster, id string) {
	t.Helper()
	if _, err := c.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for {
		out, _ := c.Command(t.Context(), "sacct", "-n", "-P", "-j", id, "-o", "State").Output()
		if s := string(out); len(s) > 0 && !strings.Contains(s, "RUNNING") && !strings.Contains(s, "PENDING") {
			return
		}
		wait(t, 100*time.Millisecond)
	}
}

// state waits until a job is in a state.
func state(t *testing.T, c *lab.Cluster, id, want string) {
	t.Helper()
	for {
		out, err := c.Command(t.Context(), "scontrol", "-o", "show", "job", id).Output()
		if err == nil && strings.Contains(string(out), "JobState="+want+" ") {
			return
		}
		wait(t, 50*time.Millisecond)
	}
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(d):
	}
}

// TestDeadJobs: jobs that die in real ways, each explained by its number.
func TestDeadJobs(t *testing.T) {
	debian(t)
	c := accounted(t)
	work := filepath.Join(c.Dir, "work")
	write(t, filepath.Join(work, "boom.py"), "import os, sys\nrank = int(os.environ['SLURM_PROCID'])\nprint('rank', rank, 'starts', flush=True)\n"+
		"def step():\n    raise ValueError('rank %d had a bad batch' % rank)\nif rank == 1:\n    step()\nimport time; time.sleep(600)\n")
	write(t, filepath.Join(work, "nccl.py"), "import torch.distributed as dist\nprint('before', flush=True)\ndist.init_process_group('nccl')\n")
	write(t, filepath.Join(work, "hidden.py"), "raise RuntimeError('nobody sees my status')\n")
	submit := func(t *testing.T, script string, args ...string) string {
		t.Helper()
		id, err := c.Submit(t.Context(), script, args...)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	// The time limit takes longest: a minute is the least that Slurm counts.
	limited := submit(t, "#!/bin/bash\n#SBATCH -J 'a long name' -t 1 -o out-%x-%j-%N.log\necho begin\nsrun --output=step-%t-%N.out bash -c 'echo hi; sleep 300'\n", "-w", "n1")

	t.Run("oom", func(t *testing.T) {
		if why := lab.MissingMemory(); why != "" {
			testenv.Need(t, why, "a machine with memory cgroups of version 1")
		}
		id := submit(t, "#!/bin/bash\n#SBATCH -n2 --mem=80M\nsrun --label /usr/bin/python3 -c 'import os, time\nprint(\"up\", flush=True)\n"+
			"x = [bytearray(1 << 20) for _ in range(400)] if os.environ[\"SLURM_PROCID\"] == \"1\" else 0\ntime.sleep(5)'\n", "-w", "n2")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "host-out-of-memory" || code != 1 || rep.Findings[0].Certainty != "proven" {
			t.Errorf("%d, %s, %+v", code, rep.cause(), rep.Findings)
		}
		if s := rep.Findings[0].Evidence[0].Excerpt; !strings.Contains(s, "OUT_OF_MEMORY") {
			t.Errorf("the first evidence is %q", s)
		}
	})
	t.Run("exception", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=1 -o logs-%j/job.out\nsrun --kill-on-bad-exit=1 -o rank-%j-%t.log -e rank-%j-%t.log /usr/bin/python3 boom.py\n",
			"-w", "n[2-3]", "-o", "boom-%j.out")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "run-exception" || code != 1 {
			t.Fatalf("%d, %s, %+v", code, rep.cause(), rep)
		}
		if e := rep.Findings[0].Evidence; !strings.HasSuffix(e[0].Path, "rank-"+id+"-1.log") || !strings.Contains(e[0].Excerpt, "bad batch") {
			t.Errorf("evidence: %+v", e)
		}
	})
	t.Run("nccl", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n#SBATCH -N1 --gres=gpu:2 --ntasks-per-node=2\nexport MASTER_ADDR=localhost MASTER_PORT=29511\n"+
			"srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=2 exec /usr/bin/python3 nccl.py'\n", "-w", "n2")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if code == 0 || rep.Verdict == "ok" || !strings.Contains(fmt.Sprint(rep.Findings), "NCCL") {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("output path", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n#SBATCH -o 'no such folder/%j.out'\necho never\n")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "slurm-output-path" || code != 1 || rep.Findings[0].Certainty != "proven" {
			t.Fatalf("%d, %+v", code, rep)
		}
		if cmds := fmt.Sprint(rep.Findings[0].Fixes); !strings.Contains(cmds, "mkdir -p '"+filepath.Join(work, "no such folder")+"'") {
			t.Errorf("fixes: %s", cmds)
		}
	})
	t.Run("array", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n#SBATCH -a 0-3 -o arr-%A_%a.out\n[ $SLURM_ARRAY_TASK_ID = 2 ] || exit 0\n/usr/bin/python3 -c 'raise KeyError(\"task two\")'\n")
		for k := range 4 {
			ended(t, c, fmt.Sprintf("%s_%d", id, k))
		}
		for _, name := range []string{id, id + "_2"} {
			rep, code := explainJob(t, c, name)
			if rep.cause() != "run-exception" || code != 1 || rep.Subject.Name != id+"_2" || rep.Subject.Kind != "job" {
				t.Errorf("%s: %d, %+v", name, code, rep)
			}
		}
		if rep, code := explainJob(t, c, id+"_1"); code != 0 || rep.Verdict != "ok" || rep.Subject.Name != id+"_1" {
			t.Errorf("a task that ended well: %d, %+v", code, rep)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\necho up\nsleep 600\n")
		state(t, c, id, "RUNNING")
		if out, err := c.Command(t.Context(), "scancel", id).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "job-cancelled" || code != 1 || rep.Findings[0].Certainty != "proven" {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("preempted", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\necho up\nsrun sleep 600\n", "-p", "low", "-w", "n3", "--exclusive", "--no-requeue")
		state(t, c, id, "RUNNING")
		submit(t, "#!/bin/bash\nexit 0\n", "-p", "high", "-w", "n3", "--exclusive")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "job-preempted" || code != 1 || rep.Findings[0].Certainty != "proven" {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("status hidden", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n#SBATCH -N1\n/usr/bin/python3 hidden.py\necho finished\n")
		ended(t, c, id)
		rep, _ := explainJob(t, c, id)
		if rep.Job.State.V != "COMPLETED" || rep.cause() != "run-exception" {
			t.Errorf("%+v", rep)
		}
	})
	t.Run("status hidden in a step", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=1\nsrun bash -c '/usr/bin/python3 hidden.py; sleep 1'\n")
		// The second program prints the same and goes on.
		write(t, filepath.Join(work, "printed.py"), "import traceback\ntry:\n    raise RuntimeError('nobody needs this')\nexcept RuntimeError:\n    traceback.print_exc()\nfor i in range(30):\n    print('wrote a shard of the index', flush=True)\n")
		on := submit(t, "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=1\nsrun bash -c '/usr/bin/python3 printed.py; sleep 1'\n")
		ended(t, c, id)
		ended(t, c, on)
		rep, code := explainJob(t, c, id)
		if rep.Job.State.V != "COMPLETED" || rep.cause() != "run-exception" || code != 1 {
			t.Errorf("%d, %+v", code, rep)
		}
		if rep, code := explainJob(t, c, on); rep.Verdict != "ok" || code != 0 {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("a name that speaks for Slurm", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\n/usr/bin/python3 hidden.py\n", "-J", "x\n   UserId=nobody(65534) GroupId=nogroup(65534)\n   JobState=COMPLETED Reason=None\n   Comment=y", "--comment", "c\n   StdOut=/etc/passwd\n   UserId=nobody(65534)", "-o", "spoken-%j.out")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.Job.State.V != "FAILED" || rep.cause() != "run-exception" || code != 1 || strings.Contains(fmt.Sprint(rep), "nobody(") {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("requeued", func(t *testing.T) {
		// Both runs are in one file: the last one counts.
		id := submit(t, "#!/bin/bash\n#SBATCH --requeue --open-mode=append -o req-%j.log\nif [ -z \"$SLURM_RESTART_COUNT\" ]; then\n"+
			"/usr/bin/python3 -c 'raise KeyError(\"first\")'\nscontrol requeue $SLURM_JOB_ID\nsleep 60\nfi\n/usr/bin/python3 -c 'raise IndexError(\"second\")'\n")
		for { // it was pending before the first run too
			if b, err := os.ReadFile(filepath.Join(work, "req-"+id+".log")); err == nil && strings.Contains(string(b), "KeyError") {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("the first run wrote nothing")
			}
			time.Sleep(100 * time.Millisecond)
		}
		state(t, c, id, "PENDING")
		// Slurm waits for two minutes before it runs a requeued job again. Hurried,
		// it may start it while the node still ends the first run, and fail.
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if s := fmt.Sprint(rep.Findings[0].Evidence); rep.cause() != "run-exception" || code != 1 || !strings.Contains(s, "IndexError") || strings.Contains(s, "KeyError") {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("output of a step elsewhere", func(t *testing.T) {
		if err := os.Mkdir(filepath.Join(work, "runs"), 0o755); err != nil {
			t.Fatal(err)
		}
		id := submit(t, "#!/bin/bash\ncd runs\nsrun -o step-%s-%t.txt /usr/bin/python3 -c 'raise TypeError(\"in a step\")'\n")
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "run-exception" || code != 1 || !strings.HasSuffix(rep.Findings[0].Evidence[0].Path, "work/runs/step-0-0.txt") {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("program missing", func(t *testing.T) {
		type want struct{ id, cause string }
		var jobs []want
		const gone, other = "env-not-activated", "env-program-missing"
		for _, x := range []struct{ cause, script string }{
			{gone, "accelerate launch t.py"}, {gone, "#SBATCH -n1\naccelerate launch t.py"}, {gone, "srun accelerate launch t.py"},
			{gone, "#SBATCH -n2\nsrun --label bash -c 'accelerate launch t.py'"}, {gone, "env accelerate launch t.py"}, {gone, "exec accelerate launch t.py"},
			{gone, "accelerate launch t.py 2>&1 | tee acc.log"}, {gone, "accelerate launch t.py\necho finished"},
			{other, "mytrain"}, {other, "srun mytrain"}, {other, "/opt/nowhere/bin/python t.py"}, {other, "srun /opt/nowhere/bin/python t.py"}, {other, "/usr/bin/python3 nowhere.py"},
			{"", "neofetch\nsrun true"}, {"run-exception", "/usr/bin/python3 -c 'f()' | tee f.log"},
		} {
			jobs = append(jobs, want{submit(t, "#!/bin/bash\n"+x.script+"\n"), x.cause})
		}
		for _, wrap := range []string{"accelerate launch t.py", "srun accelerate launch t.py", "accelerate launch t.py; echo finished"} {
			out, err := c.Command(t.Context(), "sbatch", "--parsable", "--wrap", wrap).Output()
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, want{strings.TrimSpace(string(out)), gone})
		}
		for _, j := range jobs {
			ended(t, c, j.id)
			rep, _ := explainJob(t, c, j.id)
			if rep.cause() != j.cause || j.cause != "" && rep.Findings[0].Certainty != "proven" {
				t.Errorf("job %s: %q, want %q: %+v", j.id, rep.cause(), j.cause, rep)
			}
		}
	})
	t.Run("well", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\nset -e\nsrun echo fine\n")
		ended(t, c, id)
		if rep, code := explainJob(t, c, id); code != 0 || rep.Verdict != "ok" {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("never starts", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\necho x\n", "-p", "short", "-t", "60")
		rep, code := explainJob(t, c, id)
		for range 100 {
			if rep.cause() != "" {
				break
			}
			wait(t, 100*time.Millisecond)
			rep, code = explainJob(t, c, id)
		}
		if rep.cause() != "slurm-request-impossible" || code != 1 {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("waits", func(t *testing.T) {
		bad := submit(t, "#!/bin/bash\nexit 1\n")
		ended(t, c, bad)
		held := submit(t, "#!/bin/bash\ntrue\n", "--hold")
		waits := submit(t, "#!/bin/bash\ntrue\n", "--begin=now+1hour", "-a", "1-4")
		never := submit(t, "#!/bin/bash\ntrue\n", "-d", "afterok:"+bad)
		defer func() { _ = c.Command(t.Context(), "scancel", held, waits, never).Run() }()
		// The scheduler says why a job waits when it comes around to it.
		for job, reason := range map[string]string{never: "DependencyNeverSatisfied", waits: "BeginTime"} {
			for {
				out, _ := c.Command(t.Context(), "scontrol", "show", "job", job).Output()
				if strings.Contains(string(out), "Reason="+reason) {
					break
				}
				wait(t, 100*time.Millisecond)
			}
		}
		for _, x := range []struct {
			id, cause, fix string
			code           int
		}{{held, "job-held", "scontrol release " + held, 1}, {never, "job-dependency-failed", "ncclinic job " + bad, 1}, {waits, "", "", 0}} {
			rep, code := explainJob(t, c, x.id)
			if rep.cause() != x.cause || code != x.code || x.cause != "" && !strings.Contains(fmt.Sprint(rep.Findings[0].Fixes), x.fix) {
				t.Errorf("%s: %d, %+v", x.id, code, rep)
			}
			if x.id == waits && (len(rep.Findings) != 1 || rep.Findings[0].ID != "job-waits" || rep.Job.ID != waits+"_[1-4]") {
				t.Errorf("%+v", rep)
			}
		}
		// A step names its job; the cluster may be told.
		rep, code := explainJob(t, c, bad+".batch", "-M", c.Name)
		if code != 3 || rep.Job.ID != bad || !strings.Contains(fmt.Sprint(rep.Problems), "the whole job is explained") {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("hostile name", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\necho x\nexit 3\n", "-J", "evil\n1.0\x1b[31m|\x1fx", "-o", "../work/evil-%j.out")
		ended(t, c, id)
		cmd := c.Command(t.Context(), program, "job", id)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 3 || strings.ContainsAny(string(out), "\x1b\x1f") || !strings.Contains(string(out), "evil-"+id+".out") {
			t.Errorf("%s", out)
		}
	})
	t.Run("accounting alone", func(t *testing.T) {
		// Of a job that ends at once accounting may never hear the beginning.
		id := submit(t, "#!/bin/bash\nuntil [ -e known ]; do sleep 0.1; done\n/usr/bin/python3 -c 'raise OSError(\"a\")'\n", "-o", "alone-%j.out")
		for {
			out, _ := c.Command(t.Context(), "sacct", "-X", "-n", "-P", "-j", id, "-o", "WorkDir").Output()
			if strings.HasPrefix(string(out), "/") {
				break
			}
			wait(t, 100*time.Millisecond)
		}
		write(t, filepath.Join(work, "known"), "")
		ended(t, c, id)
		bin := t.TempDir()
		link(t, "/usr/bin/sacct", filepath.Join(bin, "sacct"))
		cmd := c.Command(t.Context(), program, "job", id, "--format", "json")
		cmd.Env = append(cmd.Env, "PATH="+bin)
		out, _ := cmd.Output()
		var rep jobReport
		if err := json.Unmarshal(out, &rep); err != nil || rep.cause() != "run-exception" || !strings.Contains(string(out), "sacct -B -j") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("no such job", func(t *testing.T) {
		cmd := c.Command(t.Context(), program, "job", "987654")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "987654") {
			t.Errorf("%s", out)
		}
	})
	t.Run("watch", func(t *testing.T) {
		var wg sync.WaitGroup
		wg.Go(func() {
			id := submit(t, "#!/bin/bash\necho up\nsleep 8\n/usr/bin/python3 -c 'raise IndexError(\"late\")'\n")
			if rep, code := explainJob(t, c, "--watch", "--interval", "5s", id); rep.cause() != "run-exception" || code != 1 {
				t.Errorf("%d, %+v", code, rep)
			}
		})
		wg.Go(func() {
			id := submit(t, "#!/bin/bash\necho up\nsleep 600\n")
			rep, code := explainJob(t, c, "--watch", "--interval", "5s", "--silence", "6s", id)
			if rep.cause() != "run-silent" || code != 1 || rep.Verdict != "warning" || rep.Job.State.V != "RUNNING" {
				t.Errorf("%d, %+v", code, rep)
			}
			_ = c.Command(t.Context(), "scancel", id).Run()
		})
		wg.Wait()
	})
	t.Run("node failed", func(t *testing.T) {
		id := submit(t, "#!/bin/bash\nsrun sh -c 'touch up; sleep 600'\n", "-w", "n4", "--no-requeue")
		for {
			if _, err := os.Stat(filepath.Join(work, "up")); err == nil {
				break
			}
			wait(t, 50*time.Millisecond)
		}
		if err := c.KillDaemon("n4"); err != nil {
			t.Fatal(err)
		}
		ended(t, c, id)
		rep, code := explainJob(t, c, id)
		if rep.cause() != "node-failed" || code != 1 || rep.Findings[0].Certainty != "proven" {
			t.Errorf("%d, %+v", code, rep)
		}
	})
	t.Run("time limit", func(t *testing.T) {
		ended(t, c, limited)
		rep, code := explainJob(t, c, limited)
		if rep.cause() != "job-time-limit" || code != 1 || rep.Findings[0].Certainty != "proven" {
			t.Errorf("%d, %+v", code, rep)
		}
		cmd := c.Command(t.Context(), program, "job", "--lang", "zh", limited)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "作业达到时间上限") || !strings.Contains(string(out), "2 个文件") {
			t.Errorf("%s", out)
		}
	})
}

// TestGuard: "ncclinic run" in front of real torch, in real steps.
func TestGuard(t *testing.T) {
	debian(t)
	c := slurm(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := temp(t)
	write(t, filepath.Join(dir, "train.py"), "import os\nimport torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n")
	write(t, filepath.Join(dir, "sum.py"), `import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.tensor([float(os.environ["RANK"])])
dist.all_reduce(x)
print("sum", x.item(), os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"], os.environ["MASTER_ADDR"], flush=True)
dist.destroy_process_group()
`)
	write(t, filepath.Join(dir, "fail.py"), `import os, sys, time
r = int(os.environ["SLURM_PROCID"])
for i in range(2000): print("rank %d line %d" % (r, i))
sys.stdout.flush()
if r == 2: raise ValueError("the third rank is bad")
time.sleep(600)
`)
	srun := func(args ...string) (string, string, int) {
		cmd := c.Command(ctx, "srun", args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	t.Run("refused", func(t *testing.T) {
		out, errs, code := srun("-N2", "--ntasks-per-node=2", "--gres=gpu:2", program, "run", "--", "/usr/bin/python3", "train.py")
		if code != 1 || out != "" || strings.Count(errs, "BROKEN") != 1 || strings.Count(errs, "[torch-cpu-build]") != 4 {
			t.Errorf("%d\n%s%s", code, out, errs)
		}
	})
	t.Run("warned", func(t *testing.T) {
		out, errs, code := srun("-N1", "--gres=gpu:1", program, "run", "--warn-only", "--", "/usr/bin/python3", "-c", "import torch; print(torch.__version__)")
		if code != 0 || out == "" || !strings.Contains(errs, "torch-cpu-build") {
			t.Errorf("%d\n%s%s", code, out, errs)
		}
	})
	t.Run("without torch", func(t *testing.T) {
		out, errs, code := srun("-N1", "--gres=gpu:1", program, "run", "--", "/bin/sh", "-c", "echo hello; exit 7")
		if code != 7 || out != "hello\n" || strings.Contains(errs, "ncclinic") && !strings.Contains(errs, "going on") {
			t.Errorf("%d\n%s%s", code, out, errs)
		}
	})
	t.Run("env", func(t *testing.T) {
		out, errs, code := srun("-N2", "--ntasks-per-node=2", program, "run", "--env", "--", "/bin/sh", "-c", "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR")
		for _, want := range []string{"0/4 0/2 n1\n", "1/4 1/2 n1\n", "2/4 0/2 n1\n", "3/4 1/2 n1\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %d\n%s%s", want, code, out, errs)
			}
		}
		// The nodes of the lab are one host, whose names do not resolve: what is set stays.
		out, errs, code = srun("-N2", "--ntasks-per-node=2", "--export=ALL,MASTER_ADDR=127.0.0.1,GLOO_SOCKET_IFNAME=lo", program, "run", "--env", "--", "/usr/bin/python3", "sum.py")
		if code != 0 || strings.Count(out, "sum 6.0 0 2 127.0.0.1\n") != 2 || strings.Count(out, "sum 6.0 1 2 127.0.0.1\n") != 2 {
			t.Errorf("%d\n%s%s", code, out, errs)
		}
	})
	t.Run("env outside of a step", func(t *testing.T) {
		cmd := c.Command(ctx, program, "run", "--lang", "en", "--env", "--", "/bin/sh", "-c", "echo [$RANK]")
		out, err := cmd.CombinedOutput()
		if s := string(out); err != nil || !strings.Contains(s, "[]\n") || !strings.Contains(s, "--env set nothing") || !strings.Contains(s, "RANK WORLD_SIZE") {
			t.Errorf("%v\n%s", err, s)
		}
	})
	t.Run("script by its name", func(t *testing.T) {
		write(t, filepath.Join(dir, "own.py"), "#!/usr/bin/python3\nimport torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n")
		for _, args := range [][]string{{"./own.py"}, {"/usr/bin/python3", "-m", "own"}} {
			out, errs, code := srun(append([]string{"-N1", "--gres=gpu:1", program, "run", "--"}, args...)...)
			if code != 1 || out != "" || !strings.Contains(errs, "[torch-cpu-build]") || strings.Contains(errs, "from --python") {
				t.Errorf("%v: %d\n%s%s", args, code, out, errs)
			}
		}
	})
	t.Run("killed", func(t *testing.T) {
		for script, want := range map[string]string{
			"kill -9 $$": "killed by signal 9 (SIGKILL): sent to this command alone",
			"scancel --signal=TERM $SLURM_JOB_ID.$SLURM_STEP_ID; sleep 60": "killed by signal 15 (SIGTERM): Slurm ended the step",
			"kill -TERM $PPID; sleep 60; true":                             "killed by signal 15 (SIGTERM): the process bash sent it to ncclinic run",
		} {
			out, errs, code := srun("-N1", "-n1", program, "run", "--lang", "en", "--explain", "--", "/bin/bash", "-c", script)
			if code == 0 || out != "" || strings.Count(errs, want) != 1 {
				t.Errorf("%s: %d\n%s%s", script, code, out, errs)
			}
		}
	})
	t.Run("explained once", func(t *testing.T) {
		out, errs, code := srun("-N2", "--ntasks-per-node=2", "--kill-on-bad-exit=1", program, "run", "--explain", "--", "/usr/bin/python3", "fail.py")
		if code == 0 || strings.Count(errs, "BROKEN") != 1 || !strings.Contains(errs, "the third rank is bad") || !strings.Contains(errs, "run-exception") {
			t.Errorf("%d\n%s", code, errs)
		}
		for r := range 4 {
			if n := strings.Count(out, fmt.Sprintf("rank %d line ", r)); n != 2000 {
				t.Errorf("%d lines of rank %d arrived", n, r)
			}
		}
	})
	// srun ends before the controller has heard of the end of its step.
	for deadline := time.Now().Add(time.Minute); ; wait(t, 100*time.Millisecond) {
		left, _ := c.Command(ctx, "squeue", "--steps", "--noheader").Output()
		s := strings.TrimSpace(string(left))
		if s != "" && time.Now().Before(deadline) {
			continue
		}
		if s != "" {
			t.Errorf("steps are left: %s", s)
		}
		break
	}
	if out, err := exec.CommandContext(ctx, "pgrep", "-f", filepath.Join(dir, "fail.py")).Output(); err == nil {
		t.Errorf("processes are left: %s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "cache", "ncclinic", "run")); err != nil {
		t.Errorf("no marks: %v", err)
	}
}
