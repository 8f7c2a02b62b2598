package lint

import (
	"bytes"
	"slices"
	"strings"
)

// words makes the texts that code, lower and says look at, once per script.
func (c *Ctx) words() {
	if c.shared.text != "" || len(c.S.Src) == 0 {
		return
	}
	src := c.S.Src
	if len(src) > 4<<20 {
		src = src[:4<<20]
	}
	var text strings.Builder
	text.Grow(len(src))
	for len(src) > 0 {
		l := src
		if i := bytes.IndexByte(src, '\n'); i >= 0 {
			l, src = src[:i+1], src[i+1:]
		} else {
			src = nil
		}
		if commentLine(l) {
			text.WriteByte('\n')
			continue
		}
		text.Write(l)
	}
	c.shared.text = text.String()
	low := slices.Grow(c.shared.scratch[:0], text.Len())[:text.Len()]
	g := &c.shared.grams
	var key uint32
	for i := range low {
		b := c.shared.text[i]
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		low[i] = b
		key = key<<8 | uint32(b)
		g.add(key)
	}
	c.shared.scratch, c.shared.lower = low, string(low)
}

// commentLine reports a line that is only a comment, and for no scheduler.
func commentLine(l []byte) bool {
	i := 0
	for i < len(l) && (l[i] == ' ' || l[i] == '\t') {
		i++
	}
	l = l[i:]
	return len(l) > 0 && l[0] == '#' && !bytes.HasPrefix(l, []byte("#SBATCH")) && !bytes.HasPrefix(l, []byte("#PBS")) && !bytes.HasPrefix(l, []byte("#BSUB"))
}

// grams is a set of the runs of three bytes of a text, with collisions: words
// whose runs are not all in it cannot be in the text. The rules ask for some
// hundred words, and most scripts have few of them.
type grams [1 << 9]uint64

// add takes the run in the low three bytes of key.
func (g *grams) add(key uint32) {
	h := (key & 0xffffff) * 0x9e3779b1 >> 17
	g[h>>6] |= 1 << (h & 63)
}

func (g *grams) has(s string, i int) bool {
	h := (uint32(s[i])<<16 | uint32(s[i+1])<<8 | uint32(s[i+2])) * 0x9e3779b1 >> 17
	return g[h>>6]&(1<<(h&63)) != 0
}

// may reports whether w can be in the text.
func (g *grams) may(w string) bool {
	for i := 0; i+3 <= len(w); i++ {
		if !g.has(w, i) {
			return false
		}
	}
	return true
}
