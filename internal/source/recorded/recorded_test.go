package recorded

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/ncclinic/ncclinic/internal/source"
)

const record = `
-- tree/proc/driver/nvidia/gpus/0000:1b:00.0/information --
Model: x
-- tree/sys/devices/pci0000:00/0000:1b:00.0/class --
0x030200
-- links --
# as in sysfs
sys/bus/pci/devices/0000:1b:00.0 -> ../../../devices/pci0000:00/0000:1b:00.0
/etc/localtime -> /proc/driver/nvidia/gpus/0000:1b:00.0/information
-- env --
HOME=/home/u
A=b=c
-- cmd/a --
$ nvidia-smi --query-gpu=*
# exit 2
# millis 30
Field "x" is not a valid field to query.
-- cmd/b --
$ /opt/bin/nvidia-smi --version
# hang
-- cmd/c --
$ nvidia-smi --query-gpu=name --format=csv
H100
# stderr
warning
-- os.json --
{"uid": 1000, "release": "5.15", "arch": "x86_64", "cpus": 8,
 "statfs": {"/dev/shm": {"path": "", "total": 10, "free": 3}}, "denied": {"/dev/nvidia0": "permission denied"}}
`

func machine(t *testing.T, text string) *source.Machine {
	t.Helper()
	fsys, err := txtar.FS(txtar.Parse([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Machine(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMachine(t *testing.T) {
	m := machine(t, record)
	for path, want := range map[string]string{
		"sys/bus/pci/devices/0000:1b:00.0/class": "0x030200\n",
		"etc/localtime":                          "Model: x\n",
	} {
		if b, err := fs.ReadFile(m.FS, path); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if l, err := fs.ReadLink(m.FS, "sys/bus/pci/devices/0000:1b:00.0"); err != nil || !strings.HasSuffix(l, "pci0000:00/0000:1b:00.0") {
		t.Errorf("link %q, %v", l, err)
	}
	if m.Home != "/home/u" || m.Env["A"] != "b=c" || m.UID != 1000 {
		t.Errorf("%+v", m)
	}
	if u, err := m.OS.Statfs("/dev/shm/x"); err != nil || u.Free != 3 || u.Path != "/dev/shm" {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := m.OS.Interfaces(); err == nil {
		t.Error("interfaces that nobody recorded")
	}
	if err := m.OS.Access("/dev/nvidia0"); err == nil {
		t.Error("denied, but allowed")
	}
}

func TestRun(t *testing.T) {
	m := machine(t, record)
	ctx := context.Background()
	p, err := m.Runner.LookPath("nvidia-smi")
	if err != nil || p != "/usr/bin/nvidia-smi" {
		t.Fatal(p, err)
	}
	r, err := m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--query-gpu=x", "--format=csv"}})
	if err != nil || r.Code != 2 || r.Wall != 30*time.Millisecond || !strings.HasPrefix(string(r.Stdout), "Field") {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--query-gpu=name", "--format=csv"}})
	if err != nil || string(r.Stdout) != "H100\n" || string(r.Stderr) != "warning\n" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"-q"}}); err == nil {
		t.Error("ran what was not recorded")
	}
	r, err = m.Runner.Run(ctx, source.Cmd{Path: "/opt/bin/nvidia-smi", Args: []string{"--version"}, Timeout: time.Minute})
	if err != nil || !r.TimedOut || r.Wall != time.Minute {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBadRecords(t *testing.T) {
	for _, text := range []string{
		"-- env --\nno sign\n", "-- links --\na b\n", "-- os.json --\n{\"typo\": 1}\n",
		"-- cmd/a --\nno dollar\n", "-- cmd/a --\n$ a\n# exit x\n", "-- cmd/a --\n$ a\n# nonsense\n",
	} {
		fsys, err := txtar.FS(txtar.Parse([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Machine(fsys); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$ a b*\n# exit 1\nout\n# stderr\nerr\n")
	f.Fuzz(func(t *testing.T, s string) { _, _ = Parse(s) })
}
