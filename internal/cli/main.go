// Package cli wires collectors, rules and renderers to subcommands, flags and
// help texts. It is the only package that knows all others.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/render"
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
	// ErrTerminal reports whether Err is a terminal, on which progress may be shown.
	ErrTerminal func() bool
}

// Std returns the streams of this process.
func Std() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Terminal: terminal, ErrTerminal: errTerminal}
}

// usageError is wrong usage or unreadable input: exit status 2.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// exitError carries an exit status that is not an error.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs one command line and returns the exit status.
func Main(args []string, s Streams) int {
	return (&app{Streams: s, lang: langOf(args, s.Getenv)}).main(args)
}

func (a *app) main(args []string) int {
	out := &checked{w: a.Out}
	a.Out = out
	s := a.Streams
	ctx, caught, stop := interruptible(s.Err)
	defer stop()
	command := a.root
	if len(args) > 0 && args[0] == probeName { // one of ten thousand, which must not build all other commands first
		command, args = a.probeCmd, args[1:]
	}
	root := command()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	if sig := caught(); sig != 0 && errors.Is(err, context.Canceled) {
		fmt.Fprintln(s.Err, "ncclinic: "+a.tr("interrupted", "已中断"))
		return 128 + int(sig)
	}
	if err == nil {
		err = out.err
	}
	var code exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, syscall.EPIPE):
		return exitOK // the reader has what it wanted (| head)
	}
	// What is wrong often quotes what was given: names of files and arguments.
	fmt.Fprintln(s.Err, "ncclinic: "+render.Clean(mask.Text(diag.ErrorText(err.Error(), a.lang)), true))
	return exitUsage
}

// checked remembers that writing failed, for writers that do not say so:
// nobody may take half a list on a full disk for the whole.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}
