package elfx

import (
	"errors"
	"io"
)

// ErrBudget means that a Meter's limit was reached: what was asked is unknown, not absent.
var ErrBudget = errors.New("read limit reached")

// Meter counts what is read from all files opened with it and refuses more
// than its limits. Libraries of PyTorch have a gigabyte and may lie on a slow
// network file system; nobody waits for that. The zero limit means no limit.
// A Meter is not safe for concurrent use.
type Meter struct {
	MaxBytes int64
	MaxFiles int

	Bytes int64 // read so far
	Files int   // opened so far
	Reads int   // calls of ReadAt
}

// file counts one more opened file.
func (m *Meter) file() error {
	if m == nil {
		return nil
	}
	if m.MaxFiles > 0 && m.Files >= m.MaxFiles {
		return ErrBudget
	}
	m.Files++
	return nil
}

// Take counts n bytes that are about to be read, or refuses them.
func (m *Meter) Take(n int) error {
	if m == nil {
		return nil
	}
	if m.MaxBytes > 0 && m.Bytes+int64(n) > m.MaxBytes {
		return ErrBudget
	}
	m.Bytes += int64(n)
	m.Reads++
	return nil
}

const (
	pageBits = 10 // a header, a dynamic section and its strings are some hundred bytes each
	pageSize = 1 << pageBits
	maxPages = 4096 // 4 MiB of cache for one file
	maxRun   = 256  // pages that one call of ReadAt fetches at most
)

// pager reads pieces of a file through a small cache of pages, because lookups
// in hash tables touch the same few pages again and again.
type pager struct {
	r     io.ReaderAt
	size  int64
	m     *Meter
	pages map[int64][]byte
}

// bytes returns n bytes at off; the slice is only valid until the next call.
// Callers keep n small.
func (p *pager) bytes(off int64, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > p.size || int64(n) > p.size-off {
		return nil, errRange
	}
	if n == 0 {
		return nil, nil
	}
	first, last := off>>pageBits, (off+int64(n)-1)>>pageBits
	if err := p.load(first, last); err != nil {
		return nil, err
	}
	in := int(off & (pageSize - 1))
	if first == last {
		return p.pages[first][in : in+n], nil
	}
	out := make([]byte, 0, n)
	for pg := first; pg <= last; pg++ {
		b := p.pages[pg][in:]
		out = append(out, b[:min(len(b), n-len(out))]...)
		in = 0
	}
	return out, nil
}

// load makes sure that the pages first to last are cached, neighbours with one read.
func (p *pager) load(first, last int64) error {
	if last-first >= maxPages {
		return errRange
	}
	if len(p.pages)+int(last-first)+1 > maxPages {
		clear(p.pages)
	}
	if p.pages == nil {
		p.pages = make(map[int64][]byte)
	}
	for pg := first; pg <= last; {
		if p.pages[pg] != nil {
			pg++
			continue
		}
		end := pg + 1
		for end <= last && end-pg < maxRun && p.pages[end] == nil {
			end++
		}
		off := pg << pageBits
		buf := make([]byte, min((end-pg)<<pageBits, p.size-off))
		if err := p.readAt(buf, off); err != nil {
			return err
		}
		for ; pg < end; pg++ {
			n := min(pageSize, len(buf))
			p.pages[pg], buf = buf[:n:n], buf[n:]
		}
	}
	return nil
}

// readAt fills buf from off without the cache.
func (p *pager) readAt(buf []byte, off int64) error {
	if off < 0 || off > p.size || int64(len(buf)) > p.size-off {
		return errRange
	}
	if err := p.m.Take(len(buf)); err != nil {
		return err
	}
	n, err := p.r.ReadAt(buf, off)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
