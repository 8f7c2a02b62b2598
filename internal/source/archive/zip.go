package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/ncclinic/ncclinic/internal/source/spool"
	"github.com/ncclinic/ncclinic/internal/source/vfs"
)

// ErrNotZip means that there is no end record of a zip file.
var ErrNotZip = errors.New("not a zip file: it has no central directory")

// maxZipDir bounds the central directory that is read. That of torch has 1.3 MB.
const maxZipDir = 512 << 20

// Zip reads the central directory of a zip file. Stored members can be read at
// random; compressed ones are unpacked as far as somebody reads them, and what
// was passed is kept in st. Members are unpacked to the size in the directory
// and no further.
//
// archive/zip is not used: it makes room for as many members as the file claims
// to have.
func Zip(r io.ReaderAt, size int64, st *spool.Store) (*vfs.FS, error) {
	off, n, count, err := ZipDirectory(r, size)
	if err != nil {
		return nil, err
	}
	if n > maxZipDir {
		return nil, fmt.Errorf("a central directory of %d bytes", n)
	}
	if count > MaxNames {
		if err := countZip(r, off, n, count); err != nil {
			return nil, err
		}
	}
	f := vfs.New(MaxNames)
	z := &zipFile{r: r, size: size, st: st}
	br := bufio.NewReaderSize(io.NewSectionReader(r, off, n), 64<<10)
	for i := uint64(0); i < count; i++ {
		m, err := readMember(br)
		if err != nil {
			return nil, fmt.Errorf("central directory, member %d of %d: %w", i+1, count, err)
		}
		if strings.HasSuffix(m.name, "/") {
			continue // folders come by themselves
		}
		class := Classify(m.name, m.size)
		if class == Ignore && count > MaxNames/4 {
			continue // a small archive is kept as it is, a large one is not
		}
		e := vfs.Entry{Name: m.name, Mode: m.mode(), Size: m.size}
		link := e.Mode&fs.ModeSymlink != 0
		if class != Name || link || count <= MaxNames/4 {
			e.Data = z.content(&m, class)
		}
		if link {
			if e.Link, err = m.target(e.Data); err != nil {
				continue
			}
		}
		if err := f.Add(e); errors.Is(err, vfs.ErrFull) {
			return nil, err
		}
	}
	return f, nil
}

// countZip refuses a directory that has more names than are kept before room is
// made for any of them.
func countZip(r io.ReaderAt, off, n int64, count uint64) error {
	br := bufio.NewReaderSize(io.NewSectionReader(r, off, n), 64<<10)
	kept := 0
	for i := uint64(0); i < count; i++ {
		m, err := readMember(br)
		if err != nil {
			return fmt.Errorf("central directory, member %d of %d: %w", i+1, count, err)
		}
		if strings.HasSuffix(m.name, "/") || Classify(m.name, m.size) == Ignore {
			continue
		}
		if kept++; kept > MaxNames {
			return fmt.Errorf("%w (more than %d)", vfs.ErrFull, MaxNames)
		}
	}
	return nil
}

const (
	sigEnd      = 0x06054b50
	sigEnd64    = 0x06064b50
	sigLocator  = 0x07064b50
	sigMember   = 0x02014b50
	sigLocal    = 0x04034b50
	endLen      = 22
	locatorLen  = 20
	end64Len    = 56
	memberLen   = 46
	localLen    = 30
	maxUint16   = 1<<16 - 1
	maxUint32   = 1<<32 - 1
	methodStore = 0
	methodFlate = 8
)

// ZipDirectory finds the central directory through the end record, which is
// followed by nothing but a comment of at most 64 KB: its offset and length in
// bytes, and how many members it is said to have.
func ZipDirectory(r io.ReaderAt, size int64) (off, n int64, count uint64, err error) {
	tail := make([]byte, min(size, endLen+maxUint16))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return 0, 0, 0, err
	}
	le := binary.LittleEndian
	at := -1
	for i := len(tail) - endLen; i >= 0; i-- {
		if le.Uint32(tail[i:]) == sigEnd && i+endLen+int(le.Uint16(tail[i+20:])) <= len(tail) {
			at = i
			break
		}
	}
	if at < 0 {
		return 0, 0, 0, ErrNotZip
	}
	e := tail[at:]
	pos := size - int64(len(tail)) + int64(at)
	count, n, off = uint64(le.Uint16(e[10:])), int64(le.Uint32(e[12:])), int64(le.Uint32(e[16:]))
	if count == maxUint16 || n == maxUint32 || off == maxUint32 {
		loc := make([]byte, locatorLen)
		if pos >= locatorLen {
			if _, err := r.ReadAt(loc, pos-locatorLen); err != nil {
				return 0, 0, 0, err
			}
		}
		if le.Uint32(loc) == sigLocator {
			p := le.Uint64(loc[8:])
			e := make([]byte, end64Len)
			if p > uint64(size) {
				return 0, 0, 0, errors.New("the zip64 end record lies outside of the file")
			}
			if _, err := r.ReadAt(e, int64(p)); err != nil || le.Uint32(e) != sigEnd64 {
				return 0, 0, 0, errors.New("the zip64 end record is damaged")
			}
			count = le.Uint64(e[32:])
			un, uoff := le.Uint64(e[40:]), le.Uint64(e[48:])
			if un > uint64(size) || uoff > uint64(size) {
				return 0, 0, 0, errors.New("the central directory lies outside of the file")
			}
			n, off = int64(un), int64(uoff)
		}
	}
	if off+n > size {
		return 0, 0, 0, errors.New("the central directory lies outside of the file")
	}
	if count > uint64(n)/memberLen {
		return 0, 0, 0, fmt.Errorf("%d members do not fit into a directory of %d bytes", count, n)
	}
	return off, n, count, nil
}

