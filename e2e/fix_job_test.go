package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab"
)

// TestFixJob: on a login node, with nothing but the number of a dead job, the plan
// is about the interpreter that the job ran; its commands, run by real pip, mend
// the environment, and the next job goes through.
func TestFixJob(t *testing.T) {
	if m := lab.Missing(); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh packages")
	}
	c, err := lab.Start(t.Context(), lab.Options{Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	l := newFixLab(t)
	for _, d := range []string{l.dir, filepath.Dir(l.dir)} { // jobs run as another user
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, py := l.venv("job", false)
	l.must("chmod 777 " + dir)
	l.must(py + " -m pip install -q 'torch==2.6.0+cpu' --index-url https://download.pytorch.org/whl/cpu")
	// The stand-in raises torch's own error from the file of torch that raises it.
	stub := `def init_process_group(backend=None, **kw):
    from . import distributed_c10d
    distributed_c10d.init_process_group(backend)
`
	c10d := `from torch.version import cuda
def _new_process_group_helper(backend):
    if backend == "nccl" and not cuda:
        raise RuntimeError("Distributed package doesn't have NCCL built in")
def init_process_group(backend):
    _new_process_group_helper(backend)
`
	site := filepath.Join(dir, "venv/lib/python3.11/site-packages/torch/distributed")
	patch := func() {
		write(t, filepath.Join(site, "distributed_c10d.py"), c10d)
		f := filepath.Join(site, "__init__.py")
		l.must("grep -q 'def init_process_group' " + f + " || cat >> " + f + " <<'END'\n" + stub + "END")
	}
	patch()
	write(t, filepath.Join(dir, "train.py"), "import torch.distributed as dist\ndist.init_process_group('nccl')\nprint('trained')\n")
	script := "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --gres=gpu:1\n#SBATCH --output=" + dir + "/%j.out\nexport PATH=" + dir + "/venv/bin:$PATH\nsrun python " + dir + "/train.py\n"
	j, err := c.Run(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	fix := func(id string, more ...string) (string, int) {
		cmd := c.Command(t.Context(), program, append([]string{"fix", id, "--driver", "550.54.15", "--gpu", "A100"}, more...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if _, ok := err.(*exec.ExitError); err != nil && !ok {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := fix(j.ID)
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"FIX torch 2.6.0+cu124", "[torch-cpu-build]", "for Python 3.11", "now torch 2.6.0+cpu", py + " -m pip install 'torch==2.6.0+cu124'", "ncclinic check --python " + py} {
		if code != 1 || !strings.Contains(flat, want) {
			t.Fatalf("exit %d, no %q:\n%s", code, want, out)
		}
	}
	sh, code := fix(j.ID, "--format", "sh")
	if code != 1 {
		t.Fatalf("exit %d\n%s", code, sh)
	}
	write(t, filepath.Join(dir, "fix.sh"), sh)
	if out, code := l.sh(dir, "sh fix.sh"); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out, sh)
	}
	patch()
	again, err := c.Run(t.Context(), script)
	if err != nil || again.State != "COMPLETED" {
		t.Errorf("after the fix: %+v %v", again, err)
	}
	if out, code := fix("999999"); code != 2 {
		t.Errorf("a job that is not there: exit %d\n%s", code, out)
	}
}
