// Command lint compares the throughput of "ncclinic lint" with shellcheck's
// over the same folder of scripts, whole processes in one run:
//
//	go run ./bench/lint -dir /path/to/scripts
//
// Shellcheck knows nothing of Slurm; it is the yardstick for reading shell.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ncclinic/ncclinic/bench/internal/whole"
)

func main() {
	dir := flag.String("dir", "", "folder of scripts")
	n := flag.Int("n", 1, "counted runs of each command")
	flag.Parse()
	if err := run(*dir, *n); err != nil {
		fmt.Fprintln(os.Stderr, "bench/lint:", err)
		os.Exit(1)
	}
}

func run(dir string, n int) error {
	if dir == "" {
		return fmt.Errorf("-dir is missing")
	}
	sc, err := exec.LookPath("shellcheck")
	if err != nil {
		return err
	}
	var files []string
	var bytes int64
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
			if i, err := d.Info(); err == nil {
				bytes += i.Size()
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	bin, remove, err := whole.Build("./cmd/ncclinic")
	if err != nil {
		return err
	}
	defer remove()
	fmt.Printf("%d files, %d bytes\n", len(files), bytes)
	env := append(os.Environ(), "NCCLINIC_NO_SCONTROL=1")
	_, err = whole.Compare(os.Stdout, n,
		whole.Command{Name: "ncclinic lint", Args: append([]string{bin, "lint", "--format=json"}, files...), Env: env, Warm: 1},
		whole.Command{Name: "shellcheck", Args: append([]string{sc, "--format=json", "--severity=warning"}, files...), Warm: 1})
	return err
}
