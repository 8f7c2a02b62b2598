package squashfs

import (
	"encoding/binary"
	"errors"
)

// errLZMA is all that can be said of a broken stream of this coder.
var errLZMA = errors.New("not valid LZMA data")

// The LZMA decoder writes into the block it is given and has no dictionary of
// its own: no distance reaches farther back than the beginning of the block.
// The general library allocates and copies one for each block and takes twice
// as long.
const (
	lzmaStates   = 12
	lzmaMaxLits  = 4    // lc+lp of LZMA2, and of all that mksquashfs writes
	lzmaEven     = 1024 // a probability of one half
	lzmaMinMatch = 2
)

// lengthCoder decodes the length of a match.
type lengthCoder struct {
	choice, choice2 uint16
	low, mid        [16][8]uint16
	high            [256]uint16
}

// lzma is the state of a decoder: probabilities and the last four distances.
type lzma struct {
	lc, lp, pb uint

	isMatch, isRep0Long              [lzmaStates][16]uint16
	isRep, isRepG0, isRepG1, isRepG2 [lzmaStates]uint16
	slot                             [4][64]uint16
	special                          [128]uint16
	align                            [16]uint16
	length, repLength                lengthCoder
	literal                          [0x300 << lzmaMaxLits]uint16
	state                            int
	rep0, rep1, rep2, rep3           uint32
	rng, code                        uint32
	in                               []byte
	starved                          bool // more input was wanted than there is
}

// setProps takes the byte that holds the three parameters of the coder.
func (d *lzma) setProps(b byte) error {
	if b >= 9*5*5 {
		return errLZMA
	}
	d.lc, d.lp, d.pb = uint(b%9), uint(b/9%5), uint(b/45)
	if d.lc+d.lp > lzmaMaxLits {
		return errors.New("LZMA parameters beyond those of squashfs")
	}
	return nil
}

// reset makes all probabilities even.
func (d *lzma) reset() {
	even := func(p []uint16) {
		for i := range p {
			p[i] = lzmaEven
		}
	}
	for i := range d.isMatch {
		even(d.isMatch[i][:])
		even(d.isRep0Long[i][:])
	}
	for _, p := range [][]uint16{d.isRep[:], d.isRepG0[:], d.isRepG1[:], d.isRepG2[:], d.special[:], d.align[:], d.literal[:0x300<<(d.lc+d.lp)]} {
		even(p)
	}
	for i := range d.slot {
		even(d.slot[i][:])
	}
	for _, l := range []*lengthCoder{&d.length, &d.repLength} {
		l.choice, l.choice2 = lzmaEven, lzmaEven
		for i := range l.low {
			even(l.low[i][:])
			even(l.mid[i][:])
		}
		even(l.high[:])
	}
	d.state, d.rep0, d.rep1, d.rep2, d.rep3 = 0, 0, 0, 0, 0
}

// start begins a range-coded run.
func (d *lzma) start(in []byte) error {
	if len(in) < 5 || in[0] != 0 {
		return errLZMA
	}
	d.rng, d.code, d.in, d.starved = 1<<32-1, binary.BigEndian.Uint32(in[1:]), in[5:], false
	return nil
}

func (d *lzma) normalize() {
	if d.rng >= 1<<24 {
		return
	}
	d.rng <<= 8
	d.code <<= 8
	if len(d.in) == 0 {
		d.starved = true
		return
	}
	d.code |= uint32(d.in[0])
	d.in = d.in[1:]
}

// bit decodes one bit and adapts its probability.
func (d *lzma) bit(p *uint16) uint32 {
	d.normalize()
	v := uint32(*p)
	if bound := d.rng >> 11 * v; d.code < bound {
		d.rng = bound
		*p = uint16(v + (2048-v)>>5)
		return 0
	} else {
		d.rng -= bound
		d.code -= bound
		*p = uint16(v - v>>5)
		return 1
	}
}

// tree decodes n bits, the highest first; p has 1<<n probabilities.
func (d *lzma) tree(p []uint16, n uint) uint32 {
	return d.descend(p[:1<<n], 1) - 1<<n
}

