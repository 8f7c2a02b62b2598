package squashfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io/fs"
	"slices"
	"strings"
)

// dirent is one entry of a directory.
type dirent struct {
	name string
	ref  uint64 // of its inode
	typ  uint8
}

// nameKey is a name in the directory with the given inode.
type nameKey struct {
	dir  uint64
	name string
}

// listing reads the entries of a directory one by one. They are stored in runs
// that share the metadata block of their inodes.
type listing struct {
	c     cursor
	left  int64  // bytes of the listing
	run   uint32 // entries left in this run
	block uint32 // of their inodes
	name  [256]byte
}

func (s *FS) list(dir *inode) (*listing, error) {
	l := &listing{left: dir.size}
	if l.left == 0 {
		return l, nil
	}
	var err error
	l.c, err = s.cursorAt(s.sb.dirTable, uint64(s.sb.bytesUsed), uint64(dir.dirBlock), int(dir.dirOff))
	return l, err
}

// next returns the next entry; its name is valid until the next call and is
// one path element. ok is false at the end.
func (l *listing) next() (name []byte, e dirent, ok bool, err error) {
	var b [12]byte
	le := binary.LittleEndian
	if l.run == 0 {
		if l.left == 0 {
			return nil, e, false, nil
		}
		if err := l.read(b[:12]); err != nil {
			return nil, e, false, err
		}
		count := le.Uint32(b[:]) // one less than there are
		if count > 255 {
			return nil, e, false, corrupt("a run of %d directory entries", uint64(count)+1)
		}
		l.run, l.block = count+1, le.Uint32(b[4:])
	}
	if err := l.read(b[:8]); err != nil {
		return nil, e, false, err
	}
	l.run--
	size := int(le.Uint16(b[6:])) + 1
	if size > len(l.name) {
		return nil, e, false, corrupt("a name of %d bytes", size)
	}
	name = l.name[:size]
	if err := l.read(name); err != nil {
		return nil, e, false, err
	}
	if bytes.IndexByte(name, '/') >= 0 || bytes.IndexByte(name, 0) >= 0 || string(name) == "." || string(name) == ".." {
		return nil, e, false, corrupt("%q as a name", name)
	}
	typ := le.Uint16(b[4:])
	if typ < typeDir || typ > typeSocket {
		return nil, e, false, corrupt("%q is of type %d", name, typ)
	}
	return name, dirent{ref: uint64(l.block)<<16 | uint64(le.Uint16(b[:])), typ: uint8(typ)}, true, nil
}

func (l *listing) read(p []byte) error {
	if l.left < int64(len(p)) {
		return corrupt("a directory's listing ends within an entry")
	}
	l.left -= int64(len(p))
	return l.c.read(p)
}

// seek moves to the last place of a directory's index that does not lie
// behind a name: the index names the first entry of each metadata block.
func (l *listing) seek(s *FS, dir *inode, name string) error {
	c := dir.trailing // a copy
	var b [12]byte
	var text [256]byte
	le := binary.LittleEndian
	var pos, block uint32
	for range dir.indexes {
		if err := c.read(b[:]); err != nil {
			return err
		}
		size := le.Uint32(b[8:]) // one less than it is
		if size >= uint32(len(text)) {
			return corrupt("a name of %d bytes", uint64(size)+1)
		}
		t := text[:size+1]
		if err := c.read(t); err != nil {
			return err
		}
		if string(t) > name {
			break
		}
		pos, block = le.Uint32(b[:]), le.Uint32(b[4:])
	}
	if pos == 0 {
		return nil
	}
	if int64(pos) >= l.left {
		return corrupt("a directory's index points to byte %d of %d", pos, l.left)
	}
	l.left -= int64(pos)
	var err error
	l.c, err = s.cursorAt(s.sb.dirTable, uint64(s.sb.bytesUsed), uint64(block), int((uint64(dir.dirOff)+uint64(pos))%metaSize))
	return err
}

// lookup finds a name in a directory, or returns fs.ErrNotExist.
func (s *FS) lookup(dir *inode, name string) (dirent, error) {
	key := nameKey{dir.ref, name}
	s.mu.Lock()
	e, ok := s.names.get(key)
	s.mu.Unlock()
	if ok {
		return e, nil
	}
	l, err := s.list(dir)
	if err != nil {
		return dirent{}, err
	}
	if dir.indexes > 0 {
		if err := l.seek(s, dir, name); err != nil {
			return dirent{}, err
		}
	}
	for begin := l.left; ; {
		got, e, ok, err := l.next()
		// Entries are sorted. As Linux does, rely on it for the first byte only.
		if err == nil && (!ok || got[0] > name[0]) {
			err = fs.ErrNotExist
		}
		if err != nil {
			return dirent{}, err
		}
		if string(got) == name {
			e.name = strings.Clone(name)
			s.mu.Lock()
			defer s.mu.Unlock()
			if _, ok := s.names.get(key); !ok {
				s.names.add(nameKey{dir.ref, e.name}, e)
			}
			return e, nil
		}
		if begin-l.left > maxScan {
			return dirent{}, limit("a directory of more than %d bytes without an index", maxScan)
		}
	}
}

