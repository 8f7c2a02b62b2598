package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

func sh(script string) source.Cmd {
	return source.Cmd{Path: "/bin/sh", Args: []string{"-c", script}, Timeout: 20 * time.Second}
}

func mustRun(t *testing.T, c source.Cmd) source.Result {
	t.Helper()
	r, err := Real{}.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	r := mustRun(t, sh("echo out; echo err >&2; exit 3"))
	if string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" || r.Code != 3 || r.TimedOut || r.Truncated {
		t.Errorf("%+v", r)
	}
	if r := mustRun(t, sh("cat")); len(r.Stdout) != 0 || r.Wall > 5*time.Second {
		t.Errorf("standard input is not empty: %+v", r)
	}
	c := sh("cat")
	c.Stdin = []byte("hello")
	if r := mustRun(t, c); string(r.Stdout) != "hello" {
		t.Errorf("%+v", r)
	}
	if _, err := (Real{}).Run(context.Background(), source.Cmd{Path: "/no/such/program"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if r := mustRun(t, sh("kill -9 $$")); r.Code != -1 || r.TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestEnv(t *testing.T) {
	t.Setenv("NCCLINIC_TEST", "1")
	if r := mustRun(t, sh("echo $NCCLINIC_TEST")); string(r.Stdout) != "1\n" {
		t.Errorf("%q", r.Stdout)
	}
	c := sh("echo $NCCLINIC_TEST-$LC_ALL")
	c.Env = MinimalEnv()
	if r := mustRun(t, c); string(r.Stdout) != "-C\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestOutputIsBounded(t *testing.T) {
	c := sh("yes | head -c 5000000; yes | head -c 5000000 >&2")
	c.MaxOut = 1000
	r := mustRun(t, c)
	if len(r.Stdout) != 1000 || len(r.Stderr) != 1000 || !r.Truncated || r.Code != 0 {
		t.Errorf("%d and %d bytes, %+v", len(r.Stdout), len(r.Stderr), r.Code)
	}
}

// alive reports whether a process is there and not a zombie that its new
// parent has not collected yet.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func gone(t *testing.T, pidFile string) {
	t.Helper()
	b, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

func TestTimeLimitKillsTheGroup(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	c := sh("trap '' TERM INT; sleep 300 & echo $! > " + pid + "; echo early; wait")
	c.Timeout = 300 * time.Millisecond
	start := time.Now()
	r := mustRun(t, c)
	if !r.TimedOut || r.Code != -1 || string(r.Stdout) != "early\n" {
		t.Errorf("%+v", r)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("took %s", d)
	}
	gone(t, pid)
}

func TestChildrenHoldingThePipes(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	start := time.Now()
	r := mustRun(t, sh("sleep 300 & echo $! > "+pid+"; echo done; exit 4"))
	if r.TimedOut || r.Code != 4 || string(r.Stdout) != "done\n" {
		t.Errorf("%+v", r)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
	gone(t, pid)
}

// A grandchild that left the group cannot be killed with it; it must not keep Run waiting.
func TestRunawayGrandchild(t *testing.T) {
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Log("no setsid: a plain child stands in")
	}
	c := sh("setsid sleep 3 & wait")
	c.Timeout = 300 * time.Millisecond
	start := time.Now()
	if r := mustRun(t, c); !r.TimedOut {
		t.Errorf("%+v", r)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	if r, err := (Real{}).Run(ctx, sh("sleep 60")); err != nil || !r.TimedOut || time.Since(start) > 3*time.Second {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMachine(t *testing.T) {
	m, err := NewMachine()
	if err != nil {
		t.Fatal(err)
	}
	if m.Home == "" || m.Env["PATH"] == "" {
		t.Errorf("home %q, path %q", m.Home, m.Env["PATH"])
	}
	rel, arch, err := m.OS.Uname()
	if err != nil || rel == "" || arch == "" || strings.ContainsRune(rel, 0) {
		t.Errorf("%q %q %v", rel, arch, err)
	}
	if n := m.OS.CPUs(); n < 1 {
		t.Errorf("%d CPUs", n)
	}
	if u, err := m.OS.Statfs("/proc"); err != nil || u.Path != "/proc" {
		t.Errorf("%+v, %v", u, err)
	}
	ifs, err := m.OS.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range ifs {
		if i.Name == "" {
			t.Errorf("%+v", i)
		}
	}
	if err := m.OS.Access("/dev/null"); err != nil {
		t.Error(err)
	}
	if err := m.OS.Access("/no/such/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestRootFSNeitherHangsNorOpensDevices(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	fsys := rootFS()
	for _, p := range []string{fifo, "/dev/null", loop} {
		done := make(chan error, 1)
		go func() {
			_, err := fsys.Open(source.Rel(p))
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: opened", p)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: hangs", p)
		}
	}
	if l, err := fs.ReadLink(fsys, source.Rel(loop)); err != nil || l != "loop" {
		t.Errorf("%q, %v", l, err)
	}
	if b, err := source.ReadFile(fsys, "/proc/self/status", 1<<16); err != nil || len(b) == 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := source.ReadFile(fsys, "/proc/self/status", 10); !errors.Is(err, source.ErrTooLong) {
		t.Errorf("error is %v", err)
	}
}
