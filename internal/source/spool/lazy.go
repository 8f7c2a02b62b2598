package spool

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Lazy is a compressed file that is unpacked as far as somebody reads it. What
// was passed is kept: all of a file up to Whole bytes; of a longer one the first
// megabytes, and the parts that ELFSpans names.
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
	last []byte // the piece before pos
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
	n := 0
	if l.f == nil {
		l.f = NewSparse(l.Store)
	}
	if at := l.pos - int64(len(l.last)); off < at { // it was passed already: what of it is left, was kept
		var err error
		if n, err = l.f.ReadAt(want[:min(int64(len(want)), at-off)], off); err != nil {
			return n, err
		}
	}
	if n < len(want) && off+int64(n) < l.pos { // the last piece is at hand as it is
		n += copy(want[n:], l.last[off+int64(n)-(l.pos-int64(len(l.last))):])
	}
	if n < len(want) {
		m, err := l.forward(want[n:], off+int64(n))
		if n += m; err != nil {
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// forward unpacks up to the end of dst, which are the bytes from off on.
func (l *Lazy) forward(dst []byte, off int64) (done int, err error) {
	end := off + int64(len(dst))
	if l.err != nil {
		return 0, l.err
	}
	if l.r == nil {
		if l.r, l.err = l.Open(); l.err != nil {
			return 0, l.err
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
			if from := max(off, l.pos); from < l.pos+int64(n) {
				done += copy(dst[from-off:], l.buf[from-l.pos:n])
			}
			l.pos += int64(n)
			l.last = l.buf[:n]
		}
		switch {
		case l.pos == l.Size:
			l.close()
			return done, nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			l.err = fmt.Errorf("unpacked to %d bytes instead of %d: %w", l.pos, l.Size, io.ErrUnexpectedEOF)
		case err != nil:
			l.err = err
		}
	}
	if l.err != nil {
		l.close()
	}
	return done, l.err
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
	if l.pos == l.Size && l.Size <= Whole {
		l.buf, l.last = nil, nil // all of it was kept
	}
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