// child returns the inode of an entry.
func (s *FS) child(e dirent) (*inode, error) {
	n, err := s.inode(e.ref)
	if err == nil && n.typ != e.typ {
		err = corrupt("%q is a %s in its directory and a %s itself", e.name, typeModes[e.typ], n.mode.Type())
	}
	return n, err
}

// enter notes that a directory was entered by a name of another one. In an
// honest image there is one such way to each. An image in which there are two
// has a cycle, or doubles at each level: walking it would never end.
func (s *FS) enter(dir *inode, from uint64, name string) error {
	if dir.ref == s.root.ref {
		return corrupt("the root directory is in a directory, as %q", name)
	}
	way := maphash.Comparable(s.seed, nameKey{from, name})
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.dirs[dir.ref]
	switch {
	case ok && known != way:
		return corrupt("a directory has two names, one of them %q", name)
	case !ok && len(s.dirs) >= maxDirs:
		return limit("more than %d directories", maxDirs)
	case !ok:
		if err := s.account(dir.size); err != nil {
			return err
		}
		s.dirs[dir.ref] = way
	}
	return nil
}

// tableMeter compares the listings of the directories that were entered with
// the size of the table that they lie in.
type tableMeter struct {
	listed int64 // bytes of listings
	blocks int64 // blocks of the table that were counted
	next   int64 // position of the first one that was not
	err    error // listings overlap: no path is resolved any more
}

// account adds the listing of a directory that is entered for the first time.
// Thousands of directories that share one long listing would be a small image
// that takes for ever to walk; in an honest one listings do not overlap, and
// all together are no longer than the table. The lock is held.
func (s *FS) account(size int64) error {
	m := &s.table
	if m.listed += size; m.listed <= maxListed {
		return nil
	}
	if m.next == 0 {
		m.next = int64(s.sb.dirTable)
	}
	for m.blocks*metaSize < m.listed {
		var head [metaHead]byte
		if err := s.plain(head[:], m.next); err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint16(head[:]) &^ metaPlain)
		if n == 0 || n > metaSize {
			m.err = corrupt("directories have %d bytes, their table %d", m.listed, m.blocks*metaSize)
			return m.err
		}
		m.next += metaHead + n
		m.blocks++
	}
	return nil
}

// collect returns the next entries, at most n when n is above zero. With an
// error it returns those that could be read before.
func (l *listing) collect(s *FS, n int) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	for text := 0; n <= 0 || len(out) < n; {
		if len(out) == maxEntries || text > maxText {
			if n > 0 {
				break
			}
			return out, limit("more than %d entries or %d bytes of names in one directory", maxEntries, maxText)
		}
		name, e, ok, err := l.next()
		if err != nil || !ok {
			return out, err
		}
		text += len(name)
		e.name = string(name)
		out = append(out, &dirEntry{s, e})
	}
	return out, nil
}

// readDir returns the entries of a directory sorted by name: all, or those
// that could be read before the error.
func (s *FS) readDir(dir *inode) ([]fs.DirEntry, error) {
	l, err := s.list(dir)
	if err != nil {
		return nil, err
	}
	out, err := l.collect(s, 0)
	byName := func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }
	if !slices.IsSortedFunc(out, byName) {
		slices.SortStableFunc(out, byName)
	}
	for i := 1; i < len(out); i++ {
		if out[i].Name() == out[i-1].Name() {
			return out[:i], errors.Join(err, corrupt("%q is twice in a directory", out[i].Name()))
		}
	}
	return out, err
}

// dirEntry is what ReadDir returns; the inode is read when it is asked for.
type dirEntry struct {
	s *FS
	e dirent
}

func (d *dirEntry) Name() string      { return d.e.name }
func (d *dirEntry) IsDir() bool       { return d.e.typ == typeDir }
func (d *dirEntry) Type() fs.FileMode { return typeModes[d.e.typ] }
func (d *dirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d *dirEntry) Info() (fs.FileInfo, error) {
	n, err := d.s.child(d.e)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: d.e.name, Err: err}
	}
	return &fileInfo{d.e.name, n}, nil
}
