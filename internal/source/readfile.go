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
	return ReadUpTo(f, st.Size(), n)
}

// ReadUpTo reads at most limit bytes into a buffer of the size that a file is
// said to have, so that it need not grow and be copied again and again. The files
// of /proc say 0, those of a damaged archive anything.
func ReadUpTo(r io.Reader, size, limit int64) ([]byte, error) {
	const least, most = 4 << 10, 1 << 20
	r = io.LimitReader(r, limit)
	b := make([]byte, 0, min(max(size+1, least), most, limit+1))
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
