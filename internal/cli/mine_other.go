//go:build !linux

package cli

import "os"

// mine reports that a file belongs to the user of this process.
func mine(os.FileInfo) bool { return false }
