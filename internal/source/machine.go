// Package source opens what a user names as an fs.FS, and describes a machine
// as collectors see it: files, environment, a way to run commands, and the few
// facts that no file holds.
package source

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Machine is a live machine, a recorded one, or the inside of an image. All
// paths given to FS are without the leading slash, as fs.FS wants them.
type Machine struct {
	FS     fs.FS             // the root file system
	Env    map[string]string // environment of the process that is examined
	Home   string            // home directory, absolute
	UID    int
	Runner Runner // nil: nothing may be run
	OS     OS     // nil: not a running system
}

// Cmd is a command that a collector wants to run.
type Cmd struct {
	Path    string
	Args    []string // without the program's name
	Env     []string // nil: the environment of this process
	Dir     string
	Timeout time.Duration // hard: the whole process group is killed. 0: 10 s
	MaxOut  int           // bytes kept of each stream. 0: 1 MiB
	Stdin   []byte
}

// Limit is Timeout with its default.
func (c Cmd) Limit() time.Duration {
	if c.Timeout <= 0 {
		return 10 * time.Second
	}
	return c.Timeout
}

// MaxBytes is MaxOut with its default.
func (c Cmd) MaxBytes() int {
	if c.MaxOut <= 0 {
		return 1 << 20
	}
	return c.MaxOut
}

// Result is what a command did. A command that could not be started is an
// error of Run; one that failed or was killed is a Result.
type Result struct {
	Stdout, Stderr []byte
	Code           int  // exit status; -1 when killed
	TimedOut       bool // Timeout was hit
	Truncated      bool // a stream was longer than MaxOut
	Wall           time.Duration
}

// Runner starts commands; package run has the real one and a recorded one.
type Runner interface {
	LookPath(name string) (string, error)
	Run(ctx context.Context, c Cmd) (Result, error)
}

// Streams are what a command that runs for a while reads and writes meanwhile.
// The writers are called from one goroutine each.
type Streams struct {
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer
}

// Streamer is a Runner that hands over output while the command runs. When ctx
// ends, the command is asked to end (SIGTERM) and, after a time of grace,
// killed with its process group; the Result says so.
type Streamer interface {
	Stream(ctx context.Context, c Cmd, s Streams) (Result, error)
}

// OS answers what no file of /proc or /sys does.
type OS interface {
	// Statfs returns size and free bytes of the file system that holds an absolute path.
	Statfs(path string) (fact.FSUsage, error)
	// Interfaces lists network interfaces with their addresses.
	Interfaces() ([]fact.Iface, error)
	// Uname returns kernel release and machine (x86_64, aarch64).
	Uname() (release, machine string, err error)
	// Access reports whether this process may read and write an absolute path; nil: yes.
	Access(path string) error
	// CPUs returns the number of CPUs that this process may run on.
	CPUs() int
}

// Getenv returns a variable of the machine, "" when it is not set.
func (m *Machine) Getenv(name string) string { return m.Env[name] }

// Rel turns an absolute path into one that FS takes.
func Rel(abs string) string {
	for len(abs) > 0 && abs[0] == '/' {
		abs = abs[1:]
	}
	if abs == "" {
		return "."
	}
	return abs
}
