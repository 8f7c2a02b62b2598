//go:build linux && (amd64 || arm64)

package run

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// headKept is how much of the beginning of a stream is kept: what programs say
// of versions and settings.
const headKept = 256 << 10

// Supervise runs a command as a child, in the same process group, with the same
// standard input. Output that is no terminal goes through a pipe and is passed on
// byte for byte as it comes; its beginning and the last tail bytes are kept.
// Signals are this package's business from here on: nothing else of the process
// sees them.
func Supervise(argv, env []string, tail int) (Ended, error) {
	p, err := Find(argv[0])
	if err != nil {
		return Ended{}, err
	}
	// The death signal of a child is tied to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signal.Reset()
	fd, err := noteSignals()
	if err != nil {
		return Ended{}, err
	}
	cmd := &exec.Cmd{Path: p, Args: argv, Env: env, Stdin: os.Stdin, SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	tees, err := tee(cmd, tail)
	if err != nil {
		return Ended{}, err
	}
	if err := cmd.Start(); err != nil {
		return Ended{}, err
	}
	var ears ears
	go forward(fd, ears.note, func(sig syscall.Signal) { _ = cmd.Process.Signal(sig) }) // of one that has ended: an error
	for _, t := range tees {
		t.start()
	}
	err = cmd.Wait()
	for _, t := range tees {
		t.drain()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Ended{}, err
	}
	out := Ended{}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		out.Code, out.Signal = -1, int(ws.Signal())
	} else {
		out.Code = ws.ExitStatus()
	}
	out.Heard = ears.heard(out.Signal)
	for _, t := range tees {
		text, missing := t.tape.Bytes()
		out.Streams = append(out.Streams, Captured{t.name, text, missing})
	}
	return out, nil
}

// tee puts pipes in front of the standard streams that are no terminals. When
// both are one file, one pipe serves them, so that their order stays.
func tee(cmd *exec.Cmd, tail int) ([]*stream, error) {
	var so, se syscall.Stat_t
	okOut, okErr := syscall.Fstat(1, &so) == nil, syscall.Fstat(2, &se) == nil
	same := okOut && okErr && so.Dev == se.Dev && so.Ino == se.Ino && so.Rdev == se.Rdev
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var out []*stream
	add := func(name string, fd int) (*os.File, error) {
		t, err := newStream(name, fd, tail)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		return t.w, nil
	}
	if okOut && !isTerminal(1) {
		name := "stdout"
		if same {
			name = "output"
		}
		w, err := add(name, 1)
		if err != nil {
			return nil, err
		}
		cmd.Stdout = w
		if same {
			cmd.Stderr = w
		}
	}
	if okErr && !same && !isTerminal(2) {
		w, err := add("stderr", 2)
		if err != nil {
			return nil, err
		}
		cmd.Stderr = w
	}
	return out, nil
}

func isTerminal(fd int) bool {
	var t [256]byte
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TCGETS, uintptr(unsafe.Pointer(&t)))
	return e == 0
}

// stream passes one output on.
type stream struct {
	name string
	to   int
	r, w *os.File
	tape *Tape
	done chan struct{}
	last atomic.Int64 // time of the last read, in nanoseconds
}

func newStream(name string, to, tail int) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stream{name: name, to: to, r: r, w: w, tape: NewTape(headKept, tail), done: make(chan struct{})}, nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

func (t *stream) start() {
	t.w.Close() // the command has its copy
	t.last.Store(time.Now().UnixNano())
	go func() {
		defer close(t.done)
		buf := *buffers.Get().(*[]byte)
		for {
			n, err := t.r.Read(buf)
			if n > 0 {
				t.last.Store(time.Now().UnixNano())
				if werr := writeAll(t.to, buf[:n]); werr != nil {
					// Nobody reads any more, or the disk is full: the command hears of it
					// at its next write, as it would without us.
					t.r.Close()
					return
				}
				_, _ = t.tape.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
}

// quiet is how long a stream that children of the command still hold may say
// nothing before it is left; slurmstepd kills them at the end of the step.
const quiet = time.Second

// drain waits until all is passed on.
func (t *stream) drain() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.Now()
	for {
		select {
		case <-t.done:
			return
		case <-tick.C:
			last := time.Unix(0, t.last.Load())
			if last.Before(end) {
				last = end
			}
			if time.Since(last) > quiet {
				t.r.Close()
				return
			}
		}
	}
}

func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		switch {
		case n > 0:
			p = p[n:]
		case err == syscall.EINTR:
		case err == syscall.EAGAIN: // somebody made it non-blocking for all
			time.Sleep(time.Millisecond)
		case err != nil:
			return err
		}
	}
	return nil
}

// Die ends this process as the command ended, so that whoever waits sees the
// same exit status or signal. It does not return.
func (e Ended) Die() {
	if e.Signal == 0 {
		os.Exit(e.Code)
	}
	// No core file of ours beside that of the command.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	runtime.LockOSThread()
	dieFrom(syscall.Signal(e.Signal))
	time.Sleep(time.Second)
	os.Exit(128 + e.Signal)
}
