// Package run holds the live machine: it starts commands and asks the kernel.
// It is the only package that imports os/exec.
package run

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

// grace is how long a killed or finished command may keep its pipes open
// before they are closed under its children.
const grace = 300 * time.Millisecond

// Real starts commands on this machine. Never through a shell; in a session
// and process group of their own, which are killed as a whole at the time
// limit; with no standard input unless some is given; with bounded output.
type Real struct {
	// Env is the environment of commands that bring none; nil: that of this process.
	Env []string
}

// LookPath finds a program on PATH. A hit in the current folder (PATH=.) is
// refused, as os/exec does.
func (Real) LookPath(name string) (string, error) { return exec.LookPath(name) }

// Run starts a command and waits for it, at most c.Limit(). A command that
// hangs in the kernel cannot be killed (an nvidia-smi whose driver is wedged
// sleeps uninterruptibly); it is left behind and Run returns all the same.
func (r Real) Run(ctx context.Context, c source.Cmd) (source.Result, error) {
	limit := c.Limit()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = c.Env
	if cmd.Env == nil {
		cmd.Env = r.Env
	}
	ownGroup(cmd)
	out, err := newPipe(c.MaxBytes())
	if err != nil {
		return source.Result{}, err
	}
	defer out.close()
	errs, err := newPipe(c.MaxBytes())
	if err != nil {
		return source.Result{}, err
	}
	defer errs.close()
	cmd.Stdout, cmd.Stderr = out.w, errs.w
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	cmd.WaitDelay = grace // for the writer of standard input
	if err := ctx.Err(); err != nil {
		return source.Result{}, err
	}
	if err := cmd.Start(); err != nil {
		return source.Result{}, err
	}
	out.start()
	errs.start()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	timedOut := false
	select {
	case err = <-exited:
	case <-ctx.Done():
		timedOut = true
		killGroup(cmd)
		select {
		case <-exited:
		case <-time.After(grace):
		}
	}
	if !out.drained(grace) || !errs.drained(grace) {
		// Children of the command still hold a pipe, so its group is not empty (or
		// they left it) and the group's number cannot belong to others yet.
		killGroup(cmd)
		out.drained(grace)
		errs.drained(grace)
	}
	res := source.Result{Wall: time.Since(start), TimedOut: timedOut}
	res.Stdout, res.Truncated = out.keep.bytes()
	var cut bool
	res.Stderr, cut = errs.keep.bytes()
	res.Truncated = res.Truncated || cut
	var exit *exec.ExitError
	switch {
	case timedOut:
		res.Code = -1
	case errors.As(err, &exit):
		res.Code = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay): // it did not read all of its input
	case err != nil:
		return res, err
	}
	return res, nil
}

// head keeps the first max bytes that are written to it and drops the rest, so
// that a command with much to say neither fills memory nor blocks. It is read
// while a command that was left behind may still write.
type head struct {
	mu  sync.Mutex
	buf []byte
	max int
	cut bool
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	if room := h.max - len(h.buf); len(p) > room {
		p, h.cut = p[:room], true
	}
	h.buf = append(h.buf, p...)
	return n, nil
}

func (h *head) bytes() ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]byte(nil), h.buf...), h.cut
}

// pipe takes in one output stream of a command. It is our own instead of
// os/exec's because only so the end of the command and the end of its output
// can be told apart.
type pipe struct {
	r, w *os.File
	keep head
	eof  chan struct{}
}

func newPipe(max int) (*pipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &pipe{r: r, w: w, keep: head{max: max}, eof: make(chan struct{})}, nil
}

func (p *pipe) start() {
	p.w.Close() // the command has its copy
	go func() {
		_, _ = io.Copy(&p.keep, p.r)
		close(p.eof)
	}()
}

// drained reports whether all writers have closed their end within d.
func (p *pipe) drained(d time.Duration) bool {
	select {
	case <-p.eof:
		return true
	case <-time.After(d):
		return false
	}
}

func (p *pipe) close() {
	p.w.Close()
	p.r.Close() // unblocks the reader
}

// MinimalEnv returns the few variables that a helper command needs, in the C
// locale; keep names further ones that are passed on.
func MinimalEnv(keep ...string) []string {
	var env []string
	for _, k := range append([]string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR"}, keep...) {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return append(env, "LC_ALL=C")
}
