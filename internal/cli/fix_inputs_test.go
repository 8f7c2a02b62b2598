package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

const cpuLog = `[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/zhang/train.py", line 12, in <module>
[rank0]:     dist.init_process_group("nccl")
[rank0]:   File "/home/zhang/miniconda3/envs/llm/lib/python3.12/site-packages/torch/distributed/c10d_logger.py", line 81, in wrapper
[rank0]:     return func(*args, **kwargs)
[rank0]:   File "/home/zhang/miniconda3/envs/llm/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 1764, in _new_process_group_helper
[rank0]:     raise RuntimeError("Distributed package doesn't have NCCL built in")
[rank0]: RuntimeError: Distributed package doesn't have NCCL built in
srun: error: gpu07: task 0: Exited with exit code 1
`

const pipList = "Package     Version\n----------- -------\nnumpy       2.1.0\ntorch       2.6.0+cpu\ntorchvision 0.21.0+cpu\n"

const smiTable = `Mon Nov 30 10:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   30C    P0              62W /  400W|       4MiB /  81920MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
`

const wrongScript = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\nset -e\n#SBATCH --cpus-per-task=8\nexport NCCL_SOCKET_IFNAME=eth0\nexport NCCL_IB_DISABLE=1\ntorchrun --nproc_per_node=4 train.py | tee log\n"

