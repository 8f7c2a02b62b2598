package spool

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Lazy is a compressed file that is unpacked as far as somebody reads it. What
// was passed is kept: all of a file up to Whole bytes; of a longer one the first
// Ahead bytes, and the parts that keep names.
type Lazy struct {
	// Open starts the unpacked stream.
	Open  func() (io.ReadCloser, error)
	Size  int64
	What  What
	Store *Store

	mu   sync.Mutex
	r    io.ReadCloser
	f    *Sparse
	pos  int64
	keep []Span // nil until known
	err  error
	buf  []byte
}

const chunk = 64 << 10

// ReadAt implements io.ReaderAt.
func (l *Lazy) ReadAt(b []byte, off int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off < 0 || off >= l.Size {
		return 0, io.EOF
	}
	want := b[:min(int64(len(b)), l.Size-off)]
	if err := l.upTo(off + int64(len(want))); err != nil {
		return 0, err
	}
	n, err := l.f.ReadAt(want, off)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// upTo unpacks until pos reaches end.
func (l *Lazy) upTo(end int64) error {
	if l.f == nil {
		l.f = NewSparse(l.Store)
	}
	if l.pos >= end || l.err != nil {
		return l.err
	}
	if l.r == nil {
		if l.r, l.err = l.Open(); l.err != nil {
			return l.err
		}
	}
	if l.buf == nil {
		l.buf = make([]byte, chunk)
	}
	for l.pos < end && l.err == nil {
		n, err := io.ReadFull(l.r, l.buf[:min(chunk, l.Size-l.pos)])
		if n > 0 {
			if kerr := l.take(l.buf[:n]); kerr != nil && !errors.Is(kerr, ErrFull) {
				err = kerr
			}
			l.pos += int64(n)
		}
		switch {
		case l.pos == l.Size:
			l.close()
			return nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			l.err = fmt.Errorf("unpacked to %d bytes instead of %d: %w", l.pos, l.Size, io.ErrUnexpectedEOF)
		case err != nil:
			l.err = err
		}
	}
	if l.err != nil {
		l.close()
	}
	return l.err
}

// take keeps of a chunk what is worth it.
func (l *Lazy) take(b []byte) error {
	if l.keep == nil {
		l.keep = Keep(b, l.Size, l.What)
	}
	return keepSpans(l.f, b, l.pos, l.keep)
}

func keepSpans(f *Sparse, b []byte, pos int64, keep []Span) error {
	end := pos + int64(len(b))
	for _, s := range keep {
		from, to := max(s.From, pos), min(s.To, end)
		if from < to {
			if err := f.Keep(b[from-pos:to-pos], from); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lazy) close() {
	if l.r != nil {
		l.r.Close()
		l.r = nil
	}
	l.buf = nil
}

// Take reads a whole member of a stream and keeps the parts that are worth it.
// An ErrFull store keeps nothing more, which reading then shows as ErrHole.
func Take(s *Store, r io.Reader, size int64, what What, buf []byte) (*Sparse, error) {
	f := NewSparse(s)
	var keep []Span
	for pos := int64(0); pos < size; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), size-pos)])
		if n > 0 {
			if keep == nil {
				keep = Keep(buf[:n], size, what)
			}
			if kerr := keepSpans(f, buf[:n], pos, keep); kerr != nil && !errors.Is(kerr, ErrFull) {
				return nil, kerr
			}
			pos += int64(n)
		}
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if rest := keep[len(keep)-1].To; pos >= rest {
			return f, nil // whoever reads the stream skips what is left
		}
	}
	return f, nil
}
