package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrTooLong is returned by ReadFile for a file that is longer than allowed.
var ErrTooLong = errors.New("file is too long")

// ReadFile reads a whole file of at most max bytes by its absolute path.
// Files of /proc and /sys say that they are empty, so the size that a file
// claims is never believed.
func ReadFile(fsys fs.FS, abs string, max int64) ([]byte, error) {
	b, err := readUpTo(fsys, abs, max+1)
	if err == nil && int64(len(b)) > max {
		return nil, fmt.Errorf("%s: %w (more than %d bytes)", abs, ErrTooLong, max)
	}
	return b, err
}

// ReadHead reads at most the first max bytes of a file.
func ReadHead(fsys fs.FS, abs string, max int64) ([]byte, error) { return readUpTo(fsys, abs, max) }

func readUpTo(fsys fs.FS, abs string, n int64) ([]byte, error) {
	f, err := fsys.Open(Rel(abs))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: abs, Err: errors.New("not a regular file")}
	}
	return io.ReadAll(io.LimitReader(f, n))
}
