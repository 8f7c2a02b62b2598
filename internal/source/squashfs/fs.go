package squashfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

var (
	_ fs.ReadDirFS   = (*FS)(nil)
	_ fs.StatFS      = (*FS)(nil)
	_ fs.ReadLinkFS  = (*FS)(nil)
	_ io.ReaderAt    = (*file)(nil)
	_ io.Seeker      = (*file)(nil)
	_ fs.ReadDirFile = (*openDir)(nil)
)

// errLoop is what a path with too many links is: a cycle of links.
var errLoop = errors.New("too many levels of symbolic links")

// Stat is what FileInfo.Sys returns, a *Stat.
type Stat struct {
	Inode    uint32
	Nlink    uint32
	UID, GID uint32
	Rdev     uint32 // of a device node, as Linux encodes it in 32 bits
}

type fileInfo struct {
	name string
	n    *inode
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.n.size }
func (i *fileInfo) Mode() fs.FileMode  { return i.n.mode }
func (i *fileInfo) ModTime() time.Time { return i.n.modTime }
func (i *fileInfo) IsDir() bool        { return i.n.isDir() }
func (i *fileInfo) String() string     { return fs.FormatFileInfo(i) }
func (i *fileInfo) Sys() any {
	return &Stat{Inode: i.n.number, Nlink: i.n.nlink, UID: i.n.uid, GID: i.n.gid, Rdev: i.n.rdev}
}

// resolve returns the inode at a path of io/fs. Links on the way are followed,
// and the last element too when follow is set.
func (s *FS) resolve(name string, follow bool) (*inode, error) {
	// Names in an image need not be UTF-8, which is all that this adds to fs.ValidPath.
	if !fs.ValidPath(strings.ToValidUTF8(name, "?")) {
		return nil, fs.ErrInvalid
	}
	if len(name) > maxPath {
		return nil, limit("a path of %d bytes", len(name))
	}
	n, err := s.fromParent(name, follow)
	if n != nil || err != nil {
		return n, err
	}
	if n, err = s.fromRoot(name, follow); err != nil {
		return nil, err
	}
	s.remember(name, n)
	return n, nil
}

// remember keeps a directory that was found by its path, for what lies in it.
func (s *FS) remember(name string, n *inode) {
	if !n.isDir() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.paths.get(name); !ok {
		s.paths.add(strings.Clone(name), n)
	}
}

// fromParent resolves a path in a directory that was found a moment ago, as
// they come in a walk; nil when that is not so, or a link must be followed.
func (s *FS) fromParent(name string, follow bool) (*inode, error) {
	s.mu.Lock()
	dir, ok := s.paths.get(path.Dir(name))
	s.mu.Unlock()
	if !ok || name == "." {
		return nil, nil
	}
	elem := path.Base(name)
	e, err := s.lookup(dir, elem)
	if err != nil {
		return nil, err
	}
	n, err := s.child(e)
	switch {
	case err != nil:
		return nil, err
	case n.typ == typeLink && follow:
		return nil, nil
	case n.isDir():
		if err := s.enter(n, dir.ref, elem); err != nil {
			return nil, err
		}
		s.remember(name, n)
	}
	return n, nil
}

