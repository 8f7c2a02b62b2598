//go:build linux

package cli

import (
	"os"
	"syscall"
	"unsafe"
)

// terminal asks the kernel whether standard output is a terminal and how wide.
func terminal() (bool, int) {
	var ws struct{ row, col, x, y uint16 }
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, os.Stdout.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&ws)))
	if e != 0 {
		return false, 0
	}
	return true, int(ws.col)
}

// errTerminal reports whether standard error is a terminal.
func errTerminal() bool {
	var ws struct{ row, col, x, y uint16 }
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, os.Stderr.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&ws)))
	return e == 0
}
