package run

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

// askGrace is how long a command may take to end after it was asked to.
const askGrace = 6 * time.Second

var _ source.Streamer = Real{}

// Stream runs a command whose output is read while it runs. c.Timeout of 0 is
// no limit here: ctx ends it. The writers see all output before Stream returns,
// unless a child that left the process group holds the pipes.
func (r Real) Stream(ctx context.Context, c source.Cmd, s source.Streams) (source.Result, error) {
	start := time.Now()
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return source.Result{}, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = c.Env
	if cmd.Env == nil {
		cmd.Env = r.Env
	}
	ownGroup(cmd)
	// A parent that is killed cannot end what it started; the kernel does it then.
	// The signal goes with the thread that starts the command: it must live on.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent(cmd)
	var stdin io.WriteCloser
	if s.Stdin != nil {
		// A pipe of our own: with cmd.Stdin, Wait would wait for a reader that nobody closes.
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return source.Result{}, err
		}
	}
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	cmd.WaitDelay = askGrace // what it wrote last must be read, on a busy machine too
	if err := cmd.Start(); err != nil {
		return source.Result{}, err
	}
	if stdin != nil {
		go func() {
			_, _ = io.Copy(stdin, s.Stdin) // ends with the command's end of the pipe at the latest
			stdin.Close()
		}()
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	var err error
	asked, killed := false, false
	select {
	case err = <-exited:
	case <-ctx.Done():
		asked = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err = <-exited:
		case <-time.After(askGrace):
			killed = true
			killGroup(cmd)
			select {
			case err = <-exited:
			case <-time.After(grace): // it sleeps in the kernel
			}
		}
	}
	res := source.Result{Wall: time.Since(start), TimedOut: asked}
	var exit *exec.ExitError
	switch {
	case killed:
		res.Code = -1
	case errors.As(err, &exit):
		res.Code = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
	case err != nil:
		return res, err
	}
	return res, nil
}
