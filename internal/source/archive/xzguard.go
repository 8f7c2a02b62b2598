package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

var errXZ = errors.New("not a valid xz stream")

// xzGuard hands an xz stream on and refuses a block that wants a larger dictionary
// than maxWindow before the decoder sees it: the decoder makes room for what a
// header claims, up to 4 GB. It follows the format by its lengths, without
// decompressing anything (tukaani.org/xz/xz-file-format.txt; LZMA2 chunks as in liblzma).
type xzGuard struct {
	br     *bufio.Reader
	pass   int64 // bytes to hand on before next looks at the stream
	next   func() error
	check  int64 // bytes of the check behind each block
	packed int64 // bytes of this block so far
	index  int64 // bytes of the index so far
	left   uint64
}

func newXZGuard(br *bufio.Reader) *xzGuard {
	g := &xzGuard{br: br}
	g.next = g.stream
	return g
}

func (g *xzGuard) Read(b []byte) (int, error) {
	for g.pass == 0 {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	n, err := g.br.Read(b[:min(int64(len(b)), g.pass)])
	g.pass -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (g *xzGuard) peek(n int) ([]byte, error) {
	b, err := g.br.Peek(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// stream is at the head of a stream, at padding between two, or at the end.
func (g *xzGuard) stream() error {
	b, err := g.br.Peek(12)
	switch {
	case len(b) == 0:
		return err
	case len(b) >= 4 && binary.LittleEndian.Uint32(b) == 0:
		g.pass = 4
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case Format(b) != Xz:
		return errXZ
	}
	g.check = [16]int64{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[b[7]&15]
	g.pass, g.next = 12, g.block
	return nil
}

// block is at the head of a block, or at the index behind the last one.
func (g *xzGuard) block() error {
	b, err := g.peek(1)
	if err != nil {
		return err
	}
	if b[0] == 0 {
		g.index, g.pass, g.next = 1, 1, g.records
		return nil
	}
	n := (int(b[0]) + 1) * 4
	if b, err = g.peek(n); err != nil {
		return err
	}
	flags, h := b[1], b[2:]
	if flags&3 != 0 {
		return errors.New("xz filters for machine code are not read")
	}
	for _, bit := range []byte{0x40, 0x80} { // sizes that the data itself tells
		if flags&bit != 0 {
			_, k := binary.Uvarint(h)
			if k <= 0 {
				return errXZ
			}
			h = h[k:]
		}
	}
	if len(h) < 3 || h[0] != 0x21 || h[1] != 1 || h[2] > 40 { // LZMA2 and its one property
		return errXZ
	}
	size := int64(1)<<32 - 1
	if bits := h[2]; bits < 40 {
		size = (2 | int64(bits&1)) << (bits/2 + 11)
	}
	if size > maxWindow {
		return fmt.Errorf("its dictionary is larger than %d MB", int64(maxWindow)>>20)
	}
	g.packed, g.pass, g.next = 0, int64(n), g.chunk
	return nil
}

// chunk is at the head of a chunk of LZMA2.
func (g *xzGuard) chunk() error {
	b, err := g.peek(1)
	if err != nil {
		return err
	}
	be := binary.BigEndian
	switch c := b[0]; {
	case c == 0: // the end, padded to four bytes, and the check
		g.packed++
		g.pass, g.next = 1+(4-g.packed%4)%4+g.check, g.block
		return nil
	case c <= 2: // not compressed
		if b, err = g.peek(3); err != nil {
			return err
		}
		g.pass = 3 + int64(be.Uint16(b[1:])) + 1
	case c >= 0x80:
		if b, err = g.peek(5); err != nil {
			return err
		}
		g.pass = 5 + int64(be.Uint16(b[3:])) + 1
		if c >= 0xc0 { // new properties
			g.pass++
		}
	default:
		return errXZ
	}
	g.packed += g.pass
	return nil
}

// records is at the number of blocks in the index, each of which has two numbers.
func (g *xzGuard) records() error {
	n, err := g.number()
	g.left, g.next = 2*n, g.record
	return err
}

func (g *xzGuard) record() error {
	if g.left > 0 {
		g.left--
		_, err := g.number()
		return err
	}
	g.pass, g.next = (4-g.index%4)%4+4+12, g.stream // padding, checksum, footer
	return nil
}

// number hands a number of the index on.
func (g *xzGuard) number() (uint64, error) {
	b, err := g.br.Peek(binary.MaxVarintLen64)
	v, n := binary.Uvarint(b)
	if n <= 0 {
		if err == nil {
			err = errXZ
		} else if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	g.index += int64(n)
	g.pass += int64(n)
	return v, nil
}
