package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// lastWords is how long a run may go on after a signal: long enough to kill the
// commands that it started, which are in sessions of their own and hear nothing
// of a Ctrl-C.
const lastWords = 2 * time.Second

// interruptible returns a context that ends at SIGINT, SIGTERM or SIGHUP, and
// the signal that ended it, 0 for none. A second signal, or work that goes on
// (a call that waits for a dead file system cannot be cancelled), ends the
// process at once.
func interruptible(errs io.Writer) (ctx context.Context, caught func() syscall.Signal, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var sig atomic.Int32
	done := make(chan struct{})
	go func() {
		select {
		case s := <-ch:
			if n, ok := s.(syscall.Signal); ok {
				sig.Store(int32(n))
			}
		case <-done:
			return
		}
		cancel()
		select {
		case <-ch:
		case <-time.After(lastWords):
		case <-done:
			return
		}
		fmt.Fprintln(errs, "ncclinic: interrupted")
		os.Exit(128 + int(sig.Load()))
	}()
	return ctx, func() syscall.Signal { return syscall.Signal(sig.Load()) }, func() {
		signal.Stop(ch)
		close(done)
		cancel()
	}
}
