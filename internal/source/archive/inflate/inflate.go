// Package inflate unpacks DEFLATE streams (RFC 1951). The libraries in wheels of PyTorch and
// CUDA are gigabytes of it, most of which has to be unpacked to reach the tables that stand
// behind; this reader takes half of the time of general ones, because it decodes out of a
// buffer of its own with 64 bits at hand, several literals at a time.
package inflate

import (
	"encoding/binary"
	"errors"
	"io"
)

// ErrCorrupt means that the stream is no DEFLATE stream or is damaged.
var ErrCorrupt = errors.New("corrupt DEFLATE data")

const (
	window = 32 << 10 // how far back a match reaches
	room   = 64 << 10 // decoded between two moves of the window
	slack  = 300      // the longest match and the literals before it
	inSize = 64 << 10
)

// Reader is an unpacked stream.
type Reader struct {
	r   io.Reader
	err error // what follows the bytes that were decoded

	in       []byte
	pos, end int // unread input
	inErr    error
	b        uint64 // bits that were taken from the input, the next one lowest
	nb       uint   // how many of them; above that b may hold bits that are still counted as input
	pad      uint   // of them bytes that the input did not have

	out    []byte // window and what was decoded behind it
	rd, wr int

	last   bool // this is the last block
	state  func(*Reader) error
	stored int

	lit, dist table
	lens      [320]uint8
}

// NewReader unpacks r. It reads ahead of what it needs.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, in: make([]byte, inSize), out: make([]byte, window+room+slack), state: (*Reader).header}
}

// Close makes further reads fail. It does not close the stream below.
func (z *Reader) Close() error {
	z.in, z.out, z.rd, z.wr, z.err = nil, nil, 0, 0, io.ErrClosedPipe
	return nil
}

// Read implements io.Reader.
func (z *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for z.rd == z.wr {
		if z.err != nil {
			return 0, z.err
		}
		if z.wr >= window+room {
			copy(z.out, z.out[z.wr-window:z.wr])
			z.rd, z.wr = window, window
		}
		if err := z.state(z); err != nil {
			z.err = err
		}
	}
	n := copy(p, z.out[z.rd:z.wr])
	z.rd += n
	return n, nil
}

// more reads input until there are eight bytes, or no more.
func (z *Reader) more() {
	if z.end-z.pos >= 8 || z.inErr != nil {
		return
	}
	z.end = copy(z.in, z.in[z.pos:z.end])
	z.pos = 0
	for tries := 0; z.end < 8 && z.inErr == nil; tries++ {
		n, err := z.r.Read(z.in[z.end:])
		z.end += n
		if z.inErr = err; err == nil && n == 0 && tries > 100 {
			z.inErr = io.ErrNoProgress
		}
	}
}

// fill makes at least 56 bits available; behind the end of the input they are zero and counted in pad.
func (z *Reader) fill() {
	if z.end-z.pos < 8 {
		z.more()
	}
	if z.end-z.pos >= 8 {
		z.b |= binary.LittleEndian.Uint64(z.in[z.pos:]) << z.nb
		z.pos += int((63 - z.nb) >> 3)
		z.nb |= 56
		return
	}
	z.b &= 1<<z.nb - 1 // bits above were not taken yet
	for ; z.nb < 56; z.nb += 8 {
		if z.pos < z.end {
			z.b |= uint64(z.in[z.pos]) << z.nb
			z.pos++
		} else {
			z.pad++
		}
	}
}

// over reports what is wrong when bits were used that the input did not have.
func (z *Reader) over() error {
	if z.pad*8 <= z.nb {
		return nil
	}
	if z.inErr != nil && z.inErr != io.EOF {
		return z.inErr
	}
	return io.ErrUnexpectedEOF
}

// take returns the next n bits, of at most 56 that fill made available.
func (z *Reader) take(n uint) uint {
	v := uint(z.b & (1<<n - 1))
	z.b >>= n
	z.nb -= n
	return v
}