type member struct {
	name   string
	method uint16
	flags  uint16
	made   uint16
	csize  int64
	size   int64
	off    int64
	attrs  uint32
}

func readMember(br *bufio.Reader) (m member, err error) {
	var h [memberLen]byte
	if _, err := io.ReadFull(br, h[:]); err != nil {
		return m, err
	}
	le := binary.LittleEndian
	if le.Uint32(h[:]) != sigMember {
		return m, errors.New("no member record")
	}
	m.made, m.flags, m.method = le.Uint16(h[4:]), le.Uint16(h[8:]), le.Uint16(h[10:])
	csize, size, off := uint64(le.Uint32(h[20:])), uint64(le.Uint32(h[24:])), uint64(le.Uint32(h[42:]))
	m.attrs = le.Uint32(h[38:])
	rest := make([]byte, int(le.Uint16(h[28:]))+int(le.Uint16(h[30:])))
	if _, err := io.ReadFull(br, rest); err != nil {
		return m, err
	}
	if _, err := br.Discard(int(le.Uint16(h[32:]))); err != nil {
		return m, err
	}
	n := int(le.Uint16(h[28:]))
	m.name = string(rest[:n])
	for x := rest[n:]; len(x) >= 4; {
		id, l := le.Uint16(x), int(le.Uint16(x[2:]))
		x = x[4:]
		if l > len(x) {
			break
		}
		if id == 1 { // zip64
			v := x[:l]
			for _, p := range []*uint64{&size, &csize, &off} {
				if *p == maxUint32 && len(v) >= 8 {
					*p, v = le.Uint64(v), v[8:]
				}
			}
		}
		x = x[l:]
	}
	if size > 1<<50 || csize > 1<<50 || off > 1<<50 {
		return m, fmt.Errorf("%q has impossible sizes", m.name)
	}
	m.size, m.csize, m.off = int64(size), int64(csize), int64(off)
	return m, nil
}

// mode returns type and permissions where a Unix program made the archive.
func (m *member) mode() fs.FileMode {
	const unix, typeMask, link = 3, 0o170000, 0o120000
	if m.made>>8 != unix || m.attrs>>16 == 0 {
		return 0o644
	}
	mode := fs.FileMode(m.attrs>>16) & fs.ModePerm
	if m.attrs>>16&typeMask == link {
		mode |= fs.ModeSymlink
	}
	return mode
}

// target reads where a symbolic link leads.
func (m *member) target(r io.ReaderAt) (string, error) {
	if m.size > 4096 {
		return "", errors.New("a link that is too long")
	}
	b := make([]byte, m.size)
	if _, err := r.ReadAt(b, 0); err != nil && err != io.EOF {
		return "", err
	}
	return string(b), nil
}

// content returns what reads a member. It is small, as there are many.
func (z *zipFile) content(m *member, c Class) io.ReaderAt {
	switch {
	case m.flags&1 != 0:
		return failing{errors.New("the member is encrypted")}
	case m.method == methodStore, m.method == methodFlate:
		return &packed{z: z, off: m.off, csize: m.csize, size: m.size, plain: m.method == methodStore, lib: c == Lib || c == Shared}
	}
	return failing{fmt.Errorf("compression method %d is not known", m.method)}
}

type zipFile struct {
	r    io.ReaderAt
	size int64
	st   *spool.Store
}

// packed is the content of one member, opened when somebody reads it.
type packed struct {
	z                *zipFile
	off, csize, size int64
	plain, lib       bool

	once sync.Once
	r    io.ReaderAt
	err  error
}

func (p *packed) ReadAt(b []byte, off int64) (int, error) {
	p.once.Do(func() {
		s, err := p.data()
		if err != nil {
			p.err = err
			return
		}
		if p.plain {
			p.r = s
			return
		}
		what := spool.All
		if p.lib {
			what = spool.Symbols
		}
		p.r = &spool.Lazy{Size: p.size, What: what, Store: p.z.st, Open: func() (io.ReadCloser, error) {
			return flate.NewReader(bufio.NewReaderSize(s, 64<<10)), nil
		}}
	})
	if p.err != nil {
		return 0, p.err
	}
	return p.r.ReadAt(b, off)
}

// data finds the bytes of a member behind its local header.
func (p *packed) data() (*io.SectionReader, error) {
	r, size := p.z.r, p.z.size
	var h [localLen]byte
	if p.off > size-localLen {
		return nil, errors.New("the member lies outside of the archive")
	}
	if _, err := r.ReadAt(h[:], p.off); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if le.Uint32(h[:]) != sigLocal {
		return nil, errors.New("the member has no header")
	}
	at := p.off + localLen + int64(le.Uint16(h[26:])) + int64(le.Uint16(h[28:]))
	if at > size || p.csize > size-at {
		return nil, errors.New("the member lies outside of the archive")
	}
	return io.NewSectionReader(r, at, p.csize), nil
}

// failing is a content that cannot be read.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }
