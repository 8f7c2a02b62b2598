//go:build !linux

package cli

import "os"

// terminal reports whether standard output is a character device; its width is not known.
func terminal() (bool, int) {
	st, err := os.Stdout.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0, 0
}

// errTerminal reports whether standard error is a character device.
func errTerminal() bool {
	st, err := os.Stderr.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
