//go:build !linux || !(amd64 || arm64)

package run

import (
	"errors"
	"os"
)

// Supervise is for Linux on x86_64 and aarch64 alone.
func Supervise(argv, env []string, tail int) (Ended, error) { return Ended{}, errors.ErrUnsupported }

// Die ends this process as the command ended.
func (e Ended) Die() {
	if e.Signal != 0 {
		os.Exit(128 + e.Signal)
	}
	os.Exit(e.Code)
}
