package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// trainPy is a whole training script in small: it joins a process group and
// adds up the ranks.
const trainPy = `import os, sys
import torch, torch.distributed as dist
dist.init_process_group(sys.argv[1], rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
x = torch.ones(4) * (dist.get_rank() + 1)
dist.all_reduce(x)
print("sum", x.tolist(), "on", os.environ["SLURMD_NODENAME"], flush=True)
dist.destroy_process_group()
`

const trainHead = `#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:2
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + SLURM_JOB_ID %% 1000)) GLOO_SOCKET_IFNAME=lo
`

// TestDebianTorchInJob is the case that started the project: a CPU build of
// PyTorch in a job with GPUs.
func TestDebianTorchInJob(t *testing.T) {
	c := slurm(t)
	python := debian(t)
	dir := temp(t)
	write(t, filepath.Join(dir, "train.py"), trainPy)
	job, err := c.Run(t.Context(), fmt.Sprintf(trainHead+`
cd %[1]s
srun --gres=gpu:2 %[2]s train.py nccl >nccl.out 2>&1
echo "nccl ended with $?"
srun --gres=gpu:2 --output=check-%%t.json %[3]s check --format json
echo "check ended with $?"
srun --gres=gpu:2 %[2]s train.py gloo
echo "gloo ended with $?"
`, dir, python, program), "--chdir="+dir)
	if err != nil {
		t.Fatal(err)
	}
	nccl, err := os.ReadFile(filepath.Join(dir, "nccl.out"))
	if err != nil {
		t.Fatalf("%v\n%s", err, job.Output)
	}
	if !strings.Contains(string(nccl), "RuntimeError: Distributed package doesn't have NCCL built in\n") {
		t.Errorf("the program does not raise the error that the check is about:\n%s", nccl)
	}
	for _, want := range []string{"nccl ended with 1\n", "check ended with 1\n", "gloo ended with 0\n"} {
		if !strings.Contains(job.Output, want) {
			t.Errorf("no %q in the job's output:\n%s", want, job.Output)
		}
	}
	if n := strings.Count(job.Output, "sum [3.0, 3.0, 3.0, 3.0] on n"); n != 2 {
		t.Errorf("%d ranks finished all_reduce over gloo, want 2:\n%s", n, job.Output)
	}
	for task := range 2 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("check-%d.json", task)))
		if err != nil {
			t.Fatal(err)
		}
		r := parse(t, b, job.Output)
		if r.Verdict != "broken" || r.cause() != "torch-cpu-build" {
			t.Fatalf("task %d: %s, cause %q, want broken, torch-cpu-build; findings %v", task, r.Verdict, r.cause(), r.ids())
		}
		f := r.top(t)
		if f.Certainty != "proven" {
			t.Errorf("task %d: %s, want proven", task, f.Certainty)
		}
		var version, symbol bool
		for _, e := range f.Evidence {
			version = version || e.Path == debianTorch+"/version.py" && e.Line > 0
			symbol = symbol || strings.Contains(e.Excerpt, "ProcessGroupNCCL")
		}
		if !version || !symbol {
			t.Errorf("task %d: evidence has version.py: %v, the missing symbol: %v\n%+v", task, version, symbol, f.Evidence)
		}
		if len(f.Fixes) == 0 {
			t.Errorf("task %d: no fix", task)
		}
		for _, fix := range f.Fixes {
			for _, cmd := range fix.Commands {
				if strings.Contains(cmd, "install nccl") {
					t.Errorf("a fix installs a package that is not NCCL: %s", cmd)
				}
			}
		}
	}
}

