package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/lab"
)

// truth is a script with a fault, the same without it, and the sign by which
// Slurm shows the harm. FAKE is a folder with a torchrun and a python that say
// where they run.
type truth struct {
	rule       string
	hit, fixed string
	// harm reports whether a run shows the harm; job is zero and err is set
	// when sbatch refused the script.
	harm func(job lab.Job, err error) bool
	sig  string // signal for the batch shell once the job runs
}

const fakeTorchrun = `#!/bin/bash
echo "agent on $SLURMD_NODENAME args $*"
`

const fakePython = `#!/bin/bash
if [ "$1" = slow.py ]; then sleep 4; echo finished; exit; fi
echo "task $SLURM_PROCID on $SLURMD_NODENAME sees [$CUDA_VISIBLE_DEVICES] master [$MASTER_ADDR] rank [$RANK]"
`

func lacks(s string) func(lab.Job, error) bool {
	return func(j lab.Job, err error) bool { return err != nil || !strings.Contains(j.Output, s) }
}

func shows(s string) func(lab.Job, error) bool {
	return func(j lab.Job, err error) bool { return err == nil && strings.Contains(j.Output, s) }
}

func refusedWith(s string) func(lab.Job, error) bool {
	return func(_ lab.Job, err error) bool { return err != nil && strings.Contains(err.Error(), s) }
}

// agents reports whether the launcher did not start exactly once on each of n nodes.
func agents(n int) func(lab.Job, error) bool {
	return func(j lab.Job, err error) bool {
		seen := map[string]int{}
		for _, l := range strings.Split(j.Output, "\n") {
			if rest, ok := strings.CutPrefix(l, "agent on "); ok {
				seen[strings.Fields(rest)[0]]++
			}
		}
		for _, k := range seen {
			if k != 1 {
				return true
			}
		}
		return err != nil || len(seen) != n
	}
}

