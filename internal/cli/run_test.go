package cli

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func TestRankEnv(t *testing.T) {
	step := map[string]string{"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
		"SLURM_STEP_NODELIST": "gpu[07-08]", "SLURM_JOB_NODELIST": "gpu[01-08]", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2"}
	for _, tt := range []struct {
		name string
		more map[string]string
		want map[string]string
	}{
		{"all", nil, map[string]string{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "gpu07", "MASTER_PORT": "17979"}},
		{"what is set stays, also when it is empty", map[string]string{"MASTER_ADDR": "10.0.0.1", "WORLD_SIZE": "", "MASTER_PORT": "1"}, map[string]string{"RANK": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}},
		{"not a step", map[string]string{"SLURM_PROCID": ""}, map[string]string{}},
		{"an arbitrary layout hides where rank 0 is", map[string]string{"SLURM_DISTRIBUTION": "arbitrary"}, map[string]string{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "17979"}},
		{"nonsense", map[string]string{"SLURM_STEP_NODELIST": "gpu[[", "SLURM_STEP_TASKS_PER_NODE": "x", "SLURM_JOB_ID": "$(id)"}, map[string]string{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}},
	} {
		m := &source.Machine{Env: map[string]string{}}
		for _, e := range []map[string]string{step, tt.more} {
			for k, v := range e {
				m.Env[k] = v
			}
		}
		got := map[string]string{}
		for _, kv := range rankEnv(m) {
			got[kv.Name] = kv.Value
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			continue
		}
		for k, v := range tt.want {
			if got[k] != v {
				t.Errorf("%s: %s=%s, want %s", tt.name, k, got[k], v)
			}
		}
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.py": "import os\nimport torch\n", "gloo.py": "import torch\nbackend = 'gloo'\n", "plain.py": "import os\n# import torch\n", "lazy.py": "def f():\n    import torch\n",
		"x.py": "#!/usr/bin/env python3\nimport torch\n", "y.py": "#!/usr/bin/python3 -u\nimport torch\nb = 'gloo'\n", "sh.py": "#!/bin/sh\nimport torch\n", "pkg/tr.py": "import torch\n", "pkg/__main__.py": "import torch\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	m := &source.Machine{FS: os.DirFS("/")}
	for _, tt := range []struct {
		argv        []string
		torch, gloo bool
	}{
		{[]string{"python", "train.py"}, true, false}, {[]string{"/usr/bin/python3.11", "-u", "-W", "ignore", "./train.py", "--x"}, true, false}, {[]string{"python", "gloo.py"}, true, true},
		{[]string{"python", "plain.py"}, false, false}, {[]string{"python", "lazy.py"}, false, false}, {[]string{"python", "-c", "import sys; import torch"}, true, false},
		{[]string{"python", "-m", "torch.distributed.run", "train.py"}, true, false}, {[]string{"python", "-m", "http.server"}, false, false}, {[]string{"python", "--version"}, false, false},
		{[]string{"python", "-V"}, false, false}, {[]string{"python"}, false, false}, {[]string{"python", "no-such.py"}, false, false}, {[]string{"torchrun", "--nproc-per-node=8", "gloo.py"}, true, true},
		{[]string{"./x.py", "--lr", "1"}, true, false}, {[]string{"./y.py"}, true, true}, {[]string{filepath.Join(dir, "x.py")}, true, false}, {[]string{"./sh.py"}, false, false},
		{[]string{"./no-such.py"}, false, false}, {[]string{"python", "-m", "train"}, true, false}, {[]string{"python3", "-u", "-m", "gloo"}, true, true}, {[]string{"python", "-m", "pkg"}, true, false},
		{[]string{"python", "-m", "pkg.tr"}, true, false}, {[]string{"python", "-m", "plain"}, false, false}, {[]string{"python", "-m", "../x"}, false, false},
		{[]string{"bash", "train.sh"}, false, false}, {[]string{"pythonic", "train.py"}, false, false},
	} {
		if p := readProgram(m, tt.argv); p.torch != tt.torch || p.gloo != tt.gloo {
			t.Errorf("%q: %+v", tt.argv, p)
		}
	}
}

// What may find another torch, or do without GPUs, is never refused.
func TestProgramThatMayWork(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plain/t.py": "import torch\ntorch.zeros(1).cuda()\n", "beside/t.py": "import torch\nx.cuda()\n", "beside/torch/__init__.py": "",
		"path/t.py": "import sys\nsys.path.insert(0, '/x')\nimport torch\nx.cuda()\n", "doc/t.py": "\"\"\"\nimport torch\n\"\"\"\nprint(1)\n",
		"cpu/t.py": "import torch\nd = 'cuda' if torch.cuda.is_available() else 'cpu'\n", "var/t.py": "import torch\nimport os\ntorch.distributed.init_process_group(os.environ['B'])\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := &source.Machine{FS: os.DirFS("/")}
	gpus := &fact.Bundle{Slurm: fact.Slurm{GPUsGranted: fact.Of(2, fact.Evidence{})}}
	for name, want := range map[string][2]bool{ // no torch, a CPU build: certain?
		"plain": {true, true}, "beside": {false, false}, "path": {false, false}, "doc": {false, false}, "cpu": {true, false}, "var": {true, false},
	} {
		p := readProgram(m, []string{"python3", filepath.Join(dir, name, "t.py")})
		for i, id := range []string{"torch-not-installed", "torch-cpu-build"} {
			f := diag.Finding{ID: id, Role: diag.Cause, Severity: diag.Error, Certainty: diag.Proven}
			if _, certain := certainFault(&diag.Report{Cause: &f.ID, Findings: []diag.Finding{f}}, p, gpus); certain != want[i] {
				t.Errorf("%s, %s: certain %v (%+v)", name, id, certain, p)
			}
		}
	}
}

func TestOnlyWhatIsCertainIsRefused(t *testing.T) {
	gpus := &fact.Bundle{Slurm: fact.Slurm{GPUsGranted: fact.Of(2, fact.Evidence{})}}
	torch, gloo := program{torch: true}, program{torch: true, gloo: true}
	for _, tt := range []struct {
		name    string
		f       diag.Finding
		p       program
		b       *fact.Bundle
		found   bool
		certain bool
	}{
		{"a CPU build with GPUs", diag.Finding{ID: "torch-cpu-build"}, torch, gpus, true, true},
		{"the same without GPUs", diag.Finding{ID: "torch-cpu-build"}, torch, &fact.Bundle{}, true, false},
		{"the same with gloo", diag.Finding{ID: "torch-cpu-build"}, gloo, gpus, true, false},
		{"a program without torch", diag.Finding{ID: "torch-not-installed"}, program{}, gpus, true, false},
		{"no torch", diag.Finding{ID: "torch-not-installed"}, torch, &fact.Bundle{}, true, true},
		{"a cause that explains it", diag.Finding{ID: "env-user-site-shadows", Explains: []string{"torch-cpu-build"}}, torch, gpus, true, true},
		{"likely is not certain", diag.Finding{ID: "torch-cpu-build", Certainty: diag.Likely}, torch, gpus, false, false},
		{"a warning is no error", diag.Finding{ID: "torch-cpu-build", Severity: diag.Warning}, torch, gpus, false, false},
		{"a cause that may not bite", diag.Finding{ID: "net-interface-wrong"}, torch, gpus, true, false},
	} {
		f := tt.f
		f.Role = diag.Cause
		if f.Severity == "" {
			f.Severity = diag.Error
		}
		if f.Certainty == "" {
			f.Certainty = diag.Proven
		}
		got, certain := certainFault(&diag.Report{Cause: &f.ID, Findings: []diag.Finding{f}}, tt.p, tt.b)
		if (got != nil) != tt.found || certain != tt.certain {
			t.Errorf("%s: %v, %v", tt.name, got != nil, certain)
		}
	}
}

func TestOneTaskSpeaks(t *testing.T) {
	dir := t.TempDir()
	machine := func(env ...string) *source.Machine {
		m := &source.Machine{FS: fstest.MapFS{}, UID: os.Getuid(), Env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "XDG_CACHE_HOME": dir}}
		for i := 0; i+1 < len(env); i += 2 {
			m.Env[env[i]] = env[i+1]
		}
		return m
	}
	var n atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if newClaim(machine(), "explained").take() {
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if n.Load() != 1 {
		t.Errorf("%d tasks speak", n.Load())
	}
	for name, m := range map[string]*source.Machine{"another step": machine("SLURM_STEP_ID", "1"), "another run of the job": machine("SLURM_RESTART_COUNT", "1"), "no job": machine("SLURM_JOB_ID", "")} {
		if !newClaim(m, "explained").take() {
			t.Errorf("%s is silent", name)
		}
	}
	if c := newClaim(machine("SLURM_JOB_ID", "../../x"), "explained"); c.job != "" || slices.ContainsFunc(c.dirs, func(d string) bool { return true }) {
		t.Errorf("%+v", c)
	}
}
