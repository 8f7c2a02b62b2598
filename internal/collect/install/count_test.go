package install

import (
	"errors"
	"io"
	"io/fs"
)

// countFS counts what a collector reads.
type countFS struct {
	fs.FS
	files, reads int
	bytes        int64
}

func (c *countFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return f, nil
	}
	c.files++
	return &countFile{f, c}, nil
}

func (c *countFS) ReadLink(name string) (string, error)   { return fs.ReadLink(c.FS, name) }
func (c *countFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(c.FS, name) }
func (c *countFS) Stat(name string) (fs.FileInfo, error)  { return fs.Stat(c.FS, name) }

type countFile struct {
	fs.File
	c *countFS
}

func (f *countFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.c.bytes += int64(n)
	f.c.reads++
	return n, err
}

func (f *countFile) ReadAt(b []byte, off int64) (int, error) {
	r, ok := f.File.(io.ReaderAt)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	n, err := r.ReadAt(b, off)
	f.c.bytes += int64(n)
	f.c.reads++
	return n, err
}
