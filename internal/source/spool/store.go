// Package spool keeps pieces of files that can be read only once, in order: the
// members of a compressed archive. A few megabytes stay in memory, the rest
// goes to a temporary file without a name, which is gone when the program ends,
// however it ends.
package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
)

// Limits of a Store when none are given.
const (
	DefaultMem  = 8 << 20   // bytes kept in memory
	DefaultDisk = 768 << 20 // bytes kept in the temporary file
)

var (
	// ErrHole means that a part of a file was asked for that was not kept.
	ErrHole = errors.New("this part of the compressed file was not kept")
	// ErrFull means that a store took as much as it may.
	ErrFull = errors.New("too much to keep")
)

// Store holds kept bytes. It is safe for concurrent use.
type Store struct {
	Mem  int64 // limit of memory; 0: DefaultMem
	Disk int64 // limit of the temporary file; 0: DefaultDisk

	mu   sync.Mutex
	mem  int64
	f    *os.File
	off  int64
	full bool
}

// Close gives memory and disk space back.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	return err
}

// Used returns the bytes kept in memory and on disk.
func (s *Store) Used() (mem, disk int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mem, s.off
}

// Full reports whether something was not kept because of the limits.
func (s *Store) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}

func orElse(n, def int64) int64 {
	if n > 0 {
		return n
	}
	return def
}

// put keeps b and says where: in memory, or at an offset of the file.
func (s *Store) put(b []byte) (mem []byte, at int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil && s.mem+int64(len(b)) <= orElse(s.Mem, DefaultMem) {
		s.mem += int64(len(b))
		return append([]byte(nil), b...), 0, nil
	}
	if s.off+int64(len(b)) > orElse(s.Disk, DefaultDisk) {
		s.full = true
		return nil, 0, ErrFull
	}
	if s.f == nil {
		f, err := unnamed()
		if err != nil {
			return nil, 0, fmt.Errorf("temporary file: %w", err)
		}
		s.f = f
	}
	at = s.off
	n, err := s.f.WriteAt(b, at)
	s.off += int64(n)
	if err != nil {
		return nil, 0, fmt.Errorf("temporary file: %w", err)
	}
	return nil, at, nil
}

func (s *Store) get(b []byte, at int64) (int, error) {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if f == nil {
		return 0, os.ErrClosed
	}
	return f.ReadAt(b, at)
}

// unnamed makes a file in $TMPDIR and removes its name at once.
func unnamed() (*os.File, error) {
	f, err := os.CreateTemp("", "ncclinic-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// Sparse is a file of which some parts are kept. Reading a part that is not
// kept is ErrHole.
type Sparse struct {
	s     *Store
	parts []part // in order of offset, without overlap
}

type part struct {
	off, n int64
	mem    []byte // nil: in the file
	at     int64
}

// NewSparse returns an empty file whose bytes go to s.
func NewSparse(s *Store) *Sparse { return &Sparse{s: s} }

// Keep keeps b as the bytes at off, which must not lie before what was kept already.
func (f *Sparse) Keep(b []byte, off int64) error {
	if len(b) == 0 {
		return nil
	}
	mem, at, err := f.s.put(b)
	if err != nil {
		return err
	}
	if n := len(f.parts); n > 0 && mem == nil {
		if p := &f.parts[n-1]; p.mem == nil && p.off+p.n == off && p.at+p.n == at {
			p.n += int64(len(b))
			return nil
		}
	}
	f.parts = append(f.parts, part{off: off, n: int64(len(b)), mem: mem, at: at})
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *Sparse) ReadAt(b []byte, off int64) (int, error) {
	done := 0
	i := sort.Search(len(f.parts), func(i int) bool { return f.parts[i].off+f.parts[i].n > off })
	for done < len(b) {
		if i == len(f.parts) || f.parts[i].off > off+int64(done) {
			return done, ErrHole
		}
		p := f.parts[i]
		in := off + int64(done) - p.off
		want := b[done:min(len(b), done+int(min(p.n-in, int64(len(b)))))]
		if p.mem != nil {
			done += copy(want, p.mem[in:])
		} else {
			n, err := f.s.get(want, p.at+in)
			done += n
			if n < len(want) {
				if err == nil || err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return done, err
			}
		}
		i++
	}
	return done, nil
}
