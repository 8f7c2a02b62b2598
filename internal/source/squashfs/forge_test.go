package squashfs_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
)

// forge makes images by hand, as no honest program would: uncompressed, each
// record as the test wants it.
type forge struct {
	inodes, dirs []byte
	data         []byte // behind the superblock
}

// item is an entry of a forged directory.
type item struct {
	name string
	ref  uint64
	typ  uint16
}

var le = binary.LittleEndian

// ref is the reference of the inode that is added next.
func (f *forge) ref() uint64 { return refAt(len(f.inodes)) }

// refAt turns a position in a table into block and offset; a full block takes 8194 bytes.
func refAt(pos int) uint64 { return uint64(pos/8192*8194)<<16 | uint64(pos%8192) }

func (f *forge) inode(typ uint16, body ...any) uint64 {
	ref := f.ref()
	b := le.AppendUint16(nil, typ)
	b = le.AppendUint16(b, 0o755)
	b = append(b, make([]byte, 12)...) // owner 0, time 0, number 0
	for _, v := range body {
		switch v := v.(type) {
		case uint16:
			b = le.AppendUint16(b, v)
		case uint32:
			b = le.AppendUint32(b, v)
		case uint64:
			b = le.AppendUint64(b, v)
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		default:
			panic("forge: type of a field")
		}
	}
	f.inodes = append(f.inodes, b...)
	return ref
}

// listing adds a directory's listing; the result is where it lies and its length.
func (f *forge) listing(items ...item) (at uint64, size uint32) {
	at = refAt(len(f.dirs))
	var b []byte
	for len(items) > 0 {
		n := 1
		for n < len(items) && n < 256 && items[n].ref>>16 == items[0].ref>>16 {
			n++
		}
		b = le.AppendUint32(b, uint32(n-1))
		b = le.AppendUint32(b, uint32(items[0].ref>>16))
		b = le.AppendUint32(b, 0)
		for _, it := range items[:n] {
			b = le.AppendUint16(b, uint16(it.ref))
			b = le.AppendUint16(b, 0)
			b = le.AppendUint16(b, it.typ)
			b = le.AppendUint16(b, uint16(len(it.name)-1))
			b = append(b, it.name...)
		}
		items = items[n:]
	}
	f.dirs = append(f.dirs, b...)
	return at, uint32(len(b))
}

// dir adds an extended directory inode for a listing.
func (f *forge) dir(at uint64, size uint32) uint64 {
	return f.inode(8, uint32(2), size+3, uint32(at>>16), uint32(0), uint16(0), uint16(at), ^uint32(0))
}

// dirOf adds a directory with entries.
func (f *forge) dirOf(items ...item) uint64 { return f.dir(f.listing(items...)) }

// file adds an extended file inode with its block sizes.
func (f *forge) file(start, size uint64, blocks ...uint32) uint64 {
	b := make([]byte, 0, 4*len(blocks))
	for _, w := range blocks {
		b = le.AppendUint32(b, w)
	}
	return f.inode(9, start, size, uint64(0), uint32(1), ^uint32(0), uint32(0), ^uint32(0), b)
}

// image puts all together.
func (f *forge) image(root uint64) []byte {
	table := func(b []byte) (out []byte) {
		for c := range slices.Chunk(b, 8192) {
			out = le.AppendUint16(out, uint16(len(c))|0x8000)
			out = append(out, c...)
		}
		return out
	}
	b := append(make([]byte, 96), f.data...)
	inodes := len(b)
	b = append(b, table(f.inodes)...)
	dirs := len(b)
	b = append(b, table(f.dirs)...)
	ids := len(b)
	b = append(b, table(make([]byte, 4))...)
	idTable := len(b)
	b = le.AppendUint64(b, uint64(ids))
	copy(b, "hsqs")
	le.PutUint32(b[4:], 1)
	le.PutUint32(b[12:], 4096)
	le.PutUint16(b[20:], 1)
	le.PutUint16(b[22:], 12)
	le.PutUint16(b[26:], 1)
	le.PutUint16(b[28:], 4)
	le.PutUint64(b[32:], root)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint64(b[48:], uint64(idTable))
	for at, v := range map[int]uint64{56: ^uint64(0), 64: uint64(inodes), 72: uint64(dirs), 80: ^uint64(0), 88: ^uint64(0)} {
		le.PutUint64(b[at:], v)
	}
	return b
}

func (f *forge) open(t testing.TB, root uint64) *squashfs.FS {
	t.Helper()
	return openBytes(t, f.image(root))
}

func openBytes(t testing.TB, b []byte) *squashfs.FS {
	t.Helper()
	s, err := squashfs.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestForge: what the other tests build on is readable.
func TestForge(t *testing.T) {
	f := &forge{data: []byte(strings.Repeat("x", 4096) + "tail")}
	file := f.file(96, 4100, 4096|1<<24, 4|1<<24)
	var items []item
	for i := range 2000 {
		items = append(items, item{name: string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26)), ref: f.inode(6, uint32(1)), typ: 6})
	}
	sub := f.dirOf(items...)
	s := f.open(t, f.dirOf(item{"dir", sub, 1}, item{"file", file, 2}))
	if got := describe(t, s); len(got) != 2003 {
		t.Errorf("%d entries", len(got))
	}
	if b, err := s.ReadDir("dir"); err != nil || len(b) != 2000 {
		t.Errorf("%d entries, %v", len(b), err)
	}
	if _, err := s.Stat("dir/czz"); err == nil {
		t.Error("a file that is not there")
	}
	if _, err := s.Stat("dir/bxx"); err != nil {
		t.Error(err)
	}
}
