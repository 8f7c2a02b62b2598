package inflate

import "math/bits"

// An entry of a table says how many bits a code has, what it is, and its value:
//
//	bits 0–7   length of the code
//	bits 8–11  kind
//	bits 12–15 extra bits that follow it; of kindTable bits of the second table
//	bits 16–31 literal, least length or distance; of kindTable where the second table begins
const (
	lenMask    = 0xff
	kindMask   = 0xf << 8
	extraShift = 12
	extraMask  = 0xf
	valShift   = 16

	kindLiteral = 0 << 8
	kindMatch   = 1 << 8
	kindTable   = 2 << 8
	kindEnd     = 3 << 8
	kindBad     = 4 << 8
)

const (
	litBits  = 11 // of the first table of literals and lengths
	distBits = 9  // of distances
	maxCode  = 15
	// A second table has room for the bits that the longest code has beyond the first, at
	// most 16 entries of literals and 64 of distances; two codes at least share one, so
	// there are at most 144 and 15 of them.
	tableSize = 1<<litBits + 144<<(maxCode-litBits)
)

// table decodes one set of codes.
type table struct {
	e     [tableSize]uint32
	first uint
}

// find looks a code up.
func (t *table) find(b uint64) uint32 {
	e := t.e[b&(1<<t.first-1)]
	if e&kindMask == kindTable {
		e = t.e[(e>>valShift)+uint32(b>>t.first)&(1<<((e>>extraShift)&extraMask)-1)]
	}
	return e
}

// build makes the table of canonical codes with these lengths; false for lengths that
// make no code. As in other decoders a single code of one bit is one, and so is none at
// all as long as it is not used.
func (t *table) build(lens []uint8, first uint, value func(sym int) uint32) bool {
	var count [maxCode + 1]int
	longest := 0
	for _, n := range lens {
		count[n]++
		if n > 0 {
			longest = max(longest, int(n))
		}
	}
	t.first = first
	for i := range t.e[:1<<first] {
		t.e[i] = kindBad | 1
	}
	if longest == 0 {
		return true
	}
	var next [maxCode + 2]int
	code := 0
	for n := 1; n <= maxCode; n++ {
		code <<= 1
		next[n] = code
		code += count[n]
	}
	if total := code; total != 1<<maxCode && !(longest == 1 && count[1] == 1) {
		return false
	}
	free := 1 << first
	for sym, n := range lens {
		if n == 0 {
			continue
		}
		c := int(bits.Reverse16(uint16(next[n])) >> (16 - n))
		next[n]++
		e := value(sym) | uint32(n)
		if uint(n) <= first {
			for i := c; i < 1<<first; i += 1 << n {
				t.e[i] = e
			}
			continue
		}
		// Codes with the same first bits share a second table.
		head := c & (1<<first - 1)
		if t.e[head]&kindMask != kindTable {
			wide := uint(longest) - first
			if free+1<<wide > len(t.e) {
				return false
			}
			for i := range 1 << wide {
				t.e[free+i] = kindBad | 1
			}
			t.e[head] = kindTable | uint32(wide)<<extraShift | uint32(free)<<valShift
			free += 1 << wide
		}
		wide := t.e[head] >> extraShift & extraMask
		base := int(t.e[head] >> valShift)
		for i := c >> first; i < 1<<wide; i += 1 << (uint(n) - first) {
			t.e[base+i] = e
		}
	}
	return true
}

func litValue(sym int) uint32 {
	switch {
	case sym < 256:
		return kindLiteral | uint32(sym)<<valShift
	case sym == 256:
		return kindEnd
	case sym < 265:
		return kindMatch | uint32(sym-254)<<valShift
	case sym < 285:
		x := uint32(sym-261) >> 2
		return kindMatch | x<<extraShift | (3+(4|uint32(sym-261)&3)<<x)<<valShift
	case sym == 285:
		return kindMatch | 258<<valShift
	}
	return kindBad
}

func distValue(sym int) uint32 {
	switch {
	case sym < 4:
		return kindMatch | uint32(sym+1)<<valShift
	case sym < 30:
		x := uint32(sym-2) >> 1
		return kindMatch | x<<extraShift | (1+(2|uint32(sym)&1)<<x)<<valShift
	}
	return kindBad
}

func plainValue(sym int) uint32 { return kindLiteral | uint32(sym)<<valShift }