// TestSlurmFacts compares what the program sees of the step with what was asked for.
func TestSlurmFacts(t *testing.T) {
	c := slurm(t)
	out, err := c.Command(t.Context(), "srun", "-N1", "-n1", "--cpus-per-task=3", "--gres=gpu:1", program, "facts").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := decode(t, out).Slurm
	if v, _ := s.GPUsGranted.Get(); v != 1 {
		t.Errorf("GPUs granted: %+v, want 1", s.GPUsGranted)
	}
	if v, _ := s.CPUsPerTask.Get(); v != 3 {
		t.Errorf("CPUs per task: %+v, want 3", s.CPUsPerTask)
	}
	if v, _ := s.NodeName.Get(); !slices.Contains(c.Nodes, v) {
		t.Errorf("node name: %+v", s.NodeName)
	}
	if s.Where != "step" || !s.Job.IsKnown() || !s.Step.IsKnown() {
		t.Errorf("where %q, job %+v, step %+v", s.Where, s.Job, s.Step)
	}
	out, err = c.Command(t.Context(), "sinfo", "--version").Output()
	want := strings.Fields(string(out))
	if err != nil || len(want) == 0 {
		t.Fatalf("sinfo --version: %v %q", err, out)
	}
	if v, ok := s.Version.Get(); ok && v != want[len(want)-1] {
		t.Errorf("Slurm version %s, want %s", v, want[len(want)-1])
	}
}

// TestOutsideOfJob: a machine with Slurm's commands and no job.
func TestOutsideOfJob(t *testing.T) {
	slurm(t)
	s := call{}.facts(t).Slurm
	if !s.Job.IsAbsent() {
		t.Errorf("job: %+v, want absent", s.Job)
	}
	if v, _ := s.Commands.Get(); !v {
		t.Errorf("Slurm's commands: %+v, want true", s.Commands)
	}
}

// TestExportNone: the environment is activated where the job is submitted, and
// --export=NONE drops it.
func TestExportNone(t *testing.T) {
	c := slurm(t)
	debian(t)
	cuda := prefix(t, "cuda")
	dir := temp(t)
	script := filepath.Join(dir, "job.sbatch")
	write(t, script, `#!/bin/bash
command -v python3
python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.origin if s else "none")'
`+program+" check --format json\n")
	submit := func(args ...string) (r report, python, torch string) {
		t.Helper()
		args = append([]string{"--wait", "--gres=gpu:1", "--chdir=" + dir, "--output=" + dir + "/%j.out", "--parsable"}, args...)
		cmd := c.Command(t.Context(), "sbatch", append(args, script)...)
		cmd.Env = append(cmd.Env, "VIRTUAL_ENV="+cuda, "PATH="+cuda+"/bin:"+os.Getenv("PATH"))
		out, _ := cmd.Output() // --wait passes the job's exit status on
		id := strings.TrimSpace(string(out))
		b, err := os.ReadFile(filepath.Join(dir, id+".out"))
		if err != nil {
			t.Fatal(err)
		}
		python, rest, _ := strings.Cut(string(b), "\n")
		torch, rest, _ = strings.Cut(rest, "\n")
		return parse(t, []byte(rest), ""), python, torch
	}
	if r, _, _ := submit(); r.Verdict != "broken" || r.cause() != "gpu-driver-missing" {
		t.Errorf("with the environment: %s, cause %q, want broken, gpu-driver-missing; findings %v", r.Verdict, r.cause(), r.ids())
	}
	// With --export=NONE Slurm starts the job in the user's login environment,
	// so its Python is the first on that PATH, whatever this machine has there.
	// What that Python lacks is proven by what the job sees. That another
	// environment was meant cannot be known from inside: env-not-exported is
	// as good an answer, because Slurm says that the environment was dropped.
	r, python, torch := submit("--export=NONE")
	if strings.HasPrefix(python, cuda) {
		t.Fatalf("--export=NONE kept %s", python)
	}
	truth := "torch-cpu-build"
	switch {
	case torch == "none":
		truth = "torch-not-installed"
	case torch != debianTorch+"/__init__.py":
		testenv.Need(t, "a login environment without a torch of its own, not "+torch, "run the tests as another user")
	}
	if r.cause() != "env-not-exported" && r.cause() != truth {
		t.Errorf("--export=NONE: %s imports torch from %s; cause %q, want env-not-exported or %s; findings %v: %+v", python, torch, r.cause(), truth, r.ids(), r.Findings[0])
	}
}
