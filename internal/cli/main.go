// Package cli wires collectors, rules and renderers to subcommands, flags and
// help texts. It is the only package that knows all others.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Version is the version of the tool; releases set it at link time.
var Version = "0.1.0-dev"

// Exit statuses of every command.
const (
	exitOK     = 0 // nothing wrong
	exitFound  = 1 // a problem was found
	exitUsage  = 2 // wrong usage or unreadable input
	exitUnsure = 3 // could not decide
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether Out is a terminal, and its width in columns.
	Terminal func() (bool, int)
}

// Std returns the streams of this process.
func Std() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Terminal: terminal}
}

// usageError is wrong usage or unreadable input: exit status 2.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// exitError carries an exit status that is not an error.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs one command line and returns the exit status.
func Main(args []string, s Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{Streams: s, lang: langOf(args, s.Getenv)}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, syscall.EPIPE):
		return exitOK // the reader has what it wanted (| head)
	}
	fmt.Fprintln(s.Err, "ncclinic: "+err.Error())
	return exitUsage
}
