package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// runFix runs one command line in this process, without an environment.
func runFix(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(append([]string{"fix"}, args...), Streams{In: strings.NewReader(""), Out: &o, Err: &e,
		Getenv: func(string) string { return "" }, Terminal: func() (bool, int) { return false, 0 }})
	return code, o.String(), e.String()
}

const demoFacts = "../demo/bundle.json"

func TestFixBadInput(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{demoFacts, "--torch", "2.x"}, 2, "no version, specifier or CUDA build"},
		{[]string{demoFacts, "--torch", "2.6.0+cpu"}, 2, "no CUDA build"},
		{[]string{demoFacts, "--driver", "new"}, 2, "no driver version"},
		{[]string{demoFacts, "--arch", "riscv"}, 2, "neither x86_64"},
		{[]string{demoFacts, "--glibc", "abc"}, 2, "no glibc version"},
		{[]string{demoFacts, "--gres", "foo"}, 2, "names no GPU as GRES do"},
		{[]string{put("br.json", `{"schema":"ncclinic.report/v1"}`)}, 2, `verdict ""`},
		{[]string{demoFacts, "--with", "npm"}, 2, "is not one of pip, uv"},
		{[]string{demoFacts, "--option", "7"}, 2, "is not 1, keep, 2 or newest"},
		{[]string{demoFacts, "--format", "xml"}, 2, "text, json or sh"},
		{[]string{demoFacts, "--index", "/nowhere"}, 2, "--index"},
		{[]string{demoFacts, "--index", put("ix", "numpy-2.whl")}, 2, "names no torch wheel"},
		{[]string{demoFacts, "--modules", put("bin", "a\x00b")}, 2, "not a text file"},
		{[]string{demoFacts, "--with", "module"}, 2, "needs --modules"},
		{[]string{demoFacts, "--project", dir}, 2, "not a regular file but a folder"},
		{[]string{demoFacts, "--facts", put("f.json", "{}")}, 2, "--facts"},
		{[]string{demoFacts, "--apply"}, 2, "needs a terminal"},
		{[]string{demoFacts, "--apply", "--format", "sh"}, 2, "not with --format"},
		{[]string{"a", "b"}, 2, "no such file"},
		{[]string{"4711", demoFacts}, 2, "the number of a job stands alone"},
		{[]string{filepath.Join(dir, "none.json")}, 2, "no such file"},
		{[]string{put("r.json", `{"schema":"ncclinic.report/v1","findings":7}`)}, 2, "cannot unmarshal"},
		{[]string{put("q.json", `{"schema":"ncclinic.plan/v1"}`)}, 2, "neither a report nor facts"},
		{[]string{demoFacts, "--torch", "2.99"}, 1, "the table ends at torch 2.15.0, read 2026-11-30"},
		{[]string{demoFacts, "--torch", "2.15.0"}, 1, "cu130 needs driver 580.65.06 or newer, gpu-h100-07 has 535.161.08"},
		{[]string{demoFacts, "--gpu", "H150"}, 1, "the compute capability of H150, which the table of GPUs does not hold (is H100 meant?)"},
		{[]string{demoFacts, "--driver", "580.65.06"}, 1, "580.65.06 was given by hand; the facts say 535.161.08"},
		{[]string{demoFacts, "--gpu", "GH200"}, 1, "GH200 sits beside an Arm CPU"},
	} {
		code, out, errs := runFix(t, c.args...)
		if code != c.code || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), c.says) {
			t.Errorf("fix %s: exit %d, want %d and %q:\n%s%s", strings.Join(c.args, " "), code, c.code, c.says, out, errs)
		}
	}
}

