package logs

import (
	"encoding/binary"
	"sort"
)

// finder finds many literals in a buffer. It is Wu and Manber's algorithm over
// hashes of four bytes: each literal is represented by its rarest window of
// winLen bytes, so that most of a healthy log is skipped in steps of winLen-3.
// A hit of a window is only a candidate: the literal is compared in full.
type finder struct {
	lits  []string
	shift *[1 << hashBits]uint8 // by hash: how far the window may move; 0: candidates
	head  []int32               // by hash: first candidate +1
	next  []int32               // per window: next candidate +1 with the same hash
	win   []window
	short []int // literals shorter than winLen: looked for line by line only
}

type window struct {
	lit int32
	off int32 // offset of the window in the literal
}

const (
	winLen   = 8
	gram     = 4
	hashBits = 16
)

func hash4(a, b, c, d byte) uint32 {
	v := uint32(a) | uint32(b)<<8 | uint32(c)<<16 | uint32(d)<<24
	return (v * 2654435761) >> (32 - hashBits)
}

// newFinder builds the tables. Building is linear in the total length.
func newFinder(lits []string) *finder {
	f := &finder{lits: lits, shift: new([1 << hashBits]uint8), head: make([]int32, 1<<hashBits)}
	const max = winLen - gram + 1
	for i := range f.shift {
		f.shift[i] = max
	}
	for i, l := range lits {
		if len(l) < winLen {
			f.short = append(f.short, i)
			continue
		}
		f.win = append(f.win, window{int32(i), int32(rarestWindow(l))})
	}
	f.next = make([]int32, len(f.win))
	for w, x := range f.win {
		s := lits[x.lit][x.off : int(x.off)+winLen]
		for j := 0; j+gram <= winLen; j++ {
			h := hash4(s[j], s[j+1], s[j+2], s[j+3])
			if d := uint8(winLen - gram - j); d < f.shift[h] {
				f.shift[h] = d
			}
			if j == winLen-gram {
				f.next[w] = f.head[h]
				f.head[h] = int32(w) + 1
			}
		}
	}
	return f
}

// rarestWindow returns the offset of the winLen bytes that training output is
// least likely to hold. Words of failures, capitals inside words and
// punctuation are rare there; digits, spaces and "step" are not.
func rarestWindow(l string) int {
	best, bestScore := 0, 1<<30
	for o := 0; o+winLen <= len(l); o++ {
		s := 0
		for j := o; j < o+winLen; j++ {
			s += byteCost(l[j])
		}
		for j := o; j+1 < o+winLen; j++ {
			s += pairCost[string(l[j:j+2])]
		}
		if s < bestScore {
			best, bestScore = o, s
		}
	}
	return best
}

func byteCost(c byte) int {
	switch {
	case c == ' ' || c >= '0' && c <= '9':
		return 6
	case c == 'e' || c == 't' || c == 'a' || c == 'o' || c == 'i' || c == 'n' || c == 's' || c == 'r' || c == 'l':
		return 4
	case c == '.' || c == ':' || c == '=' || c == '-' || c == '/' || c == '_' || c == ',' || c == '[' || c == ']':
		return 4
	case c >= 'a' && c <= 'z':
		return 3
	case c == '#':
		return 5
	}
	return 1
}

var pairCost = map[string]int{": ": 5, "in": 2, "er": 2, "ti": 2, "on": 2, "re": 2, "st": 2, "at": 2, "te": 2, "nc": 1, "==": 8, "--": 8, "**": 8}

// each calls fn for every occurrence of every long literal until fn says false.
// Occurrences are reported in order of their window, not of their start.
func (f *finder) each(b []byte, fn func(lit, pos int) bool) {
	n := len(b)
	shift := f.shift
	for i := winLen; i <= n; {
		h := binary.LittleEndian.Uint32(b[i-4:i]) * 2654435761 >> (32 - hashBits)
		if d := shift[h]; d != 0 {
			i += int(d)
			continue
		}
		start := i - winLen
		for w := f.head[h]; w != 0; w = f.next[w-1] {
			x := f.win[w-1]
			l := f.lits[x.lit]
			p := start - int(x.off)
			if p >= 0 && p+len(l) <= n && string(b[p:p+len(l)]) == l {
				if !fn(int(x.lit), p) {
					return
				}
			}
		}
		i++
	}
}

// fits returns, sorted, the literals that occur in one cleaned line, long and short.
func (f *finder) fits(line string, out []int) []int {
	out = out[:0]
	f.each([]byte(line), func(lit, _ int) bool { out = append(out, lit); return true })
	for _, i := range f.short {
		if containsWord(line, f.lits[i]) {
			out = append(out, i)
		}
	}
	sort.Ints(out)
	k := 0
	for i, v := range out {
		if i == 0 || v != out[k-1] {
			out[k] = v
			k++
		}
	}
	return out[:k]
}

// containsWord looks for a short literal as a word of its own, so that "Killed"
// does not match inside another word.
func containsWord(s, w string) bool {
	for i := 0; i+len(w) <= len(s); i++ {
		if s[i:i+len(w)] != w {
			continue
		}
		if (i == 0 || !isWord(s[i-1]) || !isWord(w[0])) && (i+len(w) == len(s) || !isWord(s[i+len(w)]) || !isWord(w[len(w)-1])) {
			return true
		}
	}
	return false
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
