package slurmjob

import (
	"os"
	"syscall"
)

// owner returns the user that a file belongs to.
func owner(st os.FileInfo) (int, bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
