package source

import (
	"errors"
	"io/fs"
	"os"
)

// folder is a folder of this machine as a file system of its own: links that
// lead out of it lead nowhere, and nothing but files and folders is opened.
type folder struct {
	r *os.Root
	fs.FS
}

// OpenFolder opens a folder of this machine as a file system of its own: links
// that lead out of it lead nowhere, and nothing but files and folders is opened.
func OpenFolder(path string) (fs.FS, error) { return openFolder(path) }

func openFolder(path string) (*folder, error) {
	r, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folder{r, r.FS()}, nil
}

func (f *folder) Close() error { return f.r.Close() }

func (f *folder) Open(name string) (fs.File, error) {
	st, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() && !st.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return f.FS.Open(name)
}

func (f *folder) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(f.FS, name) }
func (f *folder) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(f.FS, name) }
func (f *folder) ReadLink(name string) (string, error)       { return fs.ReadLink(f.FS, name) }
func (f *folder) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.FS, name) }
