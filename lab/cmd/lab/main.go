// Command lab starts a real Slurm cluster on this machine and removes it again.
//
//	lab run [-nodes N] [-gpus G] [--] COMMAND ARGS…   run a command in a cluster of its own
//	lab up [-nodes N] [-gpus G]                       start one and leave it running
//	lab down [DIR…]                                   remove those, or all that "up" left
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ncclinic/ncclinic/lab"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 2)
	}
	os.Exit(code)
}

const usage = "usage: lab run|up [-nodes N] [-gpus G] [-cpus C] [-accounting] [-memory] [COMMAND ARGS…] | lab down [DIR…]"

func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New(usage)
	}
	// A terminal's Ctrl-C must end the lab in order; a crash is the reaper's work.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	var o lab.Options
	fs := flag.NewFlagSet("lab "+args[0], flag.ContinueOnError)
	fs.IntVar(&o.Nodes, "nodes", 4, "slurmd processes")
	fs.IntVar(&o.GPUsPerNode, "gpus", 2, "stand-in GPUs of each node; -1 for none")
	fs.IntVar(&o.CPUsPerNode, "cpus", 16, "CPUs that a node claims")
	fs.BoolVar(&o.Accounting, "accounting", false, "start MariaDB and slurmdbd too, for sacct")
	fs.BoolVar(&o.Memory, "memory", false, "hold jobs to their --mem with cgroups")
	if err := fs.Parse(args[1:]); err != nil {
		return 2, err
	}
	switch args[0] {
	case "up":
		o.Detach = true
		c, err := lab.Start(ctx, o)
		if err != nil {
			return 1, err
		}
		for _, kv := range c.Env() {
			fmt.Println("export " + kv)
		}
		fmt.Fprintf(os.Stderr, "lab down %s\n", c.Dir)
		return 0, nil
	case "down":
		dirs := fs.Args()
		if len(dirs) == 0 {
			var err error
			if dirs, err = lab.Detached(); err != nil {
				return 1, err
			}
		}
		for _, d := range dirs {
			d, err := filepath.Abs(d)
			if err == nil {
				err = lab.Down(d)
			}
			if err != nil {
				return 1, err
			}
		}
		return 0, lab.Sweep(ctx)
	case "run":
		if fs.NArg() == 0 {
			return 2, errors.New(usage)
		}
		c, err := lab.Start(ctx, o)
		if err != nil {
			return 1, err
		}
		defer c.Stop()
		cmd := c.Command(ctx, fs.Arg(0), fs.Args()[1:]...)
		if wd, err := os.Getwd(); err == nil {
			cmd.Dir = wd
		}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode(), nil
		}
		return 0, err
	}
	return 2, errors.New(usage)
}
