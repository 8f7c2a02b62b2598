package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/source"
)

// Limits on what one look at an installation reads.
const (
	maxLinks = 40      // as the kernel does
	maxPath  = 4096    // bytes of a path
	maxList  = 100_000 // names of one folder
)

var (
	errNotRegular = errors.New("not a regular file")
	errTooLong    = errors.New("path too long")
	errLoop       = errors.New("too many levels of symbolic links")
)

// tree reads a file system by absolute paths. It resolves links itself, so
// that an absolute link inside an image or a recorded tree stays inside of it,
// and it remembers what it saw: every folder is listed once and every path
// component is looked at once.
type tree struct {
	fsys  fs.FS
	nodes map[string]node
	lists map[string]listing
}

// node is a path with its last component's links resolved.
type node struct {
	real string
	info fs.FileInfo // of real, never a link
	err  error
}

// listing is the content of a folder.
type listing struct {
	names map[string]fs.FileMode // type bits
	cut   bool                   // there are more names than were taken
	err   error
}

func newTree(fsys fs.FS) *tree {
	return &tree{fsys: fsys, nodes: map[string]node{}, lists: map[string]listing{}}
}

// at resolves an absolute path.
func (t *tree) at(p string) node {
	links := 0
	return t.walk(path.Clean("/"+p), &links)
}

func (t *tree) walk(p string, links *int) node {
	if n, ok := t.nodes[p]; ok {
		return n
	}
	if len(p) > maxPath {
		return node{real: p, err: errTooLong}
	}
	n := t.step(p, links)
	if !errors.Is(n.err, errLoop) { // whether that is hit depends on where the walk began
		t.nodes[p] = n
	}
	return n
}

func (t *tree) step(p string, links *int) node {
	if p == "/" {
		info, err := fs.Stat(t.fsys, ".")
		return node{real: p, info: info, err: err}
	}
	dir := t.walk(path.Dir(p), links)
	if dir.err != nil {
		return node{real: p, err: dir.err}
	}
	if !dir.info.IsDir() {
		return node{real: p, err: fs.ErrNotExist}
	}
	q := path.Join(dir.real, path.Base(p))
	info, err := fs.Lstat(t.fsys, source.Rel(q))
	if err != nil {
		return node{real: q, err: err}
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return node{real: q, info: info}
	}
	if *links++; *links > maxLinks {
		return node{real: q, err: errLoop}
	}
	target, err := fs.ReadLink(t.fsys, source.Rel(q))
	if err != nil {
		return node{real: q, err: err}
	}
	if !path.IsAbs(target) {
		target = path.Join(dir.real, target)
	}
	return t.walk(path.Clean(target), links)
}

func (t *tree) isFile(p string) bool {
	n := t.at(p)
	return n.err == nil && n.info.Mode().IsRegular()
}

func (t *tree) isDir(p string) bool {
	n := t.at(p)
	return n.err == nil && n.info.IsDir()
}

func (t *tree) exists(p string) bool { return t.at(p).err == nil }

// isExec reports whether a shell would run p when it finds it on PATH.
func (t *tree) isExec(p string) bool {
	n := t.at(p)
	return n.err == nil && n.info.Mode().IsRegular() && n.info.Mode()&0o111 != 0
}

// open opens a regular file; anything else could block or has no end.
func (t *tree) open(p string) (fs.File, fs.FileInfo, error) {
	n := t.at(p)
	if n.err != nil {
		return nil, nil, short(n.err)
	}
	if !n.info.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	f, err := t.fsys.Open(source.Rel(n.real))
	if err != nil {
		return nil, nil, short(err)
	}
	return f, n.info, nil
}

// read returns at most max bytes of a regular file and whether that is all of it.
func (t *tree) read(p string, max int) (data []byte, whole bool, err error) {
	f, info, err := t.open(p)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	// One byte more than the size says, so that a short file needs no second
	// buffer; sizes of foreign file systems are a hint only.
	size := min(max, int(min(max64(info.Size(), 0), int64(max)))+1)
	data = make([]byte, 0, size)
	for len(data) < max {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), max)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, true, nil
		}
		if err != nil {
			return data, false, short(err)
		}
	}
	return data, info.Size() <= int64(max), nil
}

func max64(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

// list returns the content of a folder.
func (t *tree) list(p string) listing {
	n := t.at(p)
	if n.err != nil {
		return listing{err: short(n.err)}
	}
	if l, ok := t.lists[n.real]; ok {
		return l
	}
	l := t.readDir(n)
	t.lists[n.real] = l
	return l
}

func (t *tree) readDir(n node) listing {
	if !n.info.IsDir() {
		return listing{err: errors.New("not a directory")}
	}
	f, err := t.fsys.Open(source.Rel(n.real))
	if err != nil {
		return listing{err: short(err)}
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return listing{err: errors.New("cannot be listed")}
	}
	l := listing{names: map[string]fs.FileMode{}}
	for {
		entries, err := d.ReadDir(1024)
		for _, e := range entries {
			l.names[e.Name()] = e.Type()
		}
		switch {
		case err == io.EOF || err == nil && len(entries) == 0:
			return l
		case err != nil:
			l.err = short(err)
			return l
		case len(l.names) >= maxList:
			l.cut = true
			return l
		}
	}
}

// sorted returns the names that keep accepts, in byte order.
func (l listing) sorted(keep func(name string) bool) []string {
	var out []string
	for name := range l.names {
		if keep(name) {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// short takes the reason out of a path error: the path is named anyway where
// the error is shown.
func short(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		return fs.ErrPermission
	}
	return err
}

// why words an error for a Failed value.
func why(what string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return what + ": no such file"
	case errors.Is(err, fs.ErrPermission):
		return what + ": permission denied"
	}
	return fmt.Sprintf("%s: %v", what, err)
}

// gone reports whether an error only says that something is not there.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "not a directory")
}
