package squashfs

import "encoding/binary"

// bcj undoes the filters for machine code by their number in xz. The encoder
// made the targets of calls absolute, so that equal ones compress better; IA-64,
// the one that is left out, has no GPU nodes.
var bcj = map[uint64]func(b []byte, pos uint32){
	0x04: unX86, 0x05: unPowerPC, 0x07: unARM, 0x08: unThumb, 0x09: unSPARC, 0x0a: unARM64,
}

func unX86(b []byte, pos uint32) {
	// allowed and bitOf are by the pattern of possible opcodes in the last three bytes.
	allowed := [8]bool{true, true, true, false, true}
	bitOf := [8]uint{0, 1, 2, 2, 3, 3, 3, 3}
	sign := func(x byte) bool { return x == 0 || x == 0xff }
	mask := uint32(0)
	prev := -1 // the last opcode seen, or one before the beginning
	if len(b) < 5 {
		return
	}
	for i := 0; i+5 <= len(b); {
		if b[i]&0xfe != 0xe8 {
			i++
			continue
		}
		if gap := i - prev; gap > 3 {
			mask = 0
		} else if mask = mask << (gap - 1) & 7; mask != 0 {
			if x := b[i+4-int(bitOf[mask])]; !allowed[mask] || sign(x) {
				prev = i
				mask = mask<<1 | 1
				i++
				continue
			}
		}
		prev = i
		if !sign(b[i+4]) {
			mask = mask<<1 | 1
			i++
			continue
		}
		v := binary.LittleEndian.Uint32(b[i+1:])
		var to uint32
		for {
			to = v - (pos + uint32(i) + 5)
			if mask == 0 {
				break
			}
			k := bitOf[mask] * 8
			if !sign(byte(to >> (24 - k))) {
				break
			}
			v = to ^ (1<<(32-k) - 1)
		}
		to &= 0x1ffffff
		if to&0x1000000 != 0 {
			to |= 0xff000000
		}
		binary.LittleEndian.PutUint32(b[i+1:], to)
		i += 5
		mask = 0
	}
}

func unPowerPC(b []byte, pos uint32) {
	for i := 0; i+4 <= len(b); i += 4 {
		if w := binary.BigEndian.Uint32(b[i:]); w&0xfc000003 == 0x48000001 {
			binary.BigEndian.PutUint32(b[i:], 0x48000001|(w-pos-uint32(i))&0x03fffffc)
		}
	}
}

func unSPARC(b []byte, pos uint32) {
	for i := 0; i+4 <= len(b); i += 4 {
		w := binary.BigEndian.Uint32(b[i:])
		if w>>22 != 0x100 && w>>22 != 0x1ff {
			continue
		}
		to := w<<2 - (pos + uint32(i))
		to >>= 2
		to = (0-(to>>22&1))<<22&0x3fffffff | to&0x3fffff | 0x40000000
		binary.BigEndian.PutUint32(b[i:], to)
	}
}

func unARM(b []byte, pos uint32) {
	for i := 0; i+4 <= len(b); i += 4 {
		if b[i+3] == 0xeb {
			w := binary.LittleEndian.Uint32(b[i:])
			to := (w<<2 - (pos + uint32(i) + 8)) >> 2
			binary.LittleEndian.PutUint32(b[i:], w&0xff000000|to&0xffffff)
		}
	}
}

func unThumb(b []byte, pos uint32) {
	for i := 0; i+4 <= len(b); i += 2 {
		hi, lo := uint32(binary.LittleEndian.Uint16(b[i:])), uint32(binary.LittleEndian.Uint16(b[i+2:]))
		if hi&0xf800 != 0xf000 || lo&0xf800 != 0xf800 {
			continue
		}
		to := (hi&0x7ff<<11|lo&0x7ff)<<1 - (pos + uint32(i) + 4)
		to >>= 1
		binary.LittleEndian.PutUint16(b[i:], uint16(0xf000|to>>11&0x7ff))
		binary.LittleEndian.PutUint16(b[i+2:], uint16(0xf800|to&0x7ff))
		i += 2
	}
}

func unARM64(b []byte, pos uint32) {
	for i := 0; i+4 <= len(b); i += 4 {
		pc := pos + uint32(i)
		w := binary.LittleEndian.Uint32(b[i:])
		switch {
		case w>>26 == 0x25: // BL
			binary.LittleEndian.PutUint32(b[i:], 0x94000000|(w-pc>>2)&0x03ffffff)
		case w&0x9f000000 == 0x90000000: // ADRP, within ±512 MiB
			src := w>>29&3 | w>>3&0x1ffffc
			if (src+0x020000)&0x1c0000 != 0 {
				continue
			}
			to := src - pc>>12
			w = w&0x9000001f | to&3<<29 | to&0x3fffc<<3 | (0-(to&0x020000))&0xe00000
			binary.LittleEndian.PutUint32(b[i:], w)
		}
	}
}
