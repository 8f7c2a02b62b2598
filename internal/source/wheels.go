package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ncclinic/ncclinic/internal/source/archive"
	"github.com/ncclinic/ncclinic/internal/source/spool"
)

// maxWheels bounds how many wheels are opened at once.
const maxWheels = 200

// OpenWheels opens wheels as the one folder of packages that installing all of
// them makes. Of a file that several have the one of the first wheel counts.
// Path of the target is that of the first. Errors name the wheel and the reason.
func OpenWheels(paths []string) (*Target, error) {
	if len(paths) == 0 || len(paths) > maxWheels {
		return nil, fmt.Errorf("%d wheels at once", len(paths))
	}
	t := &Target{Path: paths[0], Kind: KindWheel, Site: "/", Streamed: true, read: new(atomic.Int64), store: &spool.Store{}}
	t.close = append(t.close, t.store)
	var u union
	for _, p := range paths {
		f, err := t.wheel(p)
		if err != nil {
			t.Close()
			var pe *fs.PathError
			if errors.As(err, &pe) && pe.Path == p {
				return nil, err
			}
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		u = append(u, f)
	}
	t.FS = u
	return t, nil
}

func (t *Target) wheel(path string) (fs.FS, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t.close = append(t.close, f)
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t.files = append(t.files, opened{f, st})
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil || !st.Mode().IsRegular() || sniff(head) != "zip" {
		return nil, errors.New("not a wheel")
	}
	t.Size += st.Size()
	z, err := archive.Zip(countReader{f, t.read, st.Size()}, st.Size(), t.store)
	if err != nil {
		return nil, err
	}
	if !hasWheel(z) {
		return nil, errors.New("a zip file, not a wheel")
	}
	return z, nil
}

// union is several trees over each other: folders have the names of all, a file
// is that of the first tree that has it.
type union []fs.FS

// first returns the first tree that has a name, and what it is there.
func (u union) first(name string) (fs.FS, fs.FileInfo, error) {
	for _, f := range u {
		st, err := fs.Lstat(f, name)
		if err == nil {
			return f, st, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	return nil, nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (u union) Open(name string) (fs.File, error) {
	f, _, err := u.first(name)
	if err != nil {
		return nil, err
	}
	return f.Open(name)
}

func (u union) Lstat(name string) (fs.FileInfo, error) {
	_, st, err := u.first(name)
	return st, err
}

func (u union) Stat(name string) (fs.FileInfo, error) {
	f, _, err := u.first(name)
	if err != nil {
		return nil, err
	}
	return fs.Stat(f, name)
}

func (u union) ReadLink(name string) (string, error) {
	f, _, err := u.first(name)
	if err != nil {
		return "", err
	}
	return fs.ReadLink(f, name)
}

func (u union) ReadDir(name string) ([]fs.DirEntry, error) {
	var out []fs.DirEntry
	seen := map[string]bool{}
	err := error(&fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist})
	for _, f := range u {
		list, e := fs.ReadDir(f, name)
		if e != nil {
			if !errors.Is(e, fs.ErrNotExist) && err != nil {
				err = e
			}
			continue
		}
		err = nil
		for _, d := range list {
			if !seen[d.Name()] {
				seen[d.Name()] = true
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, err
}
