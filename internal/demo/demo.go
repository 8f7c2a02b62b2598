// Package demo holds the facts of one GPU node: eight H100 in the step of a
// Slurm job whose conda environment has the CPU build of PyTorch. They were
// made by the collectors from the record in testdata; a test makes them anew
// and compares (go test ./internal/demo -update writes them).
package demo

import _ "embed"

// Bundle is the fact.Bundle of the node as JSON.
//
//go:embed bundle.json
var Bundle []byte
