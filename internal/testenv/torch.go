package testenv

import (
	"os"
	"testing"
)

// File returns path, or ends the test as Need does when nothing is there.
func File(t testing.TB, path, how string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		Need(t, path, how)
	}
	return path
}

// DebianTorch returns Debian's interpreter, for which its CPU build of torch is
// installed, or ends the test as Need does.
func DebianTorch(t testing.TB) string {
	t.Helper()
	File(t, "/usr/lib/python3/dist-packages/torch/version.py", "apt-get install python3-torch")
	return File(t, "/usr/bin/python3", "apt-get install python3")
}
