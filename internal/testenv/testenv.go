// Package testenv declares what a test needs from the machine. A missing part
// skips the test on a developer's machine and fails it in CI, where
// NCCLINIC_NO_SKIP=1 says that everything must be there.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Need ends the test because something is missing: as skipped, or as failed
// when NCCLINIC_NO_SKIP=1. how says how to get it.
func Need(t testing.TB, what, how string) {
	t.Helper()
	if os.Getenv("NCCLINIC_NO_SKIP") == "1" {
		t.Fatalf("needs %s: %s", what, how)
	}
	t.Skipf("needs %s: %s", what, how)
}

// Tool returns the path of a program, or ends the test as Need does.
func Tool(t testing.TB, name string) string {
	t.Helper()
	for _, n := range []string{name, "/usr/bin/" + name, "/usr/sbin/" + name, "/sbin/" + name} {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	Need(t, name, "lab/deps.sh installs it")
	return ""
}

// Cache returns a folder that lab/deps.sh fills, such as "cuda" (a virtual
// environment with the CUDA build of torch), or ends the test as Need does.
func Cache(t testing.TB, name string) string {
	t.Helper()
	dirs := []string{os.Getenv("NCCLINIC_CACHE"), "/var/cache/ncclinic-test"}
	if d, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(d, "ncclinic-test"))
	}
	for _, d := range dirs {
		p := filepath.Join(d, name)
		if _, err := os.Stat(p + ".done"); d != "" && err == nil {
			return p
		}
	}
	Need(t, "the "+name+" part of the test cache", "lab/deps.sh brings it")
	return ""
}