// inDir writes files into a folder and returns their paths by name.
func inDir(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out := map[string]string{}
	for name, text := range files {
		out[name] = filepath.Join(dir, name)
		if err := os.WriteFile(out[name], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestFixSeveralInputs: a log with what came with it gives one plan, about the
// interpreter and the Python that the log's paths name.
func TestFixSeveralInputs(t *testing.T) {
	f := inDir(t, map[string]string{"job.out": cpuLog, "pip.txt": pipList, "smi.txt": smiTable, "t.sbatch": wrongScript})
	code, out, errs := runFix(t, f["job.out"], f["pip.txt"], f["smi.txt"], f["t.sbatch"])
	for _, want := range []string{"FIX torch 2.6.0+cu124", "[torch-cpu-build]", "for Python 3.12", "driver 550.54.15, NVIDIA A100-SXM4-80GB (8.0)", "now torch 2.6.0+cpu, CPU",
		"/home/zhang/miniconda3/envs/llm/bin/python -m pip install 'torch==2.6.0+cu124' 'torchvision==0.21.0+cu124'", "Patch of " + f["t.sbatch"], "-set -e"} {
		if code != 1 || !strings.Contains(oneLine(out), want) {
			t.Errorf("exit %d, no %q:\n%s%s", code, want, out, errs)
		}
	}
	// The order does not matter.
	_, other, _ := runFix(t, f["smi.txt"], f["pip.txt"], f["job.out"])
	if !strings.Contains(other, "torch 2.6.0+cu124") {
		t.Error(other)
	}
	// A log alone names interpreter and Python; what would decide is said.
	code, out, _ = runFix(t, f["job.out"])
	if code != 3 || !strings.Contains(out, "ncclinic check --python /home/zhang/miniconda3/envs/llm") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	code, out, _ = runFix(t, f["job.out"], "--driver", "550.54.15", "--gpu", "a100")
	if code != 1 || !strings.Contains(out, "Python 3.12") || !strings.Contains(out, "/home/zhang/miniconda3/envs/llm/bin/python -m pip install") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, out, errs := runFix(t, f["job.out"], f["job.out"]+".gone"); code != 2 {
		t.Errorf("a file that is not there: exit %d %s%s", code, out, errs)
	}
}

// TestFixSeveralWithFacts: the facts of the node among the files are the plan's.
func TestFixSeveralWithFacts(t *testing.T) {
	f := inDir(t, map[string]string{"job.out": strings.ReplaceAll(cpuLog, "python3.12", "python3.11")})
	code, out, errs := runFix(t, f["job.out"], demoFacts)
	if code != 1 || !strings.Contains(oneLine(out), "gpu-h100-07: driver 535.161.08, NVIDIA H100 80GB HBM3 (9.0)") || !strings.Contains(out, "torch 2.6.0+cu124") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
}

// TestFixScriptWhole: the patch is that of lint --diff, and what no safe edit
// mends is said too.
func TestFixScriptWhole(t *testing.T) {
	f := inDir(t, map[string]string{"t.sbatch": wrongScript})
	var diff, says strings.Builder
	Main([]string{"lint", "--diff", f["t.sbatch"]}, Streams{In: strings.NewReader(""), Out: &diff, Err: &says, Getenv: func(string) string { return "" }})
	code, out, _ := runFix(t, f["t.sbatch"])
	for _, l := range strings.Split(strings.TrimSpace(diff.String()), "\n") {
		if !strings.Contains(out, "  "+l+"\n") {
			t.Errorf("exit %d, the patch lacks %q:\n%s", code, l, out)
		}
	}
	for _, want := range []string{"Also in this script", "line 9: ", "[pipe-hides-exit]", "[ib-disabled]", "sbatch would then read: --cpus-per-task=8"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
	_, out, _ = runFix(t, f["t.sbatch"], "--format", "json", "--lang", "zh")
	if !strings.Contains(out, `"more": [`) || !strings.Contains(out, `"line": 9`) {
		t.Error(out)
	}
}

// TestFixByHand: what is given by hand decides also about the cause in the title.
func TestFixByHand(t *testing.T) {
	for _, c := range []struct {
		args []string
		has  string
		not  string
	}{
		{[]string{"--driver", "550.54.14", "--gpu", "A100", "--python", "3.12"}, "python3.12 -m venv", "gpu-driver-missing"},
		{[]string{"--driver", "550.54.14", "--gpu", "A100", "--python", "3.12"}, "torch-py3.12/bin/python -m pip install", " python -m pip"},
		{[]string{"--driver", "550.54.14", "--gpu", "A100", "--python", "3.12", "--with", "uv"}, "uv venv --python 3.12", " python -m pip"},
		{[]string{"--driver", "550.54.14", "--gpu", "A100", "--python", "3.12", "--with", "micromamba"}, "micromamba create -y -p", " python -m pip"},
		{[]string{"--gpu", "MI250", "--python", "3.12"}, "torch==2.14.1+rocm7.2", "gpu-driver-missing"},
		{[]string{"--gpu", "910B", "--python", "3.12"}, "torch-npu", "cuXXX"},
		{[]string{"--gres", "gpu:nvidia_a100_1g.5gb:7", "--driver", "550", "--python", "3.12"}, "A100", "ask"},
		{[]string{"--gres", "gpu:a100:4(S:0-1),gpu:v100:2", "--driver", "580.65.06", "--python", "3.12"}, "A100 (8.0), V100 (7.0)", "gpu-driver-missing"},
		{[]string{demoFacts, "--driver", "580.65.06", "--gpu", "V100"}, "580.65.06 was given by hand", "gpu-driver-missing"},
	} {
		code, out, errs := runFix(t, c.args...)
		if code != 1 || !strings.Contains(oneLine(out), c.has) || strings.Contains(out, c.not) {
			t.Errorf("fix %s: exit %d, want %q and no %q:\n%s%s", strings.Join(c.args, " "), code, c.has, c.not, out, errs)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	for path, want := range map[string][2]string{
		"/home/u/venv/lib/python3.11/site-packages/torch":                   {"3.11", "/home/u/venv"},
		"/opt/c/envs/x/lib64/python3.13t/site-packages/torch/__init__.py":   {"3.13t", "/opt/c/envs/x"},
		"/home/u/.local/lib/python3.10/site-packages/torch":                 {"3.10", ""},
		"/usr/lib/python3.9/site-packages":                                  {"3.9", "/usr"},
		"/home/u/venv/bin/python":                                           {"", "/home/u/venv"},
		"/home/u/venv/bin/python3":                                          {"", "/home/u/venv"},
		"/home/u/venv/bin/python3.12":                                       {"3.12", "/home/u/venv"},
		"python":                                                            {"", ""},
		"lib/python3.11/site-packages":                                      {"", ""},
		"/root/.pyenv/versions/3.11.7/lib/python3.11/site-packages/torch/x": {"3.11", "/root/.pyenv/versions/3.11.7"},
	} {
		py, prefix := placeOf(path)
		if py != want[0] || prefix != want[1] {
			t.Errorf("%s: %q %q", path, py, prefix)
		}
	}
}

// TestCheckPointsToFix: where fix knows more than the report, one line names the
// call; where it does not, none does.
func TestCheckPointsToFix(t *testing.T) {
	run := func(args ...string) string {
		var o strings.Builder
		Main(args, Streams{In: strings.NewReader(""), Out: &o, Err: &o, Getenv: func(string) string { return "" }})
		return oneLine(o.String())
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", demoFacts}, "ncclinic fix " + demoFacts + " plans the whole change"},
		{[]string{"check", demoFacts, "--lang", "zh"}, "ncclinic fix " + demoFacts + " 给出完整方案"},
		{[]string{"check", "../../docs/example/torch-2.11.0.facts.json", "--driver", "535.161.08", "--gpu", "V100"}, ""}, // a wheel
		{[]string{"demo"}, ""},
		{[]string{"check", demoFacts, "--format", "json"}, ""},
		{[]string{"check", demoFacts, demoFacts}, ""},
	} {
		out := run(c.args...)
		if c.want != "" && !strings.Contains(out, c.want) || c.want == "" && strings.Contains(out, "ncclinic fix") {
			t.Errorf("%v: want %q:\n%s", c.args, c.want, out)
		}
	}
}

// TestFixScripts: the first finding has its line and its particulars; of several
// scripts each is linted, patched and named, and no command stands twice.
func TestFixScripts(t *testing.T) {
	f := inDir(t, map[string]string{"a.sbatch": wrongScript, "b.sbatch": "#!/bin/bash\n#SBATCH --gres gpu 4\nNCCL_DEBUG=INFO\nsrun python t.py\n"})
	code, out, errs := runFix(t, f["b.sbatch"])
	must(t, "one", oneLine(out+errs), `line 2: "4" is no option`, "FIX Malformed #SBATCH line")
	if code != exitFound {
		t.Errorf("exit %d", code)
	}
	code, out, errs = runFix(t, f["a.sbatch"], f["b.sbatch"], f["a.sbatch"])
	must(t, "two", oneLine(out+errs), f["a.sbatch"]+", line ", "In "+f["b.sbatch"]+` - line 2: "4" is no option`, "Also in "+f["a.sbatch"]+" - line ", "Patch of "+f["a.sbatch"], "Patch of "+f["b.sbatch"], "+export NCCL_DEBUG=INFO")
	if code != exitFound || strings.Contains(out, "not decided") || strings.Count(out, "Patch of "+f["a.sbatch"]) != 1 {
		t.Errorf("exit %d\n%s", code, out)
	}
	_, out, _ = runFix(t, "--lang", "zh", f["b.sbatch"])
	must(t, "zh", out, "第 2 行：")
	_, out, _ = runFix(t, "--format", "json", f["a.sbatch"], f["b.sbatch"])
	must(t, "json", out, `"patches": [`, `"line": `, `"message": `)
	_, out, _ = runFix(t, "--format", "sh", f["a.sbatch"], f["b.sbatch"])
	must(t, "sh", out, "cat > "+f["a.sbatch"]+".patch", "cat > "+f["b.sbatch"]+".patch", "a.sbatch:6: ")
}

// TestFixLogAndScripts: every script that comes with a log is patched.
func TestFixLogAndScripts(t *testing.T) {
	f := inDir(t, map[string]string{
		"a.sbatch": wrongScript, "b.sbatch": "#!/bin/bash\n#SBATCH --gres=gpu:4\nNCCL_DEBUG=INFO\nsrun python t.py\n",
		"slurm-4711.out": "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\nsrun: error: gpu01: task 3: Out Of Memory\n",
	})
	_, out, errs := runFix(t, f["slurm-4711.out"], f["a.sbatch"], f["b.sbatch"])
	must(t, "log", oneLine(out+errs), "host-out-of-memory", f["slurm-4711.out"]+", line 1: ", "Patch of "+f["a.sbatch"], "Patch of "+f["b.sbatch"], "+export NCCL_DEBUG=INFO", "sacct -j 4711 --format")
	_, out, _ = runFix(t, "--format", "sh", f["slurm-4711.out"], f["a.sbatch"], f["b.sbatch"])
	must(t, "sh", out, "cat > "+f["a.sbatch"]+".patch", "cat > "+f["b.sbatch"]+".patch")
	_, out, _ = runFix(t, "--format", "json", f["slurm-4711.out"], f["a.sbatch"], f["b.sbatch"])
	must(t, "json", out, `"script": "`+f["b.sbatch"]+`"`, `"certainty": "proven"`)
}

// TestFixSaysHowSure: a cause that is not proven says so, with what would decide,
// in both languages; the name of a script is quoted for the shell.
func TestFixSaysHowSure(t *testing.T) {
	f := inDir(t, map[string]string{
		"h.out":         "gpu01:88:120 [0] misc/socket.cc:400 NCCL WARN socketStartConnect: Connect to 10.1.0.2<33000> failed : No route to host\nRuntimeError: NCCL error in: ncclUtils, unhandled system error\nsrun: error: gpu01: task 0: Exited with exit code 1\n",
		"it's a.sbatch": "#!/bin/bash\n#SBATCH --gres=gpu:4\nNCCL_DEBUG=INFO\nsrun python t.py\n",
	})
	_, out, _ := runFix(t, f["h.out"])
	must(t, "en", out, "net-interface-wrong · possible", "What would decide", "    srun -l ip -br a\n", "  - the line \"Bootstrap : Using …\" of every node")
	_, out, _ = runFix(t, "--lang", "zh", f["h.out"])
	must(t, "zh", out, "net-interface-wrong · 有可能", "判定方法", "  - 每个节点的 “Bootstrap : Using …” 行")
	_, out, _ = runFix(t, "--format", "sh", f["h.out"])
	must(t, "sh", out, "# What would decide:\n#     srun -l ip -br a\n")
	_, out, _ = runFix(t, f["it's a.sbatch"])
	must(t, "quoted", out, `it'\''s a.sbatch' applies them`)
}

// TestFixTakes: what a person names, as check and explain take it too.
func TestFixTakes(t *testing.T) {
	const oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\nsrun: error: gpu01: task 3: Out Of Memory\n"
	f := inDir(t, map[string]string{
		"slurm-4711.out": oom, "hello.txt": "hello world\n",
		"open.out":    "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    dist.init_process_group(\"nccl\")\nRuntimeError: Distributed package doesn't have NCCL built in\n",
		"warn.sbatch": "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=8\nNCCL_DEBUG=INFO\nsrun python t.py\n",
	})
	dir := filepath.Dir(f["hello.txt"])
	logs := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(logs, "rank0.out"), []byte(oom), 0o600); err != nil {
		t.Fatal(err)
	}
	env := packtest.Prefix(packtest.Site("2.6.0+cpu", "")).Write(t, t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{env, "--driver", "550", "--gpu", "A100"}, exitFound, []string{"[torch-cpu-build]", "'torch==2.6.0+cu124'", env + "/bin/python"}},
		{[]string{env, "--python", "3.11"}, exitUsage, []string{"--python names another one"}},
		{[]string{env, filepath.Join(logs, "rank0.out")}, exitFound, []string{"host-out-of-memory", "rank0.out, line 1: "}},
		{[]string{f["open.out"], env, "--driver", "550", "--gpu", "A100"}, exitFound, []string{"[torch-cpu-build]", "'torch==2.6.0+cu124'", env + "/bin/python"}},
		{[]string{env, env}, exitUsage, []string{"a second environment"}},
		{[]string{env, env, "--lang", "zh"}, exitUsage, []string{"第二个环境目录"}},
		{[]string{logs}, exitFound, []string{"host-out-of-memory", "rank0.out, line 1: "}},
		{[]string{filepath.Join(dir, "slurm-%j.out")}, exitFound, []string{"host-out-of-memory"}},
		{[]string{filepath.Join(dir, "none-%j.out")}, exitUsage, []string{"no file has such a name"}},
		{[]string{f["hello.txt"]}, exitUnsure, []string{"FIX Nothing in what was given looks like the output of a job"}},
		{[]string{f["open.out"]}, exitUnsure, []string{"what was given does not decide why", "Possible causes", "[torch-cpu-build]", "Evidence", "open.out:4: RuntimeError", "What would decide"}},
		{[]string{f["open.out"], "--lang", "zh"}, exitUnsure, []string{"可能的原因", "证据", "判定方法"}},
		{[]string{f["warn.sbatch"]}, exitFound, []string{"FIX no error; some changes are advised", "In this script - line 6: "}},
		{[]string{f["warn.sbatch"], "--lang", "zh"}, exitFound, []string{"没有错误；建议作以下修改", "该脚本中的问题"}},
	} {
		code, out, errs := runFix(t, c.args...)
		if code != c.code {
			t.Errorf("%v: exit %d, want %d", c.args, code, c.code)
		}
		must(t, strings.Join(c.args, " "), oneLine(out+errs), c.says...)
	}
}

// TestFixStandardInput: a script on standard input is linted and patched as a file
// is, a log is explained.
func TestFixStandardInput(t *testing.T) {
	const script = "#!/bin/bash\n#SBATCH --gres=gpu:4\nNCCL_DEBUG=INFO\nsrun python t.py\n"
	f := inDir(t, map[string]string{"log": "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\n"})
	for _, c := range []struct {
		in   string
		args []string
		says []string
	}{
		{script, []string{"-"}, []string{"In this script - line 3: ", "Patch of the script on standard input", "+export NCCL_DEBUG=INFO"}},
		{script, []string{"-", "--lang", "zh"}, []string{"标准输入中脚本的补丁"}},
		{script, []string{"-", "--format", "sh"}, []string{"# +export NCCL_DEBUG=INFO"}},
		{script, []string{"-", f["log"]}, []string{"host-out-of-memory", "+export NCCL_DEBUG=INFO"}},
		{cpuLog, []string{"-"}, []string{"Distributed package doesn't have NCCL built in"}},
	} {
		var o, e bytes.Buffer
		Main(append([]string{"fix"}, c.args...), Streams{In: strings.NewReader(c.in), Out: &o, Err: &e, Getenv: func(string) string { return "" }, Terminal: func() (bool, int) { return false, 0 }})
		must(t, strings.Join(c.args, " "), oneLine(o.String()+e.String()), c.says...)
	}
}

// A folder that is named by a word alone is no program on PATH.
func TestFixEnvironmentByName(t *testing.T) {
	env := packtest.Prefix(packtest.Site("2.6.0+cpu", "")).Write(t, filepath.Join(t.TempDir(), "env"))
	t.Chdir(filepath.Dir(env))
	_, out, errs := runFix(t, filepath.Base(env), "--driver", "550", "--gpu", "A100")
	must(t, "by name", out+errs, "[torch-cpu-build]", env+"/bin/python")
}

// TestFixOfAnotherCause: describing the node asks for no reinstallation of torch
// where the cause is another one.
func TestFixOfAnotherCause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oom.out")
	if err := os.WriteFile(path, []byte("[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runFix(t, path, "--driver", "535.161.08", "--gpu", "H100")
	if code != 1 || !strings.Contains(out, "gpu-out-of-memory") || strings.Contains(out, "pip install") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
	if _, out, errs = runFix(t, path, "--driver", "535.161.08", "--gpu", "H100", "--torch", "2.6.0"); !strings.Contains(out, "pip install") {
		t.Errorf("with --torch:\n%s%s", out, errs)
	}
}
