//go:build linux && (amd64 || arm64)

package run

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// A supervisor passes signals on, but not those that its command has got
// already: slurmstepd signals all processes of a step, a terminal those of its
// foreground group. Who sent a signal stands in its siginfo, which os/signal does
// not tell, and Go programs cannot block SIGTERM and the like in all threads to
// read them from a signalfd. So these signals get a handler of their own, a few
// instructions that write the siginfo to a pipe.

// passed are the signals that people and schedulers send. Faults of the process
// itself and SIGURG (Go's own) stay with the runtime.
func passed() []syscall.Signal {
	out := []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGXCPU, syscall.SIGPWR}
	for s := syscall.Signal(34); s <= 64; s++ { // below are those of C libraries
		out = append(out, s)
	}
	return out
}

// signalPipe is the end of the pipe that the handler writes to.
//
//lint:ignore U1000 the handler, which is assembly, reads it
var signalPipe int32 = -1

// handlers returns the addresses of the handler and of what ends it.
func handlers() (note, leave uintptr)

// sigaction is the kernel's struct.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	sigIgn                                      = 1
	saSiginfo, saRestorer, saOnstack, saRestart = 0x4, 0x04000000, 0x08000000, 0x10000000
	siginfoSize                                 = 128
)

func rtSigaction(sig syscall.Signal, act, old *sigaction) error {
	_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// noteSignals makes the handler write to a pipe and returns its other end.
// Signals that are ignored (nohup) stay so.
func noteSignals() (int, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return -1, err
	}
	// A handler must not wait.
	if err := syscall.SetNonblock(p[1], true); err != nil {
		return -1, err
	}
	signalPipe = int32(p[1])
	note, leave := handlers()
	act := sigaction{handler: note, flags: saSiginfo | saOnstack | saRestart, restorer: leave, mask: ^uint64(0)}
	if leave != 0 {
		act.flags |= saRestorer
	}
	for _, s := range passed() {
		var old sigaction
		if err := rtSigaction(s, nil, &old); err != nil || old.handler == sigIgn {
			continue
		}
		if err := rtSigaction(s, &act, nil); err != nil {
			return -1, err
		}
	}
	return p[0], nil
}

// forward reads the pipe, notes what came and passes on what the command has not got.
func forward(fd int, note func(Heard), send func(syscall.Signal)) {
	var info [siginfoSize]byte
	for {
		n, err := syscall.Read(fd, info[:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n < len(info) {
			return
		}
		sig := syscall.Signal(binary.NativeEndian.Uint32(info[0:]))
		code := int32(binary.NativeEndian.Uint32(info[8:]))
		h := Heard{Signal: int(sig), From: Terminal, All: code > 0} // code above 0: the kernel, for a terminal's whole group
		if !h.All {
			h.From, h.All = sender(int(binary.NativeEndian.Uint32(info[16:])))
		}
		note(h)
		if !h.All {
			send(sig)
		}
	}
}

// sender returns the name of the process that sent a signal, and whether it
// signals all processes of the step: it is slurmstepd, or nobody that this process
// may see (outside of its container).
func sender(pid int) (string, bool) {
	if pid == 0 {
		return "", os.Getenv("SLURM_JOB_ID") != ""
	}
	comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return "", false
	}
	name := strings.TrimSpace(string(comm))
	return name, strings.HasPrefix(name, Stepd)
}

// maxHeard bounds what is kept of signals.
const maxHeard = 64

// ears keep the signals that came.
type ears struct {
	mu  sync.Mutex
	all []Heard
}

func (e *ears) note(h Heard) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) == maxHeard {
		copy(e.all, e.all[1:])
		e.all = e.all[:maxHeard-1]
	}
	e.all = append(e.all, h)
}

// straggler is how long the same signal may take to arrive here too: whoever
// signals all processes of a step takes one after the other.
const straggler = 100 * time.Millisecond

// heard returns what came, the signal that ended the command first when it is to
// come: a sender that is gone by now has been looked up when it did.
func (e *ears) heard(ended int) []Heard {
	for end := time.Now().Add(straggler); ; time.Sleep(5 * time.Millisecond) {
		e.mu.Lock()
		all := slices.Clone(e.all)
		e.mu.Unlock()
		if ended == 0 || ended == int(syscall.SIGKILL) || time.Now().After(end) || slices.ContainsFunc(all, func(h Heard) bool { return h.Signal == ended }) {
			return all
		}
	}
}

// dieFrom ends this process by a signal.
func dieFrom(sig syscall.Signal) {
	_ = rtSigaction(sig, &sigaction{}, nil) // SIG_DFL
	var none uint64
	const setMask = 2
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), sig)
}
