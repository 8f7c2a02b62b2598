// Command ncclinic says why distributed PyTorch training fails on a Slurm GPU
// cluster: one cause, the evidence, the fix.
package main

import (
	"os"

	"github.com/ncclinic/ncclinic/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Std())) }
