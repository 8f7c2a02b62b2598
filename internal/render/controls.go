package render

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// asciiControls writes JSON so that it can be shown on a terminal: invisible
// and bidirectional formatting characters and C1 controls, which encoding/json
// leaves as they are, become \uXXXX escapes. In JSON they occur only inside
// strings, so the document keeps its meaning. Each Write holds whole characters.
type asciiControls struct{ w io.Writer }

func (a *asciiControls) Write(p []byte) (int, error) {
	var out []byte
	done := 0
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf && p[i] != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if hidden(r) {
			out = append(out, p[done:i]...)
			if r > 0xffff {
				r -= 0x10000
				out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			done = i + n
		}
		i += n
	}
	if out == nil {
		return a.w.Write(p)
	}
	if _, err := a.w.Write(append(out, p[done:]...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hidden reports whether a terminal would not show a character as itself.
func hidden(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Cf, r)
}

// ControlFree wraps a writer of JSON so that what it writes is safe to show on
// a terminal.
func ControlFree(w io.Writer) io.Writer { return &asciiControls{w: w} }
