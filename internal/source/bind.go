package source

import (
	"io/fs"
	"strings"
)

// Bind returns base with over bound over its folder at, which need not exist. at is
// a path as fs.FS takes it.
func Bind(base fs.FS, at string, over fs.FS) fs.FS { return bind{base, at, over} }

// bind is a file system with another one bound over one of its folders.
type bind struct {
	fs.FS
	at   string // without leading slash
	over fs.FS
}

// in returns the file system that holds a name, and its name there.
func (b bind) in(name string) (fs.FS, string) {
	if name == b.at {
		return b.over, "."
	}
	if rest, ok := strings.CutPrefix(name, b.at+"/"); ok {
		return b.over, rest
	}
	return b.FS, name
}

// above reports whether a name is one of the folders that lead to the bound one,
// which the runtime makes when the image lacks them.
func (b bind) above(name string) bool { return name == "." || strings.HasPrefix(b.at, name+"/") }

func (b bind) Open(name string) (fs.File, error) { f, n := b.in(name); return f.Open(n) }

func (b bind) Stat(name string) (fs.FileInfo, error) {
	f, n := b.in(name)
	st, err := fs.Stat(f, n)
	if err != nil && b.above(name) {
		return fs.Stat(b.over, ".")
	}
	return st, err
}

func (b bind) Lstat(name string) (fs.FileInfo, error) {
	f, n := b.in(name)
	st, err := fs.Lstat(f, n)
	if err != nil && b.above(name) {
		return fs.Stat(b.over, ".")
	}
	return st, err
}

func (b bind) ReadLink(name string) (string, error) { f, n := b.in(name); return fs.ReadLink(f, n) }

func (b bind) ReadDir(name string) ([]fs.DirEntry, error) {
	f, n := b.in(name)
	return fs.ReadDir(f, n)
}
