package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// try runs one command line in this process, in an environment without a home
// or variables.
func try(out *bytes.Buffer, args ...string) (code int, stderr string) {
	var errs bytes.Buffer
	code = Main(args, Streams{In: strings.NewReader(""), Out: out, Err: &errs, Getenv: func(string) string { return "" }})
	return code, errs.String()
}

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/dead/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/python3.11", dir+"/dead/bin/python"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"chekc"}, "no such command"},
		{[]string{"x\x1b[31m\u202e.json"}, "x␛[31m\ufffd.json"},
		{[]string{"check", "https://u:hunter2@h/x.json"}, "https://***@h/x.json"},
		{[]string{"--lang", "fr"}, "--lang"},
		{[]string{"check", "--timeout", "0"}, "--timeout"},
		{[]string{"check", "--timeout", "-1s"}, "--timeout"},
		{[]string{"check", "--python", "python9.9"}, "python9.9"},
		{[]string{"facts", "--python", dir + "/none"}, dir + "/none"},
		{[]string{"check", dir + "/dead"}, "is a link that ends at /nowhere/python3.11"},
	} {
		var out bytes.Buffer
		code, errs := try(&out, c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) || strings.ContainsAny(errs, "\x1b\u202e") || strings.Contains(errs, "hunter2") {
			t.Errorf("%q: status %d, %q, want %q", c.args, code, errs, c.want)
		}
	}
}

// TestSecrets looks for a secret in whatever leaves the program.
func TestSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	t.Setenv("NCCL_FOO_TOKEN", secret)
	t.Setenv("NCCL_SOCKET_IFNAME", "eth0 token="+secret)
	t.Setenv("NCCL_NET_PLUGIN", "https://u:"+secret+"@h/x")
	t.Setenv("PYTHONPATH", "/srv/password="+secret)
	t.Setenv("SLURM_JOB_ID", "1 password="+secret)
	t.Setenv("CONDA_PREFIX", "/c/token="+secret)
	env := t.TempDir()
	site := env + "/lib/python3.11/site-packages"
	for name, text := range map[string]string{
		env + "/pyvenv.cfg":                       "home = /usr/bin\nversion = 3.11.2\n",
		site + "/torch/__init__.py":               "",
		site + "/torch/version.py":                "__version__ = '2.6.0'\ncuda = '12.4'\ngit_version = 'https://u:" + secret + "@h'\n",
		site + "/torch-2.6.0.dist-info/METADATA":  "Name: torch\nVersion: 2.6.0\n",
		site + "/torch-2.6.0.dist-info/INSTALLER": "https://u:" + secret + "@h",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(env+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(env+"/bin/python", []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "-v", env}, {"check", "--format", "json", env}, {"facts", "--python", env}} {
		var out bytes.Buffer
		code, errs := try(&out, args...)
		if code == exitUsage || out.Len() == 0 {
			t.Fatalf("%q: status %d, %s", args, code, errs)
		}
		if i := strings.Index(out.String()+errs, secret); i >= 0 {
			t.Errorf("%q shows a secret: %q", args, (out.String() + errs)[max(0, i-80):i+5])
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestFullDisk: a list that was cut short must not look like the whole.
func TestFullDisk(t *testing.T) {
	for _, args := range [][]string{{"rules"}, {"--help"}, {"version"}, {"demo"}, {"demo", "--format", "json"}, {"man"}} {
		var errs bytes.Buffer
		code := Main(args, Streams{In: strings.NewReader(""), Out: full{}, Err: &errs, Getenv: func(string) string { return "" }})
		if code != exitUsage || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: status %d, %q", args, code, errs.String())
		}
	}
}

// TestWorkingDirectory: PWD of a launcher that changed the folder is old.
func TestWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PWD", "/nowhere")
	t.Setenv("PYTHONPATH", "lib")
	if err := os.MkdirAll(dir+"/lib/torch", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/lib/torch/__init__.py", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	python := dir + "/bin/python3.11"
	if err := os.MkdirAll(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(python, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code, errs := try(&out, "facts", "--python", "bin/python3.11"); code != exitOK || !strings.Contains(out.String(), dir+"/lib/torch") {
		t.Errorf("status %d, %s: the torch in the folder of PYTHONPATH is not among the facts", code, errs)
	}
}
