package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// TestExplainGiven: what explain is given besides logs is judged for what it
// is, and nothing at all is no clean bill.
func TestExplainGiven(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	at := fact.Evidence{Source: fact.SrcFile, Path: "/etc/nv_tegra_release"}
	b := &fact.Bundle{Schema: fact.BundleSchema, Taken: time.Unix(1, 0).UTC()}
	b.Host.L4T = fact.None[string](at)
	b.Python.Exe = fact.Of("/opt/e/bin/python", at)
	b.Python.Version = fact.Of("3.11.2", at)
	b.Torch = []fact.Torch{{Dir: "/opt/e/lib/python3.11/site-packages/torch", Version: fact.Of("2.6.0+cpu", at), CUDA: fact.None[string](at)}}
	var raw bytes.Buffer
	if err := fact.WriteBundle(&raw, b); err != nil {
		t.Fatal(err)
	}
	facts := write("facts.json", raw.String())
	newer := write("newer.json", strings.Replace(raw.String(), fact.BundleSchema, "ncclinic.facts/v9", 1))
	noNCCL := write("a.out", "RuntimeError: Distributed package doesn't have NCCL built in\n")
	other := write("other.out", "Traceback (most recent call last):\n  File \"/home/li/e/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py\", line 1331, in _new_process_group_helper\n    raise RuntimeError(\"Distributed package doesn't have NCCL built in\")\nRuntimeError: Distributed package doesn't have NCCL built in\n")
	same := write("same.out", "Traceback (most recent call last):\n  File \"/opt/e/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 1331, in _new_process_group_helper\n    raise RuntimeError(\"Distributed package doesn't have NCCL built in\")\nRuntimeError: Distributed package doesn't have NCCL built in\n")
	weird := write("weird.out", "srun: error: gpu01: task 3: Exited with exit code 77\n")
	script := write("train.sbatch", "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py\n")
	healthy := write("ok.out", "Epoch 1/3 loss 0.2\nSaved checkpoint\n")
	empty := write("empty.out", "")
	core := write("core.17", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 9)+"\x04\x00>\x00"+strings.Repeat("CUDA out of memory\x00", 100))
	binary := write("bin", "\x7fELF\x02\x00\x00\x00\x00\x00\x00\x00")
	for _, c := range []struct {
		args []string
		code int
		want string // of output and errors together
	}{
		{[]string{noNCCL}, exitUnsure, "compiled without NCCL"},
		{[]string{noNCCL, facts}, exitFound, "torch-cpu-build · likely"}, // the log does not say which torch it ran
		{[]string{noNCCL, facts}, exitFound, "srun python -c 'import torch; print(torch.__file__)'"},
		{[]string{same, facts}, exitFound, "torch-cpu-build · proven"},
		{[]string{noNCCL, facts}, exitFound, "a.out:1: RuntimeError"},
		{[]string{noNCCL, facts}, exitFound, "/opt/e/bin/python imports torch 2.6.0+cpu"},
		{[]string{other, facts}, exitUnsure, "facts of another torch (/opt/e/lib/python3.11/site-packages/torch) than the one that the log ran (/home/li/e/lib/python3.10/site-packages/torch)"},
		{[]string{facts}, exitFound, "torch-cpu-build · proven"},
		{[]string{facts, facts}, exitUsage, "several facts files"},
		{[]string{weird, facts}, exitUnsure, "ncclinic check " + facts},
		{[]string{noNCCL, newer}, exitUsage, "newer.json"},
		{[]string{script}, exitUnsure, "ncclinic lint " + script},
		{[]string{healthy}, exitOK, "No sign of a failure in what was given"},
		{[]string{empty}, exitUnsure, "empty"},
		{[]string{"-"}, exitUnsure, "empty"},
		{[]string{empty, healthy}, exitOK, "No sign"},
		{[]string{binary}, exitUsage, "not a text file"},
		{[]string{core}, exitUsage, "a core dump, not a text file"},
		{[]string{core, healthy}, exitOK, "core.17: a core dump, not a text file"},
		{nil, exitUsage, "explain needs a file"},
	} {
		var out bytes.Buffer
		code, errs := try(&out, append([]string{"explain"}, c.args...)...)
		if got := out.String() + errs; code != c.code || !strings.Contains(strings.Join(strings.Fields(got), " "), c.want) {
			t.Errorf("%q: status %d, want %d and %q:\n%s", c.args, code, c.code, c.want, got)
		}
	}
	var out bytes.Buffer
	if _, errs := try(&out, "check", noNCCL); !strings.Contains(errs, "ncclinic explain "+noNCCL) {
		t.Errorf("check of a log: %q", errs)
	}
	if _, errs := try(&out, "rules", "torch-cpu"); !strings.Contains(errs, "perhaps torch-cpu-build") {
		t.Errorf("rules: %q", errs)
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"a/b-1.out": "a/b-1.out", "my log": "'my log'", "-x": "./-x", "it's": `'it'\''s'`, "": "''"} {
		if got := shellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
