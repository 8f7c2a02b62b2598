// Command check compares "ncclinic check" with the ways in which people ask
// torch itself, as whole processes in one run:
//
//	go run ./bench/check -python /usr/bin/python3
//
// It prints medians and ratios, and with strace at hand how many files ncclinic
// opened and how many bytes it read.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/ncclinic/ncclinic/bench/internal/whole"
)

func main() {
	python := flag.String("python", "/usr/bin/python3", "interpreter whose torch is examined")
	n := flag.Int("n", 7, "counted runs of each command")
	only := flag.Bool("only", false, "do not run the interpreter (for a torch that cannot be imported here)")
	flag.Parse()
	if err := run(*python, *n, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench/check:", err)
		os.Exit(1)
	}
}

func run(python string, n int, only bool) error {
	bin, remove, err := whole.Build("./cmd/ncclinic")
	if err != nil {
		return err
	}
	defer remove()
	cmds := []whole.Command{{Name: "ncclinic check", Args: []string{bin, "check", "--python", python}}}
	if !only {
		cmds = append(cmds,
			whole.Command{Name: "python -c 'import torch; …nccl_available()'", Args: []string{python, "-c", "import torch, torch.distributed as d; d.is_nccl_available()"}},
			whole.Command{Name: "python -m torch.utils.collect_env", Args: []string{python, "-m", "torch.utils.collect_env"}})
	}
	if _, err := whole.Compare(os.Stdout, n, cmds...); err != nil {
		return err
	}
	return reads(bin, python)
}

var (
	opened = regexp.MustCompile(`(?m)openat\(.*= \d+$`)
	got    = regexp.MustCompile(`(?m)p?read(?:64|v)?\(.*= (\d+)$`)
)

// reads counts files and bytes with strace.
func reads(bin, python string) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Println("strace is not installed: files and bytes are not counted")
		return nil
	}
	cmd := exec.Command(strace, "-f", "-e", "trace=openat,read,pread64,readv", "-s", "0", bin, "check", "--python", python)
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.Run() // its exit status is ncclinic's verdict
	total := 0
	for _, m := range got.FindAllSubmatch(log.Bytes(), -1) {
		k, _ := strconv.Atoi(string(m[1]))
		total += k
	}
	fmt.Printf("ncclinic opened %d files and folders and read %.2f MB\n", len(opened.FindAll(log.Bytes(), -1)), float64(total)/1e6)
	return nil
}
