package squashfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	metaSize  = 8 << 10 // decompressed size of a metadata block
	metaPlain = 1 << 15 // in the head of a metadata block: not compressed
	dataPlain = 1 << 24 // in the size of a data block: not compressed
	metaHead  = 2       // bytes of that head
)

// metaBlock is a decompressed metadata block. Its data is never written to.
type metaBlock struct {
	data []byte
	next int64 // position of the block behind it
}

type dataKey struct {
	at   int64
	size uint32
}

// readAt fills p from the image itself.
func (s *FS) readAt(p []byte, at int64) error {
	if at < 0 || at > s.sb.bytesUsed || int64(len(p)) > s.sb.bytesUsed-at {
		return corrupt("%d bytes at %d are beyond its end at %d", len(p), at, s.sb.bytesUsed)
	}
	n, err := s.r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return corrupt("cut off at byte %d", at+int64(n))
	}
	return err
}

// plain fills p from the image through pages; large reads go past them. The
// lock is held.
func (s *FS) plain(p []byte, at int64) error {
	if at < 0 || at > s.sb.bytesUsed || int64(len(p)) > s.sb.bytesUsed-at {
		return corrupt("%d bytes at %d are beyond its end at %d", len(p), at, s.sb.bytesUsed)
	}
	for len(p) > 0 {
		first := at - at%pageSize
		page, ok := s.pages.get(first)
		if !ok && len(p) >= pageSize {
			return s.readAt(p, at)
		}
		if !ok {
			page = make([]byte, min(pageSize, s.sb.bytesUsed-first))
			if err := s.readAt(page, first); err != nil {
				return err
			}
			s.pages.add(first, page)
		}
		n := copy(p, page[at-first:])
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// decompress reads a block of size bytes at a position of the image and
// decompresses it to dst. The lock is held.
func (s *FS) decompress(dst []byte, at int64, size int, paged bool) (int, error) {
	if len(s.scratch) < size {
		s.scratch = make([]byte, size) // size was checked against the block size
	}
	in := s.scratch[:size]
	read := s.readAt
	if paged {
		read = s.plain
	}
	if err := read(in, at); err != nil {
		return 0, err
	}
	n, err := s.dec.decode(dst, in)
	if err != nil {
		return 0, fmt.Errorf("%w: the block at %d: %v", ErrCorrupt, at, err)
	}
	return n, nil
}

// meta returns the metadata block at a position of the image.
func (s *FS) meta(at int64) (metaBlock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.metas.get(at); ok {
		return b, nil
	}
	var head [metaHead]byte
	if err := s.plain(head[:], at); err != nil {
		return metaBlock{}, err
	}
	word := binary.LittleEndian.Uint16(head[:])
	size := int(word &^ metaPlain)
	if size == 0 || size > metaSize {
		return metaBlock{}, corrupt("the metadata block at %d claims %d bytes", at, size)
	}
	b := metaBlock{next: at + metaHead + int64(size)}
	if word&metaPlain != 0 {
		b.data = make([]byte, size)
		if err := s.plain(b.data, at+metaHead); err != nil {
			return metaBlock{}, err
		}
	} else {
		buf := make([]byte, metaSize)
		n, err := s.decompress(buf, at+metaHead, size, true)
		if err != nil {
			return metaBlock{}, err
		}
		if n == 0 {
			return metaBlock{}, corrupt("the metadata block at %d is empty", at)
		}
		b.data = buf[:n]
	}
	s.metas.add(at, b)
	return b, nil
}

// data copies from offset off of a data or fragment block to p. word is the
// block's size with the mark of an uncompressed one; want is the exact length
// that the block must have, or 0 when at least off+len(p) will do.
func (s *FS) data(p []byte, at int64, word uint32, off, want int) error {
	size := int(word &^ dataPlain)
	if size <= 0 || size > int(s.sb.blockSize) {
		return corrupt("the data block at %d claims %d bytes", at, size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if word&dataPlain != 0 {
		if want > 0 && size != want || off+len(p) > size {
			return corrupt("the data block at %d has %d bytes instead of %d", at, size, max(want, off+len(p)))
		}
		return s.plain(p, at+int64(off))
	}
	key := dataKey{at, word}
	b, ok := s.datas.get(key)
	if !ok && want > 0 && off == 0 && len(p) == want {
		// The reader wants all of it: no use to keep it.
		n, err := s.decompress(p, at, size, false)
		if err == nil && n != want {
			err = corrupt("the data block at %d has %d bytes instead of %d", at, n, want)
		}
		return err
	}
	if !ok {
		buf := s.spare
		if s.spare = nil; buf == nil {
			buf = make([]byte, s.sb.blockSize)
		}
		n, err := s.decompress(buf, at, size, false)
		if err != nil {
			s.spare = buf
			return err
		}
		b = buf[:n]
		if old := s.datas.add(key, b); old != nil {
			s.spare = old[:cap(old)]
		}
	}
	if want > 0 && len(b) != want || off+len(p) > len(b) {
		return corrupt("the data block at %d has %d bytes instead of %d", at, len(b), max(want, off+len(p)))
	}
	copy(p, b[off:])
	return nil
}
