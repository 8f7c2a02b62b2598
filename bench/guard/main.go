// Command guard measures what "ncclinic run" costs before it becomes the command:
// whole processes, in turn.
//
//	go run ./bench/guard -n 50 -python CACHE/cuda/bin/python
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ncclinic/ncclinic/bench/internal/whole"
)

func main() {
	rounds := flag.Int("n", 50, "counted runs of each command")
	python := flag.String("python", "/usr/bin/python3", "interpreter of the guarded command")
	flag.Parse()
	if err := measure(*rounds, *python); err != nil {
		fmt.Fprintln(os.Stderr, "bench/guard:", err)
		os.Exit(1)
	}
}

func measure(rounds int, python string) error {
	bin, remove, err := whole.Build("./cmd/ncclinic")
	if err != nil {
		return err
	}
	defer remove()
	prefix := filepath.Dir(filepath.Dir(python))
	env := append(os.Environ(), "VIRTUAL_ENV="+prefix, "PATH="+filepath.Join(prefix, "bin")+":"+os.Getenv("PATH")) // as in an activated environment
	// The second one is looked at as a program that uses torch and ends before it does.
	for _, pair := range [][]string{{"/bin/true"}, {python, "-S", "-c", "import os; os._exit(0); import torch"}} {
		name := filepath.Base(pair[0])
		plain := whole.Command{Name: name, Args: pair, Env: env}
		guarded := whole.Command{Name: "ncclinic run -- " + name, Args: append([]string{bin, "run", "--"}, pair...), Env: env}
		if _, err := whole.Compare(os.Stdout, rounds, plain, guarded); err != nil {
			return err
		}
	}
	return nil
}
