//go:build linux && (amd64 || arm64)

package run

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// helperEnv makes this test binary the program under test: "explain" and "exec"
// are the two ways to start a command, whose line follows "--".
const helperEnv = "NCCLINIC_TEST_RUN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(helperEnv); mode != "" {
		os.Unsetenv(helperEnv)
		argv := os.Args[2:] // after "--"
		if mode == "exec" {
			err := Replace(argv, os.Environ())
			fmt.Fprintln(os.Stderr, err)
			os.Exit(ExecStatus(err))
		}
		kept := os.Getenv("NCCLINIC_TEST_KEPT")
		end, err := Supervise(argv, os.Environ(), 1<<20)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(ExecStatus(err))
		}
		for _, s := range end.Streams {
			if kept != "" && os.WriteFile(kept+"."+s.Name, s.Text, 0o600) != nil {
				os.Exit(98)
			}
		}
		if h, ok := end.Got(end.Signal); kept != "" && os.WriteFile(kept+".heard", fmt.Append(nil, h.From, " ", h.All, " ", ok), 0o600) != nil {
			os.Exit(98)
		}
		end.Die()
	}
	os.Exit(m.Run())
}

// guarded prepares a command that runs under the program: mode is explain,
// exec, or "" for the command as it is.
func guarded(t *testing.T, mode string, argv ...string) *exec.Cmd {
	t.Helper()
	if mode == "" {
		return exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, append([]string{"--"}, argv...)...)
	cmd.Env = append(os.Environ(), helperEnv+"="+mode)
	return cmd
}

var modes = []string{"", "exec", "explain"}

func status(t *testing.T, err error) syscall.WaitStatus {
	t.Helper()
	if err == nil {
		return 0
	}
	x, ok := err.(*exec.ExitError)
	if !ok {
		t.Fatal(err)
	}
	return x.Sys().(syscall.WaitStatus)
}

func TestStatusIsThatOfTheCommand(t *testing.T) {
	for _, script := range []string{"exit 0", "exit 1", "exit 255", "kill -TERM $$", "kill -KILL $$", "ulimit -c 0; kill -SEGV $$", "kill -USR1 $$", "kill -PIPE $$"} {
		for _, mode := range modes[1:] {
			want := status(t, guarded(t, "", "/bin/sh", "-c", script).Run())
			got := status(t, guarded(t, mode, "/bin/sh", "-c", script).Run())
			if got&^0x80 != want&^0x80 { // without the bit that tells of a core file
				t.Errorf("%s: %q ends with %#x, want %#x", mode, script, got, want)
			}
		}
	}
	for name, want := range map[string]int{"/no/such/program": 127, "no-such-program-anywhere": 127, "/etc/passwd": 126} {
		for _, mode := range modes[1:] {
			if got := status(t, guarded(t, mode, name).Run()).ExitStatus(); got != want {
				t.Errorf("%s: %s ends with %d, want %d", mode, name, got, want)
			}
		}
	}
}

