// Package vfs holds the index of an archive, or of the layers of an image, as a
// file system in memory. Names come from foreign bytes: none of them leads out
// of the tree, links are followed inside of it and only so far, and the number
// of names is bounded.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits on one name.
const (
	maxName  = 4096 // bytes
	maxDepth = 128  // folders
	maxLinks = 40   // followed on the way to one file, as the kernel does
)

// maxText bounds the bytes of all names and links of a tree. The names of a quarter of a
// million files of a real image have 8 MB.
const maxText = 32 << 20

var (
	// ErrEscapes means that a name leads out of the tree.
	ErrEscapes = errors.New("the name leads out of the archive")
	// ErrName means that a name is no usable path.
	ErrName = errors.New("not a usable file name")
	// ErrFull means that the tree has as many names as it may have.
	ErrFull = errors.New("too many files")

	errLoop   = errors.New("too many levels of symbolic links")
	errNotDir = errors.New("not a directory")
	errIsDir  = errors.New("is a directory")
)

// FS is a tree of files. It is filled by Add, Link, Whiteout and Opaque and then read.
// Reading may be concurrent as far as the contents allow it.
type FS struct {
	root  *node
	max   int
	added int
	text  int // bytes of names and links
	layer uint16
}

// Entry is one file, folder or symbolic link.
type Entry struct {
	Name string      // path; a leading slash and "." parts are ignored
	Mode fs.FileMode // type and permissions
	Size int64       // bytes of a regular file
	Data io.ReaderAt // content of a regular file; nil: known by name only
	Link string      // target of a symbolic link
}

type node struct {
	name  string
	mode  fs.FileMode
	size  int64
	data  io.ReaderAt
	link  string
	kids  map[string]*node
	layer uint16
}

// New returns an empty tree that takes at most max names.
func New(max int) *FS {
	return &FS{root: &node{name: ".", mode: fs.ModeDir | 0o755, kids: map[string]*node{}}, max: max}
}

// Len returns how many names were added.
func (f *FS) Len() int { return f.added }

// NextLayer begins a layer: whiteouts take effect on earlier layers only.
func (f *FS) NextLayer() { f.layer++ }