// fromRoot resolves a path from the root directory on.
func (s *FS) fromRoot(name string, follow bool) (*inode, error) {
	type step struct {
		dir  *inode
		name string
	}
	at := []step{{s.root, ""}} // the directories on the way, the present one last
	links := 0
	todo := name
	if name == "." {
		todo = ""
	}
	for todo != "" {
		elem, rest, _ := strings.Cut(todo, "/")
		todo = rest
		switch elem {
		case "", ".":
			continue
		case "..":
			if len(at) > 1 {
				at = at[:len(at)-1]
			}
			continue
		}
		dir := at[len(at)-1].dir
		e, err := s.lookup(dir, elem)
		if err != nil {
			return nil, err
		}
		n, err := s.child(e)
		if err != nil {
			return nil, err
		}
		last := strings.Trim(todo, "/") == ""
		switch {
		case n.typ == typeLink && (!last || follow):
			if links++; links > maxLinks {
				return nil, errLoop
			}
			if strings.HasPrefix(n.target, "/") {
				at = at[:1]
			}
			if n.target == "" {
				return nil, fs.ErrNotExist
			}
			if todo != "" {
				todo = n.target + "/" + todo
			} else {
				todo = n.target
			}
			if len(todo) > 2*maxPath {
				return nil, limit("a path of %d bytes behind links", len(todo))
			}
		case n.isDir():
			if err := s.enter(n, dir.ref, elem); err != nil {
				return nil, err
			}
			at = append(at, step{n, elem})
		case last:
			return n, nil
		default:
			return nil, fs.ErrNotExist // a file on the way
		}
	}
	return at[len(at)-1].dir, nil
}

// Open opens a file or a directory, following links. Devices, fifos and
// sockets are opened as empty files: an image holds only their mode.
func (s *FS) Open(name string) (fs.File, error) {
	n, err := s.resolve(name, true)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	info := &fileInfo{path.Base(name), n}
	if n.isDir() {
		return &openDir{s: s, info: info}, nil
	}
	return &file{s: s, info: info}, nil
}

// Stat describes what a path leads to.
func (s *FS) Stat(name string) (fs.FileInfo, error) { return s.stat("stat", name, true) }

// Lstat describes a path itself: a link at its end is not followed.
func (s *FS) Lstat(name string) (fs.FileInfo, error) { return s.stat("lstat", name, false) }

func (s *FS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	n, err := s.resolve(name, follow)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return &fileInfo{path.Base(name), n}, nil
}

// ReadLink returns the target of a symbolic link as it is stored.
func (s *FS) ReadLink(name string) (string, error) {
	n, err := s.resolve(name, false)
	if err == nil && n.typ != typeLink {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return n.target, nil
}

// ReadDir lists a directory, sorted by name. With an error it returns the
// entries that it could read; a directory with more than 262,144 is such an
// error, and the file that Open returns lists it in parts.
func (s *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := s.resolve(name, true)
	if err == nil && !n.isDir() {
		err = errors.New("not a directory")
	}
	var list []fs.DirEntry
	if err == nil {
		list, err = s.readDir(n)
	}
	if err != nil {
		err = &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return list, err
}

// openDir is an open directory. It is used by one goroutine at a time.
type openDir struct {
	s      *FS
	info   *fileInfo
	l      *listing
	closed bool
}

func (d *openDir) Stat() (fs.FileInfo, error) {
	if d.closed {
		return nil, d.fail("stat", fs.ErrClosed)
	}
	return d.info, nil
}

func (d *openDir) Read([]byte) (int, error) { return 0, d.fail("read", errors.New("is a directory")) }

func (d *openDir) Close() error {
	if d.closed {
		return d.fail("close", fs.ErrClosed)
	}
	d.closed = true
	return nil
}

func (d *openDir) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: d.info.name, Err: err}
}

// ReadDir implements fs.ReadDirFile. Entries come in the order of the image,
// which is that of their names.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.closed {
		return nil, d.fail("readdir", fs.ErrClosed)
	}
	if d.l == nil {
		l, err := d.s.list(d.info.n)
		if err != nil {
			return nil, d.fail("readdir", err)
		}
		d.l = l
	}
	var out []fs.DirEntry
	for n <= 0 || len(out) < n {
		if len(out) == maxEntries {
			if n > 0 {
				break
			}
			return out, d.fail("readdir", limit("more than %d entries in one directory", maxEntries))
		}
		name, e, ok, err := d.l.next()
		if err != nil {
			return out, d.fail("readdir", err)
		}
		if !ok {
			if n > 0 && len(out) == 0 {
				return nil, io.EOF
			}
			break
		}
		e.name = string(name)
		out = append(out, &dirEntry{d.s, e})
	}
	return out, nil
}
