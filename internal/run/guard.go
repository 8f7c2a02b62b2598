package run

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Replace turns this process into another program, as exec does in a shell:
// process number, standard streams, signals and limits stay as they are. It
// returns only when that fails.
func Replace(argv, env []string) error {
	p, err := Find(argv[0])
	if err != nil {
		return err
	}
	// What was ignored at the start (nohup) is ignored again; a handler would
	// have become the default.
	signal.Reset()
	err = syscall.Exec(p, argv, env)
	return &os.PathError{Op: "exec", Path: p, Err: err}
}

// Find looks a program up as a shell does: a name with a slash as it is, else on
// PATH. Unlike os/exec it takes a hit in the current folder too, when PATH says so.
func Find(name string) (string, error) {
	p, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", err
	}
	return p, nil
}

// ExecStatus is the exit status by which shells report a program that could not
// be started.
func ExecStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return 127
	}
	return 126
}
