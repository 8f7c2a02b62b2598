package squashfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"
)

const (
	superSize    = 96
	magic        = 0x73717368 // "hsqs" in little endian
	minBlockSize = 4 << 10
	maxBlockSize = 1 << 20
	noTable      = ^uint64(0) // a table that is not there
)

// superblock is the head of an image. Positions of tables are from the
// beginning of the image.
type superblock struct {
	inodes     uint32
	modTime    time.Time
	blockSize  uint32
	fragments  uint32
	compressor uint16
	ids        uint16
	root       uint64 // reference of the root inode
	bytesUsed  int64  // length of the image without padding

	idTable, inodeTable, dirTable, fragTable uint64
}

func readSuperblock(r io.ReaderAt, size int64) (superblock, error) {
	var sb superblock
	var b [superSize]byte
	n, err := r.ReadAt(b[:min(superSize, max(size, 0))], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return sb, err
	}
	le := binary.LittleEndian
	switch {
	case n >= 4 && le.Uint32(b[:]) == magic:
	case n >= 4 && binary.BigEndian.Uint32(b[:]) == magic:
		return sb, fmt.Errorf("%w: big-endian, version 3 or older", ErrUnsupported)
	default:
		return sb, ErrNotSquashfs
	}
	if n < superSize {
		return sb, corrupt("cut off within the superblock, %d bytes", n)
	}
	if major, minor := le.Uint16(b[28:]), le.Uint16(b[30:]); major != 4 || minor != 0 {
		return sb, fmt.Errorf("%w: version %d.%d, not 4.0", ErrUnsupported, major, minor)
	}
	sb = superblock{
		inodes:     le.Uint32(b[4:]),
		modTime:    time.Unix(int64(le.Uint32(b[8:])), 0),
		blockSize:  le.Uint32(b[12:]),
		fragments:  le.Uint32(b[16:]),
		compressor: le.Uint16(b[20:]),
		ids:        le.Uint16(b[26:]),
		root:       le.Uint64(b[32:]),
		bytesUsed:  int64(le.Uint64(b[40:])),
		idTable:    le.Uint64(b[48:]),
		inodeTable: le.Uint64(b[64:]),
		dirTable:   le.Uint64(b[72:]),
		fragTable:  le.Uint64(b[80:]),
	}
	log := le.Uint16(b[22:])
	switch bs := sb.blockSize; {
	case bs < minBlockSize || bs > maxBlockSize || bits.OnesCount32(bs) != 1:
		return sb, corrupt("blocks of %d bytes", bs)
	case bits.Len32(bs)-1 != int(log):
		return sb, corrupt("blocks of %d bytes, but their logarithm is %d", bs, log)
	case sb.bytesUsed < superSize:
		return sb, corrupt("it claims to be %d bytes long", sb.bytesUsed)
	case sb.bytesUsed > size:
		return sb, corrupt("cut off: it should have %d bytes and has %d", sb.bytesUsed, size)
	case sb.ids == 0:
		return sb, corrupt("no owners")
	}
	used := uint64(sb.bytesUsed)
	for _, t := range []struct {
		name string
		at   uint64
	}{{"inode", sb.inodeTable}, {"directory", sb.dirTable}, {"owner", sb.idTable}} {
		if t.at < superSize || t.at >= used {
			return sb, corrupt("its %s table lies at byte %d of %d", t.name, t.at, used)
		}
	}
	if sb.inodeTable >= sb.dirTable {
		return sb, corrupt("its inode table (at %d) does not precede the directory table (at %d)", sb.inodeTable, sb.dirTable)
	}
	if sb.fragTable == noTable {
		sb.fragments = 0
	} else if sb.fragments > 0 && (sb.fragTable < superSize || sb.fragTable >= used) {
		return sb, corrupt("its fragment table lies at byte %d of %d", sb.fragTable, used)
	}
	return sb, nil
}
