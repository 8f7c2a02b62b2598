package squashfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
)

var errXZ = errors.New("not a valid xz block")

// xzDecoder reads the xz container of a squashfs block: one stream with one
// block. The general reader would allocate the dictionary that the header asks
// for and knows no filters for machine code (mksquashfs -Xbcj).
type xzDecoder struct{ lzma lzma }

func (d *xzDecoder) decode(dst, src []byte) (int, error) {
	const streamHead = 12
	if len(src) < streamHead+8 || !bytes.HasPrefix(src, []byte("\xfd7zXZ\x00")) ||
		crc32.ChecksumIEEE(src[6:8]) != binary.LittleEndian.Uint32(src[8:]) || src[6] != 0 {
		return 0, errXZ
	}
	check := src[7]
	head := src[streamHead:]
	n := (int(head[0]) + 1) * 4
	if head[0] == 0 { // an index: a stream without blocks
		return 0, nil
	}
	if n > len(head) || crc32.ChecksumIEEE(head[:n-4]) != binary.LittleEndian.Uint32(head[n-4:]) {
		return 0, errXZ
	}
	filters, err := xzFilters(head[1 : n-4])
	if err != nil {
		return 0, err
	}
	size, tail, err := d.lzma.lzma2(dst, head[n:])
	if err != nil {
		return 0, err
	}
	for i := len(filters) - 1; i >= 0; i-- {
		filters[i].undo(dst[:size], filters[i].start)
	}
	pad := (4 - (len(head)-len(tail))%4) % 4
	return size, xzCheck(check, dst[:size], tail[min(len(tail), pad):])
}

// xzFilter turns relative jump targets back from absolute ones.
type xzFilter struct {
	undo  func(b []byte, pos uint32)
	start uint32 // position that the first byte is said to have
}

// xzFilters reads the filter chain of a block header without its length and
// checksum. LZMA2, which must be last, is left out.
func xzFilters(h []byte) ([]xzFilter, error) {
	if len(h) == 0 {
		return nil, errXZ
	}
	flags := h[0]
	h = h[1:]
	number := func() uint64 {
		v, n := binary.Uvarint(h)
		if n <= 0 {
			h = nil
			return ^uint64(0)
		}
		h = h[n:]
		return v
	}
	for _, bit := range []byte{0x40, 0x80} { // sizes, which the data itself tells
		if flags&bit != 0 {
			number()
		}
	}
	var out []xzFilter
	for i := range int(flags&3) + 1 {
		id, size := number(), number()
		if size > uint64(len(h)) {
			return nil, errXZ
		}
		props := h[:size]
		h = h[size:]
		last := i == int(flags&3)
		if last != (id == 0x21) {
			return nil, fmt.Errorf("xz filter %#x", id)
		}
		if last {
			return out, nil
		}
		f := xzFilter{undo: bcj[id]}
		if f.undo == nil {
			return nil, fmt.Errorf("xz filter %#x", id)
		}
		if len(props) == 4 {
			f.start = binary.LittleEndian.Uint32(props)
		}
		out = append(out, f)
	}
	return nil, errXZ
}

func xzCheck(kind byte, data, want []byte) error {
	var h hash.Hash
	switch kind {
	case 1:
		h = crc32.NewIEEE()
	case 4:
		h = crc64.New(crc64.MakeTable(crc64.ECMA))
	default: // none, or one that squashfs does not use
		return nil
	}
	h.Write(data)
	sum := h.Sum(nil)
	if len(want) < len(sum) {
		return errXZ
	}
	for i := range sum { // stored in little endian
		if sum[i] != want[len(sum)-1-i] {
			return errors.New("xz checksum mismatch")
		}
	}
	return nil
}

// lzmaDecoder reads the older format of LZMA, which squashfs calls lzma.
type lzmaDecoder struct{ lzma lzma }

func (d *lzmaDecoder) decode(dst, src []byte) (int, error) { return d.lzma.alone(dst, src) }