// header reads the head of a block.
func (z *Reader) header() error {
	if z.last {
		return io.EOF
	}
	z.fill()
	z.last = z.take(1) == 1
	switch z.take(2) {
	case 0:
		return z.beginStored()
	case 1:
		for i := range 288 {
			z.lens[i] = fixedLen(i)
		}
		if !z.lit.build(z.lens[:288], litBits, litValue) {
			return ErrCorrupt
		}
		for i := range 32 {
			z.lens[i] = 5
		}
		if !z.dist.build(z.lens[:32], distBits, distValue) {
			return ErrCorrupt
		}
	case 2:
		if err := z.dynamic(); err != nil {
			return err
		}
	default:
		return ErrCorrupt
	}
	z.state = (*Reader).block
	return z.over()
}

func fixedLen(i int) uint8 {
	switch {
	case i < 144:
		return 8
	case i < 256:
		return 9
	case i < 280:
		return 7
	}
	return 8
}

// beginStored reads the head of a block that is not compressed.
func (z *Reader) beginStored() error {
	z.take(z.nb % 8)
	z.fill()
	n := z.take(16)
	inv := z.take(16)
	if err := z.over(); err != nil {
		return err
	}
	if n != inv^0xffff {
		return ErrCorrupt
	}
	z.stored, z.state = int(n), (*Reader).copyStored
	return nil
}

func (z *Reader) copyStored() error {
	for z.stored > 0 && z.wr < window+room {
		if z.nb > 0 { // bytes that were taken already
			z.out[z.wr] = byte(z.take(8))
			if err := z.over(); err != nil {
				return err
			}
			z.stored--
			z.wr++
			continue
		}
		z.b = 0
		z.more()
		n := copy(z.out[z.wr:min(z.wr+z.stored, window+room)], z.in[z.pos:z.end])
		if n == 0 {
			if z.inErr != nil && z.inErr != io.EOF {
				return z.inErr
			}
			return io.ErrUnexpectedEOF
		}
		z.pos, z.wr, z.stored = z.pos+n, z.wr+n, z.stored-n
	}
	if z.stored == 0 {
		z.state = (*Reader).header
	}
	return nil
}

var lensOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (z *Reader) dynamic() error {
	nlit, ndist, nlen := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	if nlit > 286 || ndist > 30 {
		return ErrCorrupt
	}
	var codes [19]uint8
	for i := range nlen {
		z.fill()
		codes[lensOrder[i]] = uint8(z.take(3))
	}
	if !z.dist.build(codes[:], distBits, plainValue) { // the room of distances is free as yet
		return ErrCorrupt
	}
	for i := 0; i < nlit+ndist; {
		z.fill()
		e := z.dist.find(z.b)
		if e&kindMask == kindBad {
			return z.bad()
		}
		z.take(uint(e & lenMask))
		n, v := 1, uint8(e>>valShift)
		switch v {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			n, v = 3+int(z.take(2)), z.lens[i-1]
		case 17:
			n, v = 3+int(z.take(3)), 0
		case 18:
			n, v = 11+int(z.take(7)), 0
		}
		if err := z.over(); err != nil {
			return err
		}
		if i+n > nlit+ndist {
			return ErrCorrupt
		}
		for range n {
			z.lens[i] = v
			i++
		}
	}
	if !z.lit.build(z.lens[:nlit], litBits, litValue) || !z.dist.build(z.lens[nlit:nlit+ndist], distBits, distValue) {
		return ErrCorrupt
	}
	return nil
}

// bad is what a code that does not exist is: damage, or the end of the input.
func (z *Reader) bad() error {
	if z.pad*8+maxCode > z.nb {
		if z.inErr != nil && z.inErr != io.EOF {
			return z.inErr
		}
		return io.ErrUnexpectedEOF
	}
	return ErrCorrupt
}

