package cli

import (
	"os"
	"syscall"
)

// ownedHere reports whether a folder belongs to this user and may be written.
func ownedHere(dir string) bool {
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid() && syscall.Access(dir, 2) == nil
}
