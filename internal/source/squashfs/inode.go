package squashfs

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// Types of inodes; an extended one is seven more.
const (
	typeDir = 1 + iota
	typeFile
	typeLink
	typeBlock
	typeChar
	typeFifo
	typeSocket
	extended = 7
)

const noFragment = ^uint32(0)

// typeModes are the mode bits of the types.
var typeModes = [8]fs.FileMode{
	typeDir: fs.ModeDir, typeFile: 0, typeLink: fs.ModeSymlink, typeBlock: fs.ModeDevice,
	typeChar: fs.ModeDevice | fs.ModeCharDevice, typeFifo: fs.ModeNamedPipe, typeSocket: fs.ModeSocket,
}

// inode is one inode, basic or extended.
type inode struct {
	ref      uint64 // where it lies
	typ      uint8  // of the basic types
	mode     fs.FileMode
	uid, gid uint32
	modTime  time.Time
	number   uint32
	nlink    uint32
	size     int64 // of a file's content, a directory's listing or a link's target
	rdev     uint32
	target   string // of a link

	// A directory: where its listing begins and how many index entries follow the inode.
	dirBlock uint32
	dirOff   uint16
	indexes  uint16

	// A file: where its blocks begin, and the fragment with its last bytes.
	start    uint64
	frag     uint32
	fragOff  uint32
	blocks   int64  // number of blocks
	trailing cursor // behind the inode: the sizes of blocks, or the index of a directory
}

func (n *inode) isDir() bool { return n.typ == typeDir }

// inode reads the inode that a reference names: the position of its metadata
// block in the inode table, and 16 bits of offset in it.
func (s *FS) inode(ref uint64) (*inode, error) {
	c, err := s.cursorAt(s.sb.inodeTable, s.sb.dirTable, ref>>16, int(ref&0xffff))
	if err != nil {
		return nil, err
	}
	var b [56]byte
	if err := c.read(b[:16]); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	typ := le.Uint16(b[:])
	uid, gid := int(le.Uint16(b[4:])), int(le.Uint16(b[6:]))
	if typ < typeDir || typ > typeSocket+extended {
		return nil, corrupt("an inode of type %d", typ)
	}
	if uid >= len(s.ids) || gid >= len(s.ids) {
		return nil, corrupt("an inode with owner %d:%d of %d", uid, gid, len(s.ids))
	}
	n := &inode{
		ref: ref, typ: uint8(typ), uid: s.ids[uid], gid: s.ids[gid],
		modTime: time.Unix(int64(le.Uint32(b[8:])), 0), number: le.Uint32(b[12:]), nlink: 1,
	}
	if typ > extended {
		n.typ -= extended
	}
	n.mode = typeModes[n.typ] | unixMode(le.Uint16(b[2:]))

	body := func(size int) []byte {
		err = c.read(b[:size])
		return b[:size]
	}
	switch typ {
	case typeDir:
		b := body(16)
		n.dirBlock, n.nlink, n.size, n.dirOff = le.Uint32(b), le.Uint32(b[4:]), int64(le.Uint16(b[8:])), le.Uint16(b[10:])
	case typeDir + extended:
		b := body(24)
		n.nlink, n.size, n.dirBlock = le.Uint32(b), int64(le.Uint32(b[4:])), le.Uint32(b[8:])
		n.indexes, n.dirOff = le.Uint16(b[16:]), le.Uint16(b[18:])
	case typeFile:
		b := body(16)
		n.start, n.frag, n.fragOff, n.size = uint64(le.Uint32(b)), le.Uint32(b[4:]), le.Uint32(b[8:]), int64(le.Uint32(b[12:]))
	case typeFile + extended:
		b := body(40)
		n.start, n.size, n.nlink = le.Uint64(b), int64(le.Uint64(b[8:])), le.Uint32(b[24:])
		n.frag, n.fragOff = le.Uint32(b[28:]), le.Uint32(b[32:])
	case typeLink, typeLink + extended:
		b := body(8)
		n.nlink, n.size = le.Uint32(b), int64(le.Uint32(b[4:]))
	case typeBlock, typeChar, typeBlock + extended, typeChar + extended:
		b := body(8)
		n.nlink, n.rdev = le.Uint32(b), le.Uint32(b[4:])
	default: // fifo, socket
		n.nlink = le.Uint32(body(4))
	}
	if err != nil {
		return nil, err
	}
	switch n.typ {
	case typeDir:
		// The size counts "." and "..", which are not stored, as three bytes.
		if n.size = max(0, n.size-3); n.size > maxListing {
			return nil, limit("a directory with a listing of %d bytes", n.size)
		}
	case typeFile:
		if n.size < 0 {
			return nil, corrupt("a file of %d bytes", uint64(n.size))
		}
		bs := int64(s.sb.blockSize)
		if n.blocks = n.size / bs; n.frag == noFragment && n.size%bs > 0 {
			n.blocks++
		}
	case typeLink:
		if n.size > maxLinkSize {
			return nil, limit("a link with a target of %d bytes", n.size)
		}
		t := make([]byte, n.size)
		if err := c.read(t); err != nil {
			return nil, err
		}
		n.target = string(t)
	}
	c.drop() // an inode that is kept must not keep a block
	n.trailing = c
	return n, nil
}

// unixMode turns permission bits into those of io/fs.
func unixMode(m uint16) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	for bit, f := range map[uint16]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&bit != 0 {
			mode |= f
		}
	}
	return mode
}
