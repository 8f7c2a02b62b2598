package squashfs

import "encoding/binary"

// cursor reads a stream of metadata blocks from one position on.
type cursor struct {
	s    *FS
	end  int64 // of the table; no block begins there or behind
	at   int64 // position of the current block
	off  int   // in the current block
	blk  metaBlock
	have bool
}

// cursorAt is a cursor at a byte of a decompressed block, of a table that
// reaches from one position of the image to another. block counts from its
// beginning.
func (s *FS) cursorAt(table, end, block uint64, off int) (cursor, error) {
	at := table + block
	if at < table || at >= end || off >= metaSize {
		return cursor{}, corrupt("a reference to byte %d of a block at %d, the table has %d bytes", off, block, end-table)
	}
	return cursor{s: s, end: int64(end), at: int64(at), off: off}, nil
}

// drop forgets the block, not the position; the next read takes it from the cache.
func (c *cursor) drop() { c.have, c.blk = false, metaBlock{} }

// fill makes at least one byte available.
func (c *cursor) fill() error {
	for {
		if !c.have {
			if c.at >= c.end {
				return corrupt("a table ends at %d, within a record", c.end)
			}
			b, err := c.s.meta(c.at)
			if err != nil {
				return err
			}
			if c.off > len(b.data) {
				return corrupt("a reference to byte %d of the block at %d, which has %d", c.off, c.at, len(b.data))
			}
			c.blk, c.have = b, true
		}
		if c.off < len(c.blk.data) {
			return nil
		}
		c.at, c.off, c.have = c.blk.next, 0, false
	}
}

// read fills p.
func (c *cursor) read(p []byte) error {
	for len(p) > 0 {
		if err := c.fill(); err != nil {
			return err
		}
		n := copy(p, c.blk.data[c.off:])
		p, c.off = p[n:], c.off+n
	}
	return nil
}

// record returns row i of a table that is split into metadata blocks of per
// rows each, whose positions stand in a list of 64-bit numbers in the image.
func (s *FS) record(p []byte, list uint64, i, per uint32) error {
	var b [8]byte
	s.mu.Lock()
	err := s.plain(b[:], int64(list+8*uint64(i/per)))
	s.mu.Unlock()
	if err != nil {
		return err
	}
	at := binary.LittleEndian.Uint64(b[:])
	if at < superSize || at >= uint64(s.sb.bytesUsed) {
		return corrupt("a table points to byte %d of %d", at, s.sb.bytesUsed)
	}
	blk, err := s.meta(int64(at))
	if err != nil {
		return err
	}
	off := int(i%per) * len(p)
	if off+len(p) > len(blk.data) {
		return corrupt("the table at %d has no row %d", at, i)
	}
	copy(p, blk.data[off:])
	return nil
}

// readIDs reads the users and groups that inodes refer to by number: at most
// 65535, 256 KiB.
func (s *FS) readIDs() ([]uint32, error) {
	const per = metaSize / 4
	ids := make([]uint32, s.sb.ids)
	var b [4]byte
	for i := range ids {
		if err := s.record(b[:], s.sb.idTable, uint32(i), per); err != nil {
			return nil, err
		}
		ids[i] = binary.LittleEndian.Uint32(b[:])
	}
	return ids, nil
}
