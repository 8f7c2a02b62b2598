// Package cli wires collectors, rules and renderers to subcommands, flags and
// help texts. It is the only package that knows all others.
package cli

import (
	"fmt"
	"io"
	"os"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Std returns the streams of this process.
func Std() Streams { return Streams{os.Stdin, os.Stdout, os.Stderr} }

// Main runs one command line and returns the exit status.
func Main(args []string, s Streams) int {
	fmt.Fprintln(s.Err, "not yet")
	return 2
}