func TestFixJSON(t *testing.T) {
	code, out, errs := runFix(t, demoFacts, "--format", "json", "--lang", "zh")
	if code != 1 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got struct {
		Schema string
		Cause  string
		Option int
		Plan   struct {
			Schema  string
			Tables  struct{ Torch, Read string }
			Options []struct {
				ID, Torch, Tag, How, Certainty string
				GivesUp                        []struct{ ID, Text string }
				Steps                          []struct{ Kind string }
			}
			Rejected []struct {
				Torch, Tag string
				Why        struct{ ID, Text string }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "ncclinic.fix/v1" || got.Cause != "torch-cpu-build" || got.Plan.Schema != "ncclinic.plan/v1" || len(got.Plan.Options) != 2 {
		t.Fatalf("%+v", got)
	}
	o := got.Plan.Options[0]
	if o.ID != "keep" || o.Torch != "2.6.0" || o.Tag != "cu124" || o.How != "minor" || o.Certainty != "proven" || !strings.Contains(o.GivesUp[0].Text, "次版本兼容") {
		t.Errorf("%+v", o)
	}
	if r := got.Plan.Rejected[0]; r.Why.ID != "driver-compat" || !strings.Contains(r.Why.Text, "580.65.06") {
		t.Errorf("%+v", r)
	}
}

// TestFixAdministrator: what only an administrator can change comes as a text to
// send, with the evidence.
func TestFixAdministrator(t *testing.T) {
	rep := filepath.Join(t.TempDir(), "rep.json")
	const text = `{"schema":"ncclinic.report/v1","tool":"x","rules":"x","subject":{"kind":"job","name":"7"},"verdict":"broken","cause":"gpu-fabric-manager",
"findings":[{"id":"gpu-fabric-manager","role":"cause","severity":"error","certainty":"proven","actor":"admin","args":{},"where":[{"node":"gpu07"}],
"evidence":[{"source":"log","path":"slurm-7.out","line":12,"node":"gpu07","excerpt":"system not yet initialized"}],"explains":[],"needs":[],"fixes":[{"id":"restart","kind":"ask","safe":false,"commands":[]}],"count":1}],"ran":[],"problems":[]}`
	if err := os.WriteFile(rep, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runFix(t, rep)
	for _, want := range []string{"For the administrator", "Nodes: gpu07", "[gpu07] slurm-7.out:12: system not yet initialized", "Subject:"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q:\n%s%s", code, want, out, errs)
		}
	}
}

// TestFixScript: a batch script gets its safe edits as a patch.
func TestFixScript(t *testing.T) {
	name := filepath.Join(t.TempDir(), "train.sbatch")
	if err := os.WriteFile(name, []byte("#!/bin/bash\n#SBATCH --nodes=2\nset -e\n#SBATCH --gres=gpu:4\nsrun python train.py\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runFix(t, name)
	if code != 1 || !strings.Contains(out, "-set -e") && !strings.Contains(out, "+#SBATCH --gres=gpu:4") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
	code, out, _ = runFix(t, name, "--format", "sh")
	if code != 1 || !strings.HasPrefix(out, "#!/bin/sh\n") || !strings.Contains(out, "patch ") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestFixApply asks first, runs only package commands, and says how to go back.
func TestFixApply(t *testing.T) {
	dir := t.TempDir()
	venv := filepath.Join(dir, "venv")
	site := filepath.Join(venv, "lib/python3.11/site-packages")
	files := map[string]string{
		filepath.Join(venv, "pyvenv.cfg"): "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n",
		// The interpreter writes down how it was called.
		filepath.Join(venv, "bin/python"):                         "#!/bin/sh\necho \"$@\" >> " + dir + "/calls\nexit 0\n",
		filepath.Join(site, "torch/__init__.py"):                  "",
		filepath.Join(site, "torch/version.py"):                   "__version__ = '2.6.0+cpu'\ncuda = None\nhip = None\n",
		filepath.Join(site, "torch-2.6.0+cpu.dist-info/METADATA"): "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cpu\n",
	}
	for p, text := range files {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(answer string) (int, string) {
		var o bytes.Buffer
		a := &app{Streams: Streams{In: strings.NewReader(answer), Out: &o, Err: &o, Getenv: func(string) string { return "" }, Terminal: func() (bool, int) { return true, 100 }}, lang: "en", askAnyway: true}
		root := a.root()
		root.SetArgs([]string{"fix", "--python", filepath.Join(venv, "bin/python"), "--driver", "550.54.15", "--gpu", "A100", "--arch", "x86_64", "--apply"})
		root.SetOut(&o)
		err := root.Execute()
		code, ok := err.(exitError)
		if err != nil && !ok {
			t.Logf("%v", err)
			return 2, o.String()
		}
		return int(code), o.String()
	}
	code, out := apply("no\n")
	if _, err := os.Stat(filepath.Join(dir, "calls")); err == nil || code != 1 || !strings.Contains(out, "Nothing was run") {
		t.Fatalf("exit %d after no: %s", code, out)
	}
	code, out = apply("yes\n")
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	if code != 0 || !strings.Contains(string(calls), "-m pip install torch==2.6.0+cu124 --index-url https://download.pytorch.org/whl/cu124") || !strings.Contains(string(calls), "-m pip freeze") {
		t.Fatalf("exit %d: %s\ncalls:\n%s", code, out, calls)
	}
	if strings.Contains(string(calls), "get_device_name") || !strings.Contains(out, "To go back:") {
		t.Errorf("calls:\n%s\n%s", calls, out)
	}
	if m, _ := filepath.Glob(filepath.Join(venv, "ncclinic-before-*.txt")); len(m) != 1 {
		t.Errorf("saved state: %v", m)
	}
}

// TestFixScriptSecrets: the patch of a script with secrets shows none, applies
// once, and leaves nothing behind.
func TestFixScriptSecrets(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		testenv.Need(t, "patch", "apt-get install patch")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "t.sbatch")
	script := "#!/bin/bash\n#SBATCH --gpus=1\nexport HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n#SBATCH --nodes=1\nexport DB_PASSWORD=pa55word\nNCCL_DEBUG=WARN\nexport API_KEY=pa55word\nsrun python t.py\n"
	if err := os.WriteFile(name, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	_, out, _ := runFix(t, "--format", "sh", name)
	if strings.Contains(out, "abcdefghijkl") || strings.Contains(out, "pa55") || strings.Contains(regexp.MustCompile(`(?m)^# .*$`).ReplaceAllString(out, ""), "***") || !strings.Contains(out, "+export NCCL_DEBUG=WARN") {
		t.Fatal(out)
	}
	want := "#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH --nodes=1\nexport HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\nexport DB_PASSWORD=pa55word\nexport NCCL_DEBUG=WARN\nexport API_KEY=pa55word\nsrun python t.py\n"
	for range 2 { // applied once
		cmd := exec.Command("sh")
		cmd.Stdin, cmd.Dir = strings.NewReader(out), dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(patch)+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		if got, _ := os.ReadFile(name); err != nil || string(got) != want {
			t.Fatalf("%v %s\n%s\n%s", err, said, got, out)
		}
	}
	for _, left := range []string{".orig", ".rej"} {
		if _, err := os.Stat(name + left); err == nil {
			t.Errorf("%s is left", left)
		}
	}
	// An edit of a line with a secret is not shown, but named.
	if err := os.WriteFile(name, []byte("#!/bin/bash\n #SBATCH --comment=token=pa55word\nsrun python t.py\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"sh", "text"} {
		_, out, _ = runFix(t, "--format", format, name)
		if one := strings.Join(strings.Fields(strings.ReplaceAll(out, "\n# ", " ")), " "); strings.Contains(out, "pa55") || !strings.Contains(one, "ncclinic lint --fix "+name) || strings.Contains(out, "cat >") {
			t.Errorf("%s:\n%s", format, out)
		}
	}
}
