package cli

import (
	"os"
	"syscall"
)

// mine reports that a file belongs to the user of this process.
func mine(st os.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
