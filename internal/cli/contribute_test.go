package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// explainFiles runs explain over files with these contents and returns its report.
func explainFiles(t *testing.T, files map[string]string, flags ...string) (*diag.Report, string) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"explain", "--format", "json"}, flags...)
	var names []string
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		p := filepath.Join(dir, n)
		if err := os.WriteFile(p, []byte(files[n]), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, p)
	}
	var out bytes.Buffer
	code, errs := try(&out, args...)
	if code == exitUsage {
		t.Fatalf("%q: %s", args, errs)
	}
	var rep diag.Report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	return &rep, out.String()
}

const noGPUs = "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 20, in <module>\n    torch.cuda.set_device(0)\nRuntimeError: No CUDA GPUs are available\nsrun: error: n1: task 0: Exited with exit code 1\n"

// TestScriptContributes: errors of the script that explain the failure stand in
// the report, others do not, and none of them changes what the log decides.
func TestScriptContributes(t *testing.T) {
	late := "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\nmodule load cuda\n#SBATCH --gres=gpu:4\n#SBATCH --output=~/x-%j.out\nsrun python train.py\n"
	oom := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB\n"
	undecided := "RuntimeError: Distributed package doesn't have NCCL built in\n"
	pip := "#!/bin/bash\n#SBATCH --nodes=1 --gres=gpu:1\nmodule load cuda\n#SBATCH --time=1:00\npip install torch --index-url https://download.pytorch.org/whl/cpu\nsrun python train.py\n"
	for _, c := range []struct {
		name, log, script, verdict, cause string
		with                              []string
		without                           []string
	}{
		{"explains", noGPUs, late, diag.Broken, "slurm-directive-ignored", []string{"sbatch-after-command"}, []string{"sbatch-var-not-expanded"}},
		{"nothing to do with it", oom, late, diag.Broken, "gpu-out-of-memory", nil, []string{"sbatch-after-command", "sbatch-var-not-expanded"}},
		{"undecided stays so", undecided, pip, diag.Unknown, "", nil, []string{"sbatch-after-command"}},
		{"nothing failed", "Epoch 1/3 loss 0.2\nSaved checkpoint\nTraining complete\n", late, diag.OK, "", nil, []string{"sbatch-after-command"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep, _ := explainFiles(t, map[string]string{"a.out": c.log, "job.sbatch": c.script})
			cause := ""
			if rep.Cause != nil {
				cause = *rep.Cause
			}
			if rep.Verdict != c.verdict || cause != c.cause {
				t.Fatalf("%s %s", rep.Verdict, cause)
			}
			roles := map[string]diag.Role{}
			for _, f := range rep.Findings {
				roles[f.ID] = f.Role
			}
			for _, id := range c.with {
				if roles[id] != diag.Contributing {
					t.Errorf("%s: %q, want contributing", id, roles[id])
				}
			}
			for _, id := range c.without {
				if roles[id] != "" {
					t.Errorf("%s is there", id)
				}
			}
		})
	}
}

// TestPastedScriptContributes: lines of a script that a session shows are those
// of the session, also below blank lines, and secrets of it are masked.
func TestPastedScriptContributes(t *testing.T) {
	paste := "[u@login ~]$ cat job.sbatch\n#!/bin/bash\n#SBATCH -N1 -n1\n\n\nexport HF_TOKEN=$(cat ~/t) API_KEY=hunter2hunter2\n#SBATCH --gres=gpu:4\nsrun --export=NONE,TOKEN=hunter2hunter2 python train.py\n[u@login ~]$ sbatch job.sbatch\nSubmitted batch job 4\n[u@login ~]$ cat slurm-4.out\n" + noGPUs
	rep, raw := explainFiles(t, map[string]string{"paste.txt": paste})
	if strings.Contains(raw, "hunter2") {
		t.Error("a secret is shown")
	}
	if rep.Cause == nil || *rep.Cause != "slurm-directive-ignored" {
		t.Fatalf("%+v", rep.Cause)
	}
	for _, f := range rep.Findings {
		if f.ID == "sbatch-after-command" {
			if f.Where[0].Line != 7 || filepath.Base(f.Where[0].File) != "paste.txt" {
				t.Errorf("%+v", f.Where)
			}
			return
		}
	}
	t.Error("the late directive is not told")
}

// TestExplainRan: every cause has a row, once, that says whether it was found,
// is not there, or could not be seen and why.
func TestExplainRan(t *testing.T) {
	causes, err := (&app{}).load("cause")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/bash\n#SBATCH --nodes=1 --gres=gpu:1\nsrun python train.py\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  map[string]string // rule: status, or reason
	}{
		{"log alone", map[string]string{"a.out": noGPUs}, map[string]string{"slurm-directive-ignored": "no batch script was given", "gpu-not-allocated": "what was given does not decide it",
			"log-no-cuda-gpus-available": "hit", "log-srun-exit-code": "hit", "gpu-out-of-memory": "clean", "net-differs-between-nodes": "what was given does not tell two nodes apart", "nccl-wheels-collide": "no list of packages was given"}},
		{"with script", map[string]string{"a.out": "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 1\n", "job.sbatch": script},
			map[string]string{"slurm-directive-ignored": "clean", "cuda-library-missing": "hit", "sbatch-after-command": "clean"}},
		{"script alone", map[string]string{"job.sbatch": script}, map[string]string{"gpu-out-of-memory": "no log was given"}},
		{"packages", map[string]string{"a.out": noGPUs, "pip.txt": "Package Version\n------- -------\ntorch 2.6.0\nnumpy 2.1.0\nnvidia-nccl-cu12 2.21.5\n"}, map[string]string{"nccl-wheels-collide": "clean"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep, _ := explainFiles(t, c.files)
			got := map[string]string{}
			for _, r := range rep.Ran {
				if _, dup := got[r.Rule]; dup {
					t.Errorf("%s twice", r.Rule)
				}
				got[r.Rule] = r.Status
				if r.Status == diag.Skipped {
					got[r.Rule] = r.Reason
					if !diag.HasReason(r.Reason) {
						t.Errorf("%q has no Chinese words", r.Reason)
					}
				}
			}
			for _, id := range causes.IDs() {
				if got[id] == "" {
					t.Errorf("no row for %s", id)
				}
			}
			for id, want := range c.want {
				if got[id] != want {
					t.Errorf("%s: %q, want %q", id, got[id], want)
				}
			}
			for _, f := range rep.Findings {
				if f.ID != "unknown" && got[f.ID] != "hit" {
					t.Errorf("%s was found and its row says %q", f.ID, got[f.ID])
				}
			}
		})
	}
}
