package inflate

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

var (
	// ErrChecksum means that what a gzip member unpacked to is not what its end says.
	ErrChecksum = errors.New("invalid checksum")
	// ErrHeader means that no gzip member begins where one should.
	ErrHeader = errors.New("invalid header")
)

// Gzip unpacks a gzip file (RFC 1952), all of its members one after the other.
type Gzip struct {
	z   *Reader
	sum uint32
	n   uint32
	err error
}

// NewGzip reads the head of the first member.
func NewGzip(r io.Reader) (*Gzip, error) {
	g := &Gzip{z: NewReader(r)}
	if err := g.header(); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return g, nil
}

// Close gives the buffers back. It does not close the stream below.
func (g *Gzip) Close() error { return g.z.Close() }

// Read implements io.Reader. At the end of each member its checksum is compared.
func (g *Gzip) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	for {
		n, err := g.z.Read(p)
		g.sum = crc32.Update(g.sum, crc32.IEEETable, p[:n])
		g.n += uint32(n)
		if err == io.EOF {
			err = g.next()
		}
		if g.err = err; n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// next compares the end of a member and begins the next one; io.EOF when there is none.
func (g *Gzip) next() error {
	var b [8]byte
	if err := g.z.bytes(b[:]); err != nil {
		return unexpected(err)
	}
	if binary.LittleEndian.Uint32(b[:]) != g.sum || binary.LittleEndian.Uint32(b[4:]) != g.n {
		return ErrChecksum
	}
	return g.header()
}

// header reads the head of a member; io.EOF when nothing is left.
func (g *Gzip) header() error {
	var b [10]byte
	if err := g.z.bytes(b[:1]); err != nil {
		return err
	}
	if b[0] != 0x1f {
		return ErrHeader
	}
	if err := g.z.bytes(b[1:]); err != nil {
		return unexpected(err)
	}
	const crc, extra, name, comment = 2, 4, 8, 16
	if b[1] != 0x8b || b[2] != 8 {
		return ErrHeader
	}
	flags := b[3]
	skip := 0
	if flags&extra != 0 {
		if err := g.z.bytes(b[:2]); err != nil {
			return unexpected(err)
		}
		skip = int(binary.LittleEndian.Uint16(b[:]))
	}
	for ; skip > 0; skip-- {
		if err := g.z.bytes(b[:1]); err != nil {
			return unexpected(err)
		}
	}
	for _, f := range []byte{name, comment} {
		for b[0] = 1; flags&f != 0 && b[0] != 0; {
			if err := g.z.bytes(b[:1]); err != nil {
				return unexpected(err)
			}
		}
	}
	if flags&crc != 0 {
		if err := g.z.bytes(b[:2]); err != nil {
			return unexpected(err)
		}
	}
	g.sum, g.n = 0, 0
	g.z.again()
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// bytes fills p with the bytes that follow a stream that ended; io.EOF when there are none.
func (z *Reader) bytes(p []byte) error {
	z.take(z.nb % 8)
	for i := 0; i < len(p); {
		if z.nb > z.pad*8 { // bytes that were taken already
			p[i] = byte(z.take(8))
			i++
			continue
		}
		z.b, z.nb, z.pad = 0, 0, 0
		if z.pos == z.end {
			z.more()
		}
		n := copy(p[i:], z.in[z.pos:z.end])
		if z.pos += n; n == 0 {
			if z.inErr == io.EOF && i > 0 {
				return io.ErrUnexpectedEOF
			}
			return z.inErr
		}
		i += n
	}
	return nil
}

// again begins a stream that follows, without what was unpacked before.
func (z *Reader) again() {
	z.rd, z.wr, z.err, z.last, z.state = 0, 0, nil, false, (*Reader).header
}