// Every byte arrives, in order, also when the reader is slow at first.
func TestNoByteIsLost(t *testing.T) {
	const script = `head -c 30000000 /dev/urandom > "$1"; cat "$1" & head -c 3000000 "$1" >&2; wait; printf end`
	file := filepath.Join(t.TempDir(), "data")
	cmd := guarded(t, "explain", "/bin/sh", "-c", script, "sh", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	sums := sha256.New()
	cmd.Stderr = sums
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	n, err := io.Copy(got, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(append(data[:len(data):len(data)], "end"...)); n != 30000003 || !bytes.Equal(got.Sum(nil), want[:]) {
		t.Errorf("%d bytes, or others than were written", n)
	}
	if want := sha256.Sum256(data[:3000000]); !bytes.Equal(sums.Sum(nil), want[:]) {
		t.Error("standard error differs")
	}
}

// A byte without a line end comes at once: the command waits until it was seen.
func TestNothingIsHeldBack(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	cmd := guarded(t, "explain", "/bin/sh", "-c", `printf x; while [ ! -e "$1" ]; do sleep 0.01; done; printf y`, "sh", seen)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := io.ReadFull(out, b[:]); err != nil || b[0] != 'x' {
		t.Fatalf("%q, %v", b, err)
	}
	if err := os.WriteFile(seen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || string(rest) != "y" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestOneFileForBothStreamsKeepsTheirOrder(t *testing.T) {
	const script = `i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done`
	want, err := guarded(t, "", "/bin/sh", "-c", script+" 2>&1").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := guarded(t, "explain", "/bin/sh", "-c", script)
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf // os/exec gives both one pipe
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buf.Bytes(), want) {
		t.Error("lines come in another order")
	}
}

func TestStandardInputAndEnvironment(t *testing.T) {
	for _, mode := range modes[1:] {
		cmd := guarded(t, mode, "/bin/sh", "-c", "cat; env; ulimit -n; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; readlink /proc/self/fd/0 | cut -c1-4")
		cmd.Stdin = strings.NewReader("input\n")
		got, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		direct := guarded(t, "", "/bin/sh", "-c", "cat; env; ulimit -n; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; readlink /proc/self/fd/0 | cut -c1-4")
		direct.Stdin = strings.NewReader("input\n")
		want, err := direct.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: the command sees\n%s\nwithout us\n%s", mode, got, want)
		}
	}
}

// nohup's SIG_IGN must reach the command.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	for _, mode := range modes {
		cmd := guarded(t, mode, "/bin/sh", "-c", "kill -HUP $$; echo alive")
		if mode == "" {
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP; exec /bin/sh -c 'kill -HUP $$; echo alive'`}
		} else {
			inner := append([]string{"-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...)
			inner[2] = cmd.Path
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh"}, inner...)
		}
		out, err := cmd.Output()
		if err != nil || string(out) != "alive\n" {
			t.Errorf("%q: %q, %v", mode, out, err)
		}
	}
}

func TestReaderThatGoesAway(t *testing.T) {
	cmd := guarded(t, "explain", "/usr/bin/yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if ws := status(t, cmd.Wait()); !ws.Signaled() || ws.Signal() != syscall.SIGPIPE {
		t.Errorf("ends with %#x, want SIGPIPE", ws)
	}
}

// Children that outlive the command and hold its output must not hold us.
func TestChildrenThatStay(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	cmd := guarded(t, "explain", "/bin/sh", "-c", `sleep 600 & echo $! > "$1"; echo done; exit 4`, "sh", pid)
	out, err := cmd.Output()
	if ws := status(t, err); ws.ExitStatus() != 4 || string(out) != "done\n" {
		t.Errorf("%q, %#x", out, ws)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

// counter prints a line for each SIGUSR1 and ends at SIGTERM with status 6.
const counter = `trap 'echo usr1' USR1; trap 'echo term; exit 6' TERM; echo ready; while :; do sleep 0.02; done`

func TestSignalsArePassedOnOnce(t *testing.T) {
	cmd := guarded(t, "explain", "/bin/sh", "-c", counter)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	line := func() string {
		l, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(l)
	}
	if l := line(); l != "ready" {
		t.Fatal(l)
	}
	for range 3 {
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		if l := line(); l != "usr1" {
			t.Fatal(l)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(r)
	if ws := status(t, cmd.Wait()); ws.ExitStatus() != 6 || string(rest) != "term\n" {
		t.Errorf("%q, %#x", rest, ws)
	}
}

// TestWhoSentTheSignal: what came to the supervisor too, and from whom.
func TestWhoSentTheSignal(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"the command itself", "kill -TERM $$", " false false"},
		{"SIGKILL", "kill -KILL $$", " false false"},
		// $PPID is the supervisor, which passes on what sh sent it.
		{"to the supervisor", "kill -TERM $PPID; while :; do sleep 0.02; done", "sh false true"},
	} {
		kept := filepath.Join(t.TempDir(), "kept")
		cmd := guarded(t, "explain", "/bin/sh", "-c", tt.script)
		cmd.Env = append(cmd.Env, "NCCLINIC_TEST_KEPT="+kept)
		_ = cmd.Run()
		if b, err := os.ReadFile(kept + ".heard"); err != nil || string(b) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, b, err, tt.want)
		}
	}
}

func TestNoOrphanWhenKilled(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	cmd := guarded(t, "explain", "/bin/sh", "-c", `echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 600`, "sh", pid)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for t.Context().Err() == nil {
		if _, err := os.Stat(pid); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, pid)
}

// A terminal is handed on as it is.
func TestTerminal(t *testing.T) {
	ptmx, tty := openPTY(t)
	cmd := guarded(t, "explain", "/bin/sh", "-c", `[ -t 1 ] && [ -t 2 ] && echo terminal; exit 3`)
	cmd.Stdout, cmd.Stderr, cmd.Stdin = tty, tty, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	l, err := bufio.NewReader(ptmx).ReadString('\n')
	if err != nil || strings.TrimSpace(l) != "terminal" {
		t.Errorf("%q, %v", l, err)
	}
	if ws := status(t, cmd.Wait()); ws.ExitStatus() != 3 {
		t.Errorf("ends with %#x", ws)
	}
}

func openPTY(t *testing.T) (ptmx, tty *os.File) {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		testenv.Need(t, "/dev/ptmx", "a kernel with pseudo terminals")
	}
	t.Cleanup(func() { ptmx.Close() })
	var n, unlock uint32
	for _, c := range []struct{ req, arg uintptr }{{syscall.TIOCGPTN, uintptr(unsafe.Pointer(&n))}, {syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock))}} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, ptmx.Fd(), c.req, c.arg); e != 0 {
			t.Fatal(e)
		}
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ptmx, tty
}

func TestWhatIsKept(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	cmd := guarded(t, "explain", "/bin/sh", "-c", `echo first; seq 1 600000; echo last; echo problem >&2; exit 1`)
	cmd.Env = append(cmd.Env, "NCCLINIC_TEST_KEPT="+kept)
	cmd.Stdout, cmd.Stderr = io.Discard, new(bytes.Buffer)
	_ = cmd.Run()
	out, err := os.ReadFile(kept + ".stdout")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(out, []byte("first\n1\n")) || !bytes.HasSuffix(out, []byte("600000\nlast\n")) || len(out) > headKept+1<<20 {
		t.Errorf("%d bytes from %q", len(out), out[:20])
	}
	if b, err := os.ReadFile(kept + ".stderr"); err != nil || string(b) != "problem\n" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestTape(t *testing.T) {
	for _, tt := range []struct {
		head, tail int
		write      []string
		want       string
		missing    int64
	}{
		{100, 100, []string{"a\n", "b\n"}, "a\nb\n", 0},
		{2, 4, []string{"a\n", "b\n", "c\n"}, "a\nb\nc\n", 0},
		{2, 4, []string{"a\nb\nc\nd\ne\n"}, "a\ne\n", 6},
		{2, 4, []string{"a\n", "b\n", "c\n", "d\n", "e\n"}, "a\ne\n", 6},
		{0, 3, []string{"abc", "def"}, "def", 3},
		{0, 3, []string{"abcdefgh", "\n", "x"}, "x", 9},
	} {
		tape := NewTape(tt.head, tt.tail)
		for _, w := range tt.write {
			if n, err := tape.Write([]byte(w)); n != len(w) || err != nil {
				t.Fatal(n, err)
			}
		}
		got, missing := tape.Bytes()
		if string(got) != tt.want || missing != tt.missing {
			t.Errorf("%+v: %q, %d missing", tt, got, missing)
		}
	}
}

func FuzzTape(f *testing.F) {
	f.Add([]byte("a\nbb\nccc\n"), uint8(3), uint8(4), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, head, tail, step uint8) {
		tape := NewTape(int(head), int(tail))
		for i := 0; i < len(data); {
			k := min(len(data)-i, int(step)%7+1)
			_, _ = tape.Write(data[i : i+k])
			i += k
		}
		got, missing := tape.Bytes()
		if int64(len(got))+missing != int64(len(data)) {
			t.Fatalf("%d kept and %d missing of %d", len(got), missing, len(data))
		}
		if missing == 0 && !bytes.Equal(got, data) {
			t.Fatalf("%q of %q", got, data)
		}
	})
}