var truths = []truth{
	{"crlf", "#!/bin/bash\r\n#SBATCH --nodes=1\r\necho ok\r\n", "#!/bin/bash\n#SBATCH --nodes=1\necho ok\n", refusedWith("DOS line breaks"), ""},
	{"shebang-missing", "\n#!/bin/bash\n#SBATCH --nodes=1\necho ok\n", "#!/bin/bash\n#SBATCH --nodes=1\necho ok\n", refusedWith("does not look like a batch script"), ""},
	{"sbatch-after-command", "#!/bin/bash\n#SBATCH --nodes=1\nset -e\n#SBATCH --job-name=late\necho name=$SLURM_JOB_NAME\n",
		"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --job-name=late\nset -e\necho name=$SLURM_JOB_NAME\n", lacks("name=late"), ""},
	{"directive-malformed", "#!/bin/bash\n #SBATCH --nodes=2\necho nodes=$SLURM_NNODES\n", "#!/bin/bash\n#SBATCH --nodes=2\necho nodes=$SLURM_NNODES\n", lacks("nodes=2"), ""},
	{"directive-malformed", "#!/bin/bash\n#SBATCH --nodes = 1\necho ok\n", "#!/bin/bash\n#SBATCH --nodes=1\necho ok\n", refusedWith("sbatch"), ""},
	{"directive-malformed", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --exclusive=yes\necho ok\n", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --exclusive=USER\necho ok\n", refusedWith("exclusive"), ""},
	{"removed-sbatch-option", "#!/bin/bash\n#SBATCH --workdir=/tmp\necho ok\n", "#!/bin/bash\n#SBATCH --chdir=/tmp\n#SBATCH --output=WORK/chdir.out\necho ok\n", refusedWith("unrecognized option"), ""},
	{"sbatch-var-not-expanded", "#!/bin/bash\n#SBATCH --output=~/x-%j.out\necho ok\n", "#!/bin/bash\n#SBATCH --output=WORK/x-%j.out\necho ok\n",
		func(j lab.Job, err error) bool { return err != nil || j.State != "COMPLETED" }, ""},
	{"sbatch-var-not-expanded", "#!/bin/bash\n#SBATCH --nodes=$N\necho ok\n", "#!/bin/bash\n#SBATCH --nodes=1\necho ok\n", refusedWith("node count"), ""},
	{"sbatch-export-list", "#!/bin/bash\n#SBATCH --export=X=1\nexport PATH=FAKE:/usr/bin:/bin\nexport LATER=kept\nsrun bash -c 'echo later=$LATER'\n",
		"#!/bin/bash\n#SBATCH --export=ALL,X=1\nexport PATH=FAKE:/usr/bin:/bin\nexport LATER=kept\nsrun bash -c 'echo later=$LATER'\n", lacks("later=kept"), ""},
	{"ntasks-below-nodes", "#!/bin/bash\n#SBATCH -N 3\n#SBATCH -n 2\necho nodes=$SLURM_NNODES\n", "#!/bin/bash\n#SBATCH -N 3\n#SBATCH -n 3\necho nodes=$SLURM_NNODES\n", lacks("nodes=3"), ""},
	{"nodelist-exceeds-nodes", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --nodelist=n[1-2]\necho list=$SLURM_JOB_NODELIST\n", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --nodelist=n[1-2]\necho list=$SLURM_JOB_NODELIST\n", lacks("list=n[1-2]"), ""},
	{"step-exceeds-allocation", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\nexport PATH=FAKE:$PATH\nsrun -n 8 python train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=8\nexport PATH=FAKE:$PATH\nsrun -n 8 python train.py\n", shows("More processors requested than permitted"), ""},
	{"exclusive-without-gres", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --exclusive\nexport PATH=FAKE:$PATH NCCL_DEBUG=WARN\nsrun -n 1 python train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --exclusive\n#SBATCH --gres=gpu:2\nexport PATH=FAKE:$PATH NCCL_DEBUG=WARN\nsrun -n 1 python train.py\n", shows("sees []"), ""},
	{"gpus-per-task-isolation", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-task=1\nexport PATH=FAKE:$PATH\nsrun python train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-node=2\nexport PATH=FAKE:$PATH\nsrun python train.py\n", lacks("sees [0,1]"), ""},
	{"torchrun-per-gpu-task", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gres=gpu:2\nexport PATH=FAKE:$PATH\nsrun torchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=$SLURMD_NODENAME:29500 train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:2\nexport PATH=FAKE:$PATH\nsrun torchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=$SLURMD_NODENAME:29500 train.py\n", agents(2), ""},
	{"multinode-launcher-without-srun", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\ntorchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=$SLURMD_NODENAME:29500 train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nsrun torchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=$SLURMD_NODENAME:29500 train.py\n", agents(2), ""},
	{"rank-expanded-in-batch-shell", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nsrun torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=n1 --nproc_per_node=2 train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nsrun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=n1 --nproc_per_node=2 train.py'\n", lacks("--node_rank=1"), ""},
	{"rank-expanded-in-batch-shell", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nexport RANK=$SLURM_PROCID\nsrun python train.py\n",
		"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nsrun bash -c 'RANK=$SLURM_PROCID python train.py'\n", lacks("rank [1]"), ""},
	{"master-addr-per-rank", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nsrun bash -c 'export MASTER_ADDR=$SLURMD_NODENAME; python train.py'\n",
		"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nexport PATH=FAKE:$PATH\nexport MASTER_ADDR=$SLURMD_NODENAME\nsrun bash -c 'python train.py'\n",
		func(j lab.Job, err error) bool {
			first := ""
			for _, l := range strings.Split(j.Output, "\n") {
				if _, m, ok := strings.Cut(l, "master ["); ok {
					m, _, _ = strings.Cut(m, "]")
					if first != "" && m != first {
						return true
					}
					first = m
				}
			}
			return err != nil || first == ""
		}, ""},
	{"background-without-wait", "#!/bin/bash\n#SBATCH --nodes=1\nexport PATH=FAKE:$PATH\nsrun python slow.py &\n", "#!/bin/bash\n#SBATCH --nodes=1\nexport PATH=FAKE:$PATH\nsrun python slow.py &\nwait\n", lacks("finished"), ""},
	{"slurm-var-unset", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:2\nn=$SLURM_GPUS_PER_NODE\necho n=[$n]\n", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:2\nn=$SLURM_GPUS_ON_NODE\necho n=[$n]\n", lacks("n=[2]"), ""},
	{"script-dir-from-dollar0", "#!/bin/bash\n#SBATCH --nodes=1\ncd \"$(dirname \"$0\")\"\npwd\n", "#!/bin/bash\n#SBATCH --nodes=1\ncd \"$SLURM_SUBMIT_DIR\"\npwd\n", lacks("WORK"), ""},
	{"filename-pattern-in-body", "#!/bin/bash\n#SBATCH --nodes=1\nmkdir -p WORK/of-%u\nls WORK\n", "#!/bin/bash\n#SBATCH --nodes=1\nmkdir -p WORK/of-$SLURM_JOB_ID\nls -d WORK/of-$SLURM_JOB_ID\n", shows("of-%u"), ""},
	{"quoted-array-split", "#!/bin/bash\n#SBATCH --nodes=2\nnodes=$(scontrol show hostnames $SLURM_JOB_NODELIST)\narr=(\"$nodes\")\necho count=${#arr[@]}\n",
		"#!/bin/bash\n#SBATCH --nodes=2\nnodes=$(scontrol show hostnames $SLURM_JOB_NODELIST)\narr=($nodes)\necho count=${#arr[@]}\n", lacks("count=2"), ""},
	{"array-id-without-array", "#!/bin/bash\n#SBATCH --nodes=1\necho id=[$SLURM_ARRAY_TASK_ID]\n", "#!/bin/bash\n#SBATCH --nodes=1\necho id=[${SLURM_ARRAY_TASK_ID:-0}]\n", shows("id=[]"), ""},
	{"pipe-hides-exit", "#!/bin/bash\n#SBATCH --nodes=1\nexport PATH=FAKE:$PATH\nsrun bash -c 'python train.py; exit 3' | tee WORK/log\n", "#!/bin/bash\n#SBATCH --nodes=1\nexport PATH=FAKE:$PATH\nset -o pipefail\nsrun bash -c 'python train.py; exit 3' | tee WORK/log\n",
		func(j lab.Job, err error) bool { return err != nil || j.State == "COMPLETED" }, ""},
	{"signal-b-no-trap", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=5\n#SBATCH --signal=B:USR1@30\nexport PATH=FAKE:$PATH\necho started\nsrun python slow.py\n",
		"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=5\n#SBATCH --signal=B:USR1@30\nexport PATH=FAKE:$PATH\ntrap 'echo handler; wait' USR1\necho started\nsrun python slow.py &\nwait\n", lacks("handler"), "USR1"},
}

// TestLintTruth runs what the error rules that Slurm itself can show say:
// the script with the fault does harm on a real cluster, the mended one does
// not, and lint tells one from the other.
func TestLintTruth(t *testing.T) {
	c := slurm(t)
	fake := filepath.Join(workDir, "fake")
	write(t, filepath.Join(fake, "torchrun"), fakeTorchrun)
	write(t, filepath.Join(fake, "python"), fakePython)
	work := filepath.Join(c.Dir, "work")
	for _, x := range truths {
		t.Run(x.rule, func(t *testing.T) {
			t.Parallel()
			for _, s := range []struct {
				kind, src string
				harm      bool
			}{{"hit", x.hit, true}, {"fixed", x.fixed, false}} {
				src := strings.NewReplacer("FAKE", fake, "WORK", work).Replace(s.src)
				if got := has(lintIDs(t, src), x.rule); got != s.harm {
					t.Errorf("%s: lint finds %s: %v", s.kind, x.rule, got)
				}
				job, err := runSignalled(t.Context(), c, src, x.sig)
				harm := x.harm
				if x.rule == "script-dir-from-dollar0" {
					harm = lacks(work)
				}
				if got := harm(job, err); got != s.harm {
					t.Errorf("%s: harm on Slurm: %v; job %+v, error %v\n%s", s.kind, got, job, err, src)
				}
			}
		})
	}
}

// runSignalled submits a script, signals its batch shell once it says that it
// started, and waits.
func runSignalled(ctx context.Context, c *lab.Cluster, src, sig string) (lab.Job, error) {
	id, err := c.Submit(ctx, src)
	if err != nil {
		return lab.Job{}, err
	}
	if sig != "" {
		// The script says "started" behind its trap.
		for range 1200 {
			out, _ := c.Command(ctx, "scontrol", "show", "job", id).Output()
			if _, path, ok := strings.Cut(string(out), "StdOut="); ok {
				path, _, _ = strings.Cut(path, "\n")
				if b, _ := os.ReadFile(path); strings.Contains(string(b), "started") {
					break
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		if out, err := c.Command(ctx, "scancel", "--batch", "--signal="+sig, id).CombinedOutput(); err != nil {
			return lab.Job{}, &exec.Error{Name: string(out), Err: err}
		}
	}
	return c.Wait(ctx, id)
}

// lintIDs runs the program's lint over a script and returns the rules that hit.
func lintIDs(t *testing.T, src string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "lint", "--format=json", "-")
	cmd.Stdin = strings.NewReader(src)
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("lint: %v", err)
	}
	var rep struct {
		Findings []struct{ ID string }
	}
	if err := json.Unmarshal(out, &rep); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range rep.Findings {
		ids = append(ids, f.ID)
	}
	return ids
}

func has(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}
