package listing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// feed reads lines; those that begin with "$ " are commands.
func feed(path, text string) *fact.Listing {
	out := &fact.Listing{}
	p := NewParser(path)
	for i, l := range strings.Split(text, "\n") {
		pl := fact.Place{Line: i + 1, Rank: -1, Local: -1, Task: -1}
		if c, ok := strings.CutPrefix(l, "$ "); ok {
			p.Command(fact.ShellCmd{Place: pl, Text: c})
			continue
		}
		p.Feed(l, l, pl, false, out, func(s string) string { return s })
	}
	return out
}

// TestForms reads each kind of listing; a fact is shown as kind name version origin @node.
func TestForms(t *testing.T) {
	for _, c := range []struct{ name, path, in, want string }{
		{"prints", "a", "$ python -c 'import torch; print(torch.__version__); print(torch.version.cuda, torch.cuda.is_available())'\nsome warning\n2.4.0\nNone False", "torch  2.4.0;torch-cuda  None;cuda-available  False"},
		{"print with words", "a", "$ python -c 'import torch; print(\"x\", torch.version.cuda)'\n12 7.5", ""},
		{"session", "a", ">>> torch.version.cuda\n'12.1'\n>>> torch.version.cuda\n>>> x", "torch-cuda  12.1;torch-cuda  None"},
		{"pip show", "a", "Name: torch\nVersion: 2.4.0\nSummary: x", "pkg torch 2.4.0"},
		{"another package", "a", "Name: requests\nVersion: 2.4.0", ""},
		{"uv.lock", "uv.lock", "name = \"torch\"\nversion = \"2.4.0\"\nsource = { registry = \"https://download.pytorch.org/whl/cpu\" }", "pkg torch 2.4.0 lock;pkg torch 2.4.0 lock+cpu"},
		{"explicit", "a", "https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.4.1-cpu_x_0.conda", "pkg pytorch 2.4.1 cpu_x_0"},
		{"conda downloads", "a", "    package                    |            build\n    pytorch-1.12.1             |      py3.8_cpu_0       151.9 MB  pytorch", "pkg pytorch 1.12.1 py3.8_cpu_0"},
		{"conda installs", "a", "  pytorch            pytorch/linux-64::pytorch-2.1.0-py3.11_cpu_0 ", "pkg pytorch 2.1.0 py3.11_cpu_0"},
		{"mamba installs", "a", "  + pytorch-mutex  1.0  cpu  pytorch/noarch  3kB", "pkg pytorch-mutex 1.0 cpu"},
		{"conda environments", "a", "# conda environments:\n#\nbase      /c\nllm    *  /c/envs/llm\n          /p/env", "conda-env base /c;conda-env llm /c/envs/llm *;conda-env  /p/env"},
		{"a table of something else", "a", "  torch-cache-2  |  12  |  ok", ""},
		{"recipe", "Dockerfile", "RUN pip install torch --index-url https://download.pytorch.org/whl/cpu", "pkg torch  image+cpu"},
		{"command in a log", "job.log", "pip install torch --index-url https://download.pytorch.org/whl/cpu", ""},
		{"clush", "a", "$ clush -b python -c 'import torch; print(torch.__version__)'\n---------------\nn[1-2]\n---------------\n2.4.0\n", "torch  2.4.0 @n[1-2]"},
		{"a ruler", "a", "----------------\nSummary\n----------------\n", ""},
		{"sacct -P", "a", "81|OUT_OF_MEMORY|0:125", "sacct 81 OUT_OF_MEMORY 0:125"},
		{"scontrol", "a", "   JobState=NODE_FAIL Reason=NodeDown", "sacct  NODE_FAIL"},
		{"waiting", "a", "   JobState=PENDING Reason=BadConstraints Dependency=(null)", "pending  BadConstraints"},
		{"squeue", "a", "$ squeue\n 7 gpu x u R 1:00 2 n[1-2]\n 8 gpu x u PD 0:00 2 (PartitionTimeLimit)", "pending 7 running;pending 8 PartitionTimeLimit"},
		{"mail", "a", "Subject: Slurm Job_id=47 Name=a b Failed, Run time 00:41:07, OUT_OF_MEMORY", "sacct 47 OUT_OF_MEMORY"},
		{"mail of a start", "a", "Slurm Job_id=47 Name=a Began, Queued time 00:41:07", ""},
		{"exit of the last column", "a", "JobID State Elapsed ExitCode\n12 FAILED 00:00:00 0:53", "sacct 12 FAILED 0:53"},
		{"AllocTRES", "a", "JobID|State|AllocTRES\n9|FAILED|billing=8,cpu=8,mem=64G,node=1", "sacct 9 FAILED;tres  billing=8,cpu=8,mem=64G,node=1"},
		{"ibstat", "a", "CA 'mlx5_0'\n  State: Down\nCA 'mlx5_1'\n  State: Active", "rdma-port mlx5_0 down;rdma-port mlx5_1 up"},
		{"ibv_devinfo", "a", "hca_id: mlx5_1\n   state:   PORT_INIT (2)", "rdma-port mlx5_1 init"},
		{"ibdev2netdev", "a", "mlx5_0 port 1 ==> ib0 (Up)", "rdma-port mlx5_0 up"},
		{"a state of something else", "a", "  State: Down", ""},
		{"nvidia-smi -q", "a", "==============NVSMI LOG==============\nGPU 00000000:41:00.0\n  Volatile\n    DRAM Uncorrectable    : 2\n  Aggregate\n    DRAM Uncorrectable    : 9", "hardware ecc DRAM Uncorrectable: 2 00000000:41:00.0"},
		{"kernel module", "a", "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5", "no-module  modprobe: FATAL: Module nvidia not found in directory /lib/modules/5"},
		{"a tainted kernel", "a", "nvidia: module verification failed: signature and/or required key missing - tainting kernel", ""},
		{"echo", "a", "$ echo $LD_LIBRARY_PATH\n/a:/b", "env LD_LIBRARY_PATH /a:/b"},
		{"echo of words", "a", "$ echo $LD_LIBRARY_PATH is set\n/a:/b", ""},
		{"UUIDs", "a", "GPU 0: NVIDIA L40S (UUID: GPU-1)\n  MIG 1g.5gb     Device  0: (UUID: MIG-2)", "gpu 0 NVIDIA L40S;gpu-uuid 0 GPU-1;gpu-uuid  MIG-2"},
		{"accelerate env", "a", "- PyTorch version (GPU?): 2.3.0+cpu (False)", "torch  2.3.0+cpu;cuda-available  False"},
		{"spack", "a", "py-torch@2.1.2+cuda~nccl", "pkg torch 2.1.2 spack_cuda1;nccl-available  False"},
		{"pixi", "a", "pytorch  2.7.1  cpu_generic_0  27.5 MiB  conda  https://x", "pkg pytorch 2.7.1 cpu_generic_0;torch  2.7.1"},
		{"version.py", "a", "$ cat torch/version.py\n__version__ = '2.3.0'\ncuda: Optional[str] = None", "torch  2.3.0;torch-cuda  None"},
		{"prints of a program", "a", "torch.version.cuda = None, nccl available: False", "torch-cuda  None;nccl-available  False"},
		{"code is no print", "a", "print(torch.version.cuda, nccl_available)", ""},
		{"mamba plan", "a", "  - pytorch  2.1.2  cuda120_0  conda-forge\n  + pytorch  2.1.2  cpu_1  conda-forge", "pip-uninstall torch 2.1.2=cuda120_0;pip-install torch 2.1.2=cpu_1;pkg pytorch 2.1.2 cpu_1;torch  2.1.2"},
		{"compose", "docker-compose.yml", "services:\n  a:\n    gpus: all", "recipe compose;recipe gpu"},
		{"services of something else", "app.yml", "services:", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, s := range feed(c.path, c.in).Facts {
				if s.Kind == kind.PkgEnv {
					continue
				}
				g := strings.TrimRight(s.Kind+" "+s.Name+" "+s.V+" "+s.Aux, " ")
				if s.Node != "" {
					g += " @" + s.Node
				}
				got = append(got, g)
			}
			if d := cmp.Diff(c.want, strings.Join(got, ";")); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzFeed(f *testing.F) {
	f.Add("Name: torch\nVersion: 2\nLocation: /x/lib/python3/site-packages")
	f.Add("$ python -c 'print(torch.__file__, torch.cuda.nccl.version())'\n/a/torch/__init__.py (2, 1, 5)")
	f.Add(">>> torch.version.cuda\n>>> \nIn [1]: torch.__version__\nOut[1]: '2'")
	f.Add("CA 'm'\nState: Down\nhca_id: x\nm port 1 ==> i (Up)\nlink m/1 state DOWN\n7 a b c PD 0 2 (Xy)\n$ echo $PATH\n/a")
	f.Add("=NVSMI LOG=\nGPU 0:1:2\nVolatile\nX Uncorrectable : 1\npy-torch@1~cuda +rocm\n - torch 1 b c\n + torch 2 b c\nservices:")
	f.Add("------\nn1\n------\nn1 | CHANGED | rc=0 >>\n== n2 ==")
	f.Add("name = \"torch\"\nsource = { registry = \"https://x/whl/cpu\" }")
	f.Add(" - torch==1\nUninstalled 1 package in 1ms\n + torch==2\n  pytorch a::pytorch-1-b --> c::pytorch-2-d")
	f.Fuzz(func(t *testing.T, in string) {
		for _, s := range feed("uv.lock", in).Facts {
			if len(s.Text) > 400 || len(s.V) > 600 {
				t.Fatalf("fact of %d bytes", len(s.Text)+len(s.V))
			}
		}
	})
}