// descend decodes bits, from node m of a tree of probabilities down to a leaf.
// It is where most of the time goes, so it keeps the coder's state in registers.
func (d *lzma) descend(p []uint16, m uint32) uint32 {
	rng, code, in := d.rng, d.code, d.in
	for m < uint32(len(p)) {
		if rng < 1<<24 {
			rng <<= 8
			code <<= 8
			if len(in) > 0 {
				code |= uint32(in[0])
				in = in[1:]
			} else {
				d.starved = true
			}
		}
		q := &p[m]
		v := uint32(*q)
		if bound := rng >> 11 * v; code < bound {
			rng = bound
			*q = uint16(v + (2048-v)>>5)
			m <<= 1
		} else {
			rng -= bound
			code -= bound
			*q = uint16(v - v>>5)
			m = m<<1 | 1
		}
	}
	d.rng, d.code, d.in = rng, code, in
	return m
}

// reverse decodes n bits, the lowest first.
func (d *lzma) reverse(p []uint16, n uint) (v uint32) {
	m := uint32(1)
	for i := range n {
		b := d.bit(&p[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

// direct decodes n bits that have no probability.
func (d *lzma) direct(n uint) (v uint32) {
	for range n {
		d.normalize()
		d.rng >>= 1
		b := uint32(0)
		if d.code >= d.rng {
			d.code -= d.rng
			b = 1
		}
		v = v<<1 | b
	}
	return v
}

func (d *lzma) matchLength(l *lengthCoder, posState int) int {
	switch {
	case d.bit(&l.choice) == 0:
		return lzmaMinMatch + int(d.tree(l.low[posState][:], 3))
	case d.bit(&l.choice2) == 0:
		return lzmaMinMatch + 8 + int(d.tree(l.mid[posState][:], 3))
	}
	return lzmaMinMatch + 16 + int(d.tree(l.high[:], 8))
}

// distance decodes how far back a new match lies, less one.
func (d *lzma) distance(length int) uint32 {
	slot := d.tree(d.slot[min(length-lzmaMinMatch, 3)][:], 6)
	if slot < 4 {
		return slot
	}
	n := uint(slot>>1 - 1)
	dist := (2 | slot&1) << n
	if slot < 14 {
		return dist + d.reverse(d.special[dist-slot:], n)
	}
	return dist + d.direct(n-4)<<4 + d.reverse(d.align[:], 4)
}

// literalByte decodes one byte. After a match, the byte that the match would
// have continued with is part of the context.
func (d *lzma) literalByte(out []byte, pos int) {
	prev := byte(0)
	if pos > 0 {
		prev = out[pos-1]
	}
	ctx := (uint(pos)&(1<<d.lp-1))<<d.lc + uint(prev)>>(8-d.lc)
	p := (*[0x300]uint16)(d.literal[0x300*ctx:])
	m := uint32(1)
	if d.state >= 7 {
		match := uint32(out[pos-int(d.rep0)-1])
		for m < 0x100 {
			match <<= 1
			want := match & 0x100
			b := d.bit(&p[0x100+want+m])
			m = m<<1 | b
			if want>>8 != b { // from here on the match says nothing
				break
			}
		}
	}
	out[pos] = byte(d.descend(p[:0x100], m))
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
}

// run decodes from out[pos] to the end of out, or to an end mark, and returns
// where it stopped. out begins where the dictionary does.
func (d *lzma) run(out []byte, pos int) (end int, marked bool, err error) {
	for pos < len(out) {
		if d.starved {
			return pos, false, errLZMA
		}
		ps, st := pos&(1<<d.pb-1), d.state
		if d.bit(&d.isMatch[st][ps]) == 0 {
			if st >= 7 && int64(d.rep0) >= int64(pos) {
				return pos, false, errLZMA
			}
			d.literalByte(out, pos)
			pos++
			continue
		}
		n := 1
		switch {
		case d.bit(&d.isRep[st]) == 0: // a new distance
			d.rep3, d.rep2, d.rep1 = d.rep2, d.rep1, d.rep0
			n = d.matchLength(&d.length, ps)
			d.rep0 = d.distance(n)
			d.state = afterMatch(st, 7, 10)
			if d.rep0 == 1<<32-1 {
				return pos, true, nil
			}
		case d.recent(st, ps): // one of the last four
			n = d.matchLength(&d.repLength, ps)
			d.state = afterMatch(st, 8, 11)
		default: // one byte at the last distance
			d.state = afterMatch(st, 9, 11)
		}
		if int64(d.rep0) >= int64(pos) || n > len(out)-pos {
			return pos, false, errLZMA
		}
		if from := pos - int(d.rep0) - 1; from+n <= pos {
			copy(out[pos:pos+n], out[from:])
			pos += n
		} else {
			for range n {
				out[pos] = out[from]
				pos, from = pos+1, from+1
			}
		}
	}
	if d.starved {
		return pos, false, errLZMA
	}
	return pos, false, nil
}

func afterMatch(state, afterLiteral, other int) int {
	if state < 7 {
		return afterLiteral
	}
	return other
}

// recent decodes which of the last distances comes again, and moves it to the
// front. It is false for a match of one byte.
func (d *lzma) recent(st, ps int) bool {
	if d.bit(&d.isRepG0[st]) == 0 {
		return d.bit(&d.isRep0Long[st][ps]) == 1
	}
	dist := d.rep1
	if d.bit(&d.isRepG1[st]) == 1 {
		dist = d.rep2
		if d.bit(&d.isRepG2[st]) == 1 {
			dist, d.rep3 = d.rep3, d.rep2
		}
		d.rep2 = d.rep1
	}
	d.rep1, d.rep0 = d.rep0, dist
	return true
}

// lzma2 decodes a sequence of LZMA2 chunks up to its end mark, and returns the
// length of the data and what of in was not used.
func (d *lzma) lzma2(dst, in []byte) (n int, rest []byte, err error) {
	from := 0 // where the dictionary begins
	needDict, needProps := true, true
	for {
		if len(in) == 0 {
			return n, nil, errLZMA
		}
		c := in[0]
		if c == 0 {
			return n, in[1:], nil
		}
		if c >= 0xe0 || c == 1 {
			from, needDict = n, false
		} else if needDict {
			return n, nil, errLZMA
		}
		if c < 0x80 { // stored
			if c > 2 || len(in) < 3 {
				return n, nil, errLZMA
			}
			size := int(binary.BigEndian.Uint16(in[1:])) + 1
			if in = in[3:]; size > len(in) {
				return n, nil, errLZMA
			}
			if size > len(dst)-n {
				return n, nil, errLonger
			}
			n += copy(dst[n:], in[:size])
			in = in[size:]
			continue
		}
		if len(in) < 6 {
			return n, nil, errLZMA
		}
		out := int(c&0x1f)<<16 + int(binary.BigEndian.Uint16(in[1:])) + 1
		size := int(binary.BigEndian.Uint16(in[3:])) + 1
		if c >= 0xc0 {
			if err := d.setProps(in[5]); err != nil {
				return n, nil, err
			}
			in, needProps = in[6:], false
		} else if in = in[5:]; needProps {
			return n, nil, errLZMA
		}
		if c >= 0xa0 {
			d.reset()
		}
		if size > len(in) {
			return n, nil, errLZMA
		}
		if out > len(dst)-n {
			return n, nil, errLonger
		}
		if err := d.start(in[:size]); err != nil {
			return n, nil, err
		}
		end, marked, err := d.run(dst[from:n+out], n-from)
		if err != nil || marked || from+end != n+out {
			return n, nil, errLZMA
		}
		n, in = n+out, in[size:]
	}
}

// alone decodes the older format: the parameters, the dictionary's size and
// the length of the data are in 13 bytes in front. The length may be unknown.
func (d *lzma) alone(dst, in []byte) (int, error) {
	const head = 13
	if len(in) < head {
		return 0, errLZMA
	}
	if err := d.setProps(in[0]); err != nil {
		return 0, err
	}
	size := binary.LittleEndian.Uint64(in[5:])
	known := size != 1<<64-1
	if known && size > uint64(len(dst)) {
		return 0, errLonger
	}
	if known {
		dst = dst[:size]
	}
	d.reset()
	if err := d.start(in[head:]); err != nil {
		return 0, err
	}
	n, marked, err := d.run(dst, 0)
	if err != nil {
		return n, err
	}
	if marked && known && n < len(dst) {
		return n, errLZMA
	}
	if !marked && !known { // all of dst is filled: only the mark may follow
		if _, marked, err = d.run(append(dst[:n:n], make([]byte, 1)...), n); err != nil || !marked {
			return n, errLonger
		}
	}
	return n, nil
}