// Split cleans the name of an archive's entry into its parts. An empty list is the root.
func Split(name string) ([]string, error) {
	if len(name) > maxName || strings.IndexByte(name, 0) >= 0 {
		return nil, ErrName
	}
	var parts []string
	for p := range strings.SplitSeq(name, "/") {
		switch p {
		case "", ".":
		case "..":
			return nil, ErrEscapes
		default:
			if len(parts) == maxDepth {
				return nil, ErrName
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// Add puts an entry into the tree. It replaces what is there, except that a
// folder keeps its content. Folders on the way are made.
func (f *FS) Add(e Entry) error {
	dir, base, err := f.parent(e.Name)
	if err != nil {
		return err
	}
	if base == "" {
		return nil // the root is there
	}
	old := dir.kids[base]
	if e.Mode.IsDir() && old != nil && old.mode.IsDir() {
		old.mode, old.layer = e.Mode, f.layer
		return nil
	}
	if len(e.Link) > maxName {
		return ErrName
	}
	if err := f.count(len(base) + len(e.Link)); err != nil {
		return err
	}
	n := &node{name: strings.Clone(base), mode: e.Mode, size: max(e.Size, 0), data: e.Data, link: e.Link, layer: f.layer}
	if e.Mode.IsDir() {
		n.kids = map[string]*node{}
	}
	dir.kids[n.name] = n
	return nil
}

// Link makes name another name of the file target, as hard links of an archive do.
func (f *FS) Link(name, target string) error {
	parts, err := Split(target)
	if err != nil {
		return err
	}
	t, err := f.walk(strings.Join(parts, "/"), false)
	if err != nil {
		return err
	}
	if t.mode.IsDir() {
		return errIsDir
	}
	return f.Add(Entry{Name: name, Mode: t.mode, Size: t.size, Data: t.data, Link: t.link})
}

// Whiteout removes name as far as it comes from an earlier layer.
func (f *FS) Whiteout(name string) error {
	dir, base, err := f.parent(name)
	if err != nil || base == "" {
		return err
	}
	if n := dir.kids[base]; n != nil {
		if n.layer < f.layer {
			delete(dir.kids, base)
		} else {
			f.prune(n)
		}
	}
	return nil
}

// Opaque removes what earlier layers put into a folder.
func (f *FS) Opaque(name string) error {
	n, err := f.folder(name)
	if err != nil {
		return err
	}
	f.prune(n)
	return nil
}

func (f *FS) prune(n *node) {
	for name, k := range n.kids {
		if k.layer < f.layer {
			delete(n.kids, name)
		} else {
			f.prune(k)
		}
	}
}

// count takes a node with so many bytes of text into account.
func (f *FS) count(text int) error {
	if f.added >= f.max {
		return fmt.Errorf("%w (more than %d)", ErrFull, f.max)
	}
	if f.text += text; f.text > maxText {
		return fmt.Errorf("%w (their names have more than %d MB)", ErrFull, maxText>>20)
	}
	f.added++
	return nil
}

// parent returns the folder of a name, which it makes when it is missing, and
// the last part. Links on the way are followed inside of the tree, as unpacking
// into a folder of its own does.
func (f *FS) parent(name string) (*node, string, error) {
	parts, err := Split(name)
	if err != nil || len(parts) == 0 {
		return f.root, "", err
	}
	dir, err := f.makeDirs(parts[:len(parts)-1])
	return dir, parts[len(parts)-1], err
}

func (f *FS) folder(name string) (*node, error) {
	parts, err := Split(name)
	if err != nil {
		return nil, err
	}
	return f.makeDirs(parts)
}

func (f *FS) makeDirs(parts []string) (*node, error) {
	n := f.root
	for i, p := range parts {
		k := n.kids[p]
		if k != nil && k.mode&fs.ModeSymlink != 0 {
			if t, err := f.walk(strings.Join(parts[:i+1], "/"), true); err == nil && t.mode.IsDir() {
				n = t
				continue
			}
		}
		if k == nil || !k.mode.IsDir() {
			if err := f.count(len(p)); err != nil {
				return nil, err
			}
			p = strings.Clone(p) // not the whole path
			k = &node{name: p, mode: fs.ModeDir | 0o755, kids: map[string]*node{}, layer: f.layer}
			n.kids[p] = k
		}
		k.layer = f.layer // a whiteout of this layer does not mean what stands in it
		n = k
	}
	return n, nil
}

// walk finds a node by a clean relative path. With follow a link at the end is followed too.
func (f *FS) walk(name string, follow bool) (*node, error) {
	links, steps := 0, 0
	n, at := f.root, []*node{}
	todo := strings.Split(name, "/")
	if name == "." || name == "" {
		todo = nil
	}
	for len(todo) > 0 {
		if steps++; steps > 4000 {
			return nil, errLoop
		}
		p := todo[0]
		todo = todo[1:]
		switch p {
		case "", ".":
			continue
		case "..":
			if len(at) > 0 {
				n, at = at[len(at)-1], at[:len(at)-1]
			}
			continue
		}
		if !n.mode.IsDir() {
			return nil, errNotDir
		}
		k := n.kids[p]
		if k == nil {
			return nil, fs.ErrNotExist
		}
		if k.mode&fs.ModeSymlink != 0 && (len(todo) > 0 || follow) {
			if links++; links > maxLinks || len(k.link) > maxName {
				return nil, errLoop
			}
			if path.IsAbs(k.link) {
				n, at = f.root, at[:0]
			}
			todo = append(strings.Split(k.link, "/"), todo...)
			continue
		}
		n, at = k, append(at, n)
	}
	return n, nil
}

func (f *FS) find(op, name string, follow bool) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, err := f.walk(name, follow)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// Open implements fs.FS. Regular files are also an io.ReaderAt and an io.Seeker.
func (f *FS) Open(name string) (fs.File, error) {
	n, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.mode.IsDir() {
		return &dir{n: n}, nil
	}
	return &file{n: n}, nil
}

// Stat implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	n, err := f.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return info{n}, nil
}

// Lstat implements fs.ReadLinkFS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	n, err := f.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return info{n}, nil
}

// ReadLink implements fs.ReadLinkFS.
func (f *FS) ReadLink(name string) (string, error) {
	n, err := f.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.mode&fs.ModeSymlink == 0 {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return n.link, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.find("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDir}
	}
	return n.entries(), nil
}

func (n *node) entries() []fs.DirEntry {
	out := make([]fs.DirEntry, 0, len(n.kids))
	for _, k := range n.kids {
		out = append(out, fs.FileInfoToDirEntry(info{k}))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

type info struct{ n *node }

func (i info) Name() string       { return i.n.name }
func (i info) Size() int64        { return i.n.size }
func (i info) Mode() fs.FileMode  { return i.n.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.n.mode.IsDir() }
func (i info) Sys() any           { return nil }

// errNoData is what reading a file gives of which only the name is known.
var errNoData = errors.New("its content was not kept while the archive was read")

type file struct {
	n   *node
	off int64
}

func (f *file) Stat() (fs.FileInfo, error) { return info{f.n}, nil }
func (f *file) Close() error               { return nil }

func (f *file) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	switch {
	case !f.n.mode.IsRegular():
		return 0, &fs.PathError{Op: "read", Path: f.n.name, Err: errors.New("not a regular file")}
	case off < 0:
		return 0, &fs.PathError{Op: "read", Path: f.n.name, Err: fs.ErrInvalid}
	case off >= f.n.size:
		return 0, io.EOF
	case f.n.data == nil:
		return 0, &fs.PathError{Op: "read", Path: f.n.name, Err: errNoData}
	}
	want := len(b)
	if int64(want) > f.n.size-off {
		b = b[:f.n.size-off]
	}
	n, err := f.n.data.ReadAt(b, off)
	switch {
	case n == len(b) && n == want:
		err = nil
	case n == len(b):
		err = io.EOF
	case err == nil || err == io.EOF:
		err = io.ErrUnexpectedEOF // shorter than the archive said
	}
	return n, err
}

func (f *file) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += f.off
	case io.SeekEnd:
		off += f.n.size
	}
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	f.off = off
	return off, nil
}

type dir struct {
	n    *node
	list []fs.DirEntry
	open bool
}

func (d *dir) Stat() (fs.FileInfo, error) { return info{d.n}, nil }
func (d *dir) Close() error               { return nil }
func (d *dir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.n.name, Err: errIsDir}
}

func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.open {
		d.list, d.open = d.n.entries(), true
	}
	if n <= 0 {
		out := d.list
		d.list = nil
		return out, nil
	}
	if len(d.list) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.list))
	out := d.list[:n]
	d.list = d.list[n:]
	return out, nil
}