// block decodes until the block ends or the room is full.
func (z *Reader) block() error {
	var err error
	z.wr, err = z.decode(z.wr)
	return err
}

// decode decodes to out from wr on and returns where it ended. It holds all that changes
// with each code in variables of its own.
func (z *Reader) decode(wr int) (int, error) {
	out, lit, dist := z.out, &z.lit.e, &z.dist.e
	in, pos, b, nb := z.in[:z.end], z.pos, z.b, z.nb
	for wr < window+room {
		if len(in)-pos >= 8 {
			b |= binary.LittleEndian.Uint64(in[pos:]) << (nb & 63)
			pos += int((63 - nb) >> 3)
			nb |= 56
		} else {
			z.pos, z.b, z.nb = pos, b, nb
			z.fill()
			in, pos, b, nb = z.in[:z.end], z.pos, z.b, z.nb
		}
		e := lit[b&(1<<litBits-1)]
		// Up to three literals of the first table, 33 bits of the 56.
		if e&kindMask == kindLiteral {
			out[wr] = byte(e >> valShift)
			wr++
			b >>= e & lenMask
			nb -= uint(e & lenMask)
			if e = lit[b&(1<<litBits-1)]; e&kindMask == kindLiteral {
				out[wr] = byte(e >> valShift)
				wr++
				b >>= e & lenMask
				nb -= uint(e & lenMask)
				e = lit[b&(1<<litBits-1)]
			}
		}
		if e&kindMask == kindTable {
			e = lit[((e>>valShift)+uint32(b>>litBits)&(1<<((e>>extraShift)&extraMask)-1))%tableSize]
		}
		b >>= e & lenMask
		nb -= uint(e & lenMask)
		if e&kindMask == kindLiteral {
			out[wr] = byte(e >> valShift)
			wr++
			if z.pad > 0 && z.pad*8 > nb {
				z.pos, z.b, z.nb = pos, b, nb
				return wr, z.over()
			}
			continue
		}
		if e&kindMask != kindMatch {
			z.pos, z.b, z.nb = pos, b, nb
			if e&kindMask == kindEnd {
				z.state = (*Reader).header
				return wr, z.over()
			}
			return wr, z.bad()
		}
		length := int(e >> valShift)
		if x := (e >> extraShift) & extraMask; x > 0 {
			length += int(b & (1<<x - 1))
			b >>= x
			nb -= uint(x)
		}
		if len(in)-pos >= 8 {
			b |= binary.LittleEndian.Uint64(in[pos:]) << (nb & 63)
			pos += int((63 - nb) >> 3)
			nb |= 56
		} else {
			z.pos, z.b, z.nb = pos, b, nb
			z.fill()
			in, pos, b, nb = z.in[:z.end], z.pos, z.b, z.nb
		}
		e = dist[b&(1<<distBits-1)]
		if e&kindMask == kindTable {
			e = dist[((e>>valShift)+uint32(b>>distBits)&(1<<((e>>extraShift)&extraMask)-1))%tableSize]
		}
		if e&kindMask != kindMatch {
			z.pos, z.b, z.nb = pos, b, nb
			return wr, z.bad()
		}
		b >>= e & lenMask
		nb -= uint(e & lenMask)
		x := (e >> extraShift) & extraMask
		far := int(e>>valShift) + int(b&(1<<x-1))
		b >>= x
		nb -= uint(x)
		if z.pad > 0 && z.pad*8 > nb {
			z.pos, z.b, z.nb = pos, b, nb
			return wr, z.over()
		}
		if far > wr {
			z.pos, z.b, z.nb = pos, b, nb
			return wr, ErrCorrupt
		}
		from := wr - far
		for n := far; length > 0; n *= 2 { // what overlaps repeats: each copy doubles it
			k := copy(out[wr:wr+min(n, length)], out[from:wr])
			wr += k
			length -= k
		}
	}
	z.pos, z.b, z.nb = pos, b, nb
	return wr, nil
}
