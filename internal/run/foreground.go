package run

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

// Foreground runs a command that a person asked for and watches: its output goes
// straight on, it has no time limit and no standard input, and it ends with ctx.
// It returns the command's exit status.
func Foreground(ctx context.Context, c source.Cmd, out, errs io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.Stdout, cmd.Stderr = out, errs
	// An installer that is told to stop cleans up; one that is killed does not.
	// The group, because a shell waits for its child and hears nothing.
	apart(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), ctx.Err()
	}
	return 0, err
}
