package squashfs

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"sync"
)

// file is an open regular file. Like *os.File it may be read with ReadAt by
// several goroutines; Read and Seek share one offset.
type file struct {
	s    *FS
	info *fileInfo

	mu     sync.Mutex
	closed bool
	off    int64
	blocks blockIndex
}

func (f *file) Stat() (fs.FileInfo, error) {
	if f.isClosed() {
		return nil, f.fail("stat", fs.ErrClosed)
	}
	return f.info, nil
}

func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.fail("close", fs.ErrClosed)
	}
	f.closed, f.blocks = true, blockIndex{}
	return nil
}

func (f *file) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func (f *file) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.info.name, Err: err}
}

func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAt(p, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt: only the blocks that hold the range are read.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, f.fail("read", errors.New("negative offset"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readAt(p, off)
}

// Seek implements io.Seeker.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, f.fail("seek", fs.ErrClosed)
	}
	base := int64(0)
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.off
	case io.SeekEnd:
		base = f.info.n.size
	default:
		return 0, f.fail("seek", errors.New("invalid whence"))
	}
	to := base + offset
	if to < 0 || offset > 0 && to < base {
		return 0, f.fail("seek", errors.New("invalid offset"))
	}
	f.off = to
	return to, nil
}

func (f *file) readAt(p []byte, off int64) (n int, err error) {
	if f.closed {
		return 0, f.fail("read", fs.ErrClosed)
	}
	size, bs := f.info.n.size, int64(f.s.sb.blockSize)
	for n < len(p) && off < size {
		b, in := off/bs, off%bs
		want := min(bs, size-b*bs) // length of this block
		part := p[n:min(len(p), n+int(want-in))]
		if err := f.readBlock(part, b, int(in), int(want)); err != nil {
			return n, f.fail("read", err)
		}
		n, off = n+len(part), off+int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readBlock fills p from offset in of block b, which has want bytes.
func (f *file) readBlock(p []byte, b int64, in, want int) error {
	ino := f.info.n
	if b >= ino.blocks { // only the tail of a file can be in a fragment
		if ino.frag >= f.s.sb.fragments {
			return corrupt("fragment %d of %d", ino.frag, f.s.sb.fragments)
		}
		if ino.fragOff >= f.s.sb.blockSize {
			return corrupt("offset %d in a fragment", ino.fragOff)
		}
		var row [16]byte
		if err := f.s.record(row[:], f.s.sb.fragTable, ino.frag, metaSize/16); err != nil {
			return err
		}
		at := int64(binary.LittleEndian.Uint64(row[:]))
		return f.s.data(p, at, binary.LittleEndian.Uint32(row[8:]), int(ino.fragOff)+in, 0)
	}
	at, word, err := f.blocks.find(ino, b)
	if err != nil {
		return err
	}
	if word == 0 { // a hole
		clear(p)
		return nil
	}
	return f.s.data(p, at, word, in, want)
}

// blockIndex finds the blocks of a file. Only their sizes are stored, one
// after another, so the position of a block is the sum of those before it:
// the index holds the sums of each chunk that was passed, and one chunk.
type blockIndex struct {
	marks []mark // where each chunk begins that was reached, in order
	chunk int    // the one that is loaded
	words []uint32
	at    []int64 // where the blocks of the chunk begin
}

// mark is where a chunk begins: the sizes in the inode table, the blocks in the image.
type mark struct {
	sizes cursor
	data  int64
}

const perChunk = 1024

// find returns position and size of block b, which is below n.blocks.
func (x *blockIndex) find(n *inode, b int64) (at int64, word uint32, err error) {
	if n.blocks > maxBlocks {
		return 0, 0, limit("a file of %d blocks", n.blocks)
	}
	if x.marks == nil {
		x.marks = []mark{{n.trailing, int64(n.start)}}
		x.chunk = -1
	}
	c := int(b / perChunk)
	for x.chunk != c {
		if err := x.load(n, min(c, len(x.marks)-1)); err != nil {
			x.chunk = -1
			return 0, 0, err
		}
	}
	return x.at[b%perChunk], x.words[b%perChunk], nil
}

// load reads chunk c, whose mark is known, and marks the one behind it.
func (x *blockIndex) load(n *inode, c int) error {
	m := x.marks[c]
	k := int(min(perChunk, n.blocks-int64(c)*perChunk))
	b := make([]byte, 4*k)
	if err := m.sizes.read(b); err != nil {
		return err
	}
	x.words, x.at = make([]uint32, k), make([]int64, k)
	for i := range k {
		w := binary.LittleEndian.Uint32(b[4*i:])
		x.words[i], x.at[i] = w, m.data
		m.data += int64(w &^ dataPlain) // below 2^26 times 2^32: data checks each position
	}
	x.chunk = c
	if c == len(x.marks)-1 && k == perChunk {
		m.sizes.drop()
		x.marks = append(x.marks, m)
	}
	return nil
}
