package explain_test

import (
	"strings"
	"testing"
)

// TestFixesNameTheEnvironment: where the input tells which interpreter ran and
// what the GPU node has, the commands of a fix name them.
func TestFixesNameTheEnvironment(t *testing.T) {
	e := newEngine(t)
	const frames = `Traceback (most recent call last):
  File "/w/t.py", line 3, in main
    dist.init_process_group("nccl")
  File "/home/u/envs/x/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py", line 1268, in f
RuntimeError: Distributed package doesn't have NCCL built in
`
	for _, c := range []struct{ name, log, listing, want, not string }{
		{"path of frames", frames, "torch.version.cuda: None\n", "/home/u/envs/x/bin/python -m pip install --no-cache-dir torch", ""},
		{"wheel tag", frames, "$ pip list\ntorch 2.6.0+cpu\n", "/home/u/envs/x/bin/python -m pip install --force-reinstall torch", ""},
		{"driver and GPU", frames, "$ pip list\ntorch 2.6.0+cpu\n$ nvidia-smi --query-gpu=name,driver_version --format=csv\nNVIDIA A100-SXM4-40GB, 550.54.15\n", "/home/u/envs/x/bin/python -m pip install 'torch==2.6.0+cu124'", "cuXXX"},
		{"uv", frames, "$ uv pip list\ntorch 2.6.0+cpu\n", "uv pip install --python /home/u/envs/x/bin/python", ""},
		{"launcher's binary", "RuntimeError: Distributed package doesn't have NCCL built in\nE1 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: /opt/e/bin/python3.11\n", "torch.version.cuda: None\n", "/opt/e/bin/python3.11 -m pip", ""},
		{"nothing told", "AssertionError: Torch not compiled with CUDA enabled\n", "torch.version.cuda: None\n", "python -m pip uninstall -y torch", "/bin/python"},
		{"odd path", strings.ReplaceAll(frames, "/home/u/envs/x", "/home/u/my envs;x"), "torch.version.cuda: None\n", "python -m pip uninstall -y torch", "my envs"},
		{"EasyBuild has no python", strings.ReplaceAll(frames, "/home/u/envs/x", "/sw/PyTorch/2.1.2"), "torch.version.cuda: None\n", "python -m pip uninstall -y torch", "/sw/PyTorch/2.1.2/bin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := e.run(t, []file{{"a.out", []byte(c.log)}, {"b.txt", []byte(c.listing)}})
			top := rep.Top()
			if top == nil || top.ID != "torch-cpu-build" {
				t.Fatalf("%+v", rep.Findings)
			}
			var cmds []string
			for _, f := range top.Fixes {
				cmds = append(cmds, f.Commands...)
			}
			all := strings.Join(cmds, "\n")
			if !strings.Contains(all, c.want) || c.not != "" && strings.Contains(all, c.not) {
				t.Errorf("want %q, not %q:\n%s", c.want, c.not, all)
			}
		})
	}
}
