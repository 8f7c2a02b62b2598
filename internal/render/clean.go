package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes foreign text safe to print: control characters, terminal escapes
// and bidirectional overrides become visible, invalid UTF-8 becomes U+FFFD.
// Tabs become spaces. Newlines stay only when keep is true.
func Clean(s string, keepNewlines bool) string {
	ok := utf8.ValidString(s)
	if ok {
		for i := 0; i < len(s); i++ {
			if c := s[i]; c < 0x20 || c == 0x7f || c >= 0x80 {
				ok = false
				break
			}
		}
		if ok {
			return s
		}
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for _, r := range s {
		switch {
		case r == '\n' && keepNewlines:
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString("    ")
		case r == 0x1b:
			b.WriteString("␛")
		case r < 0x20 && r >= 0:
			b.WriteRune(0x2400 + r) // the visible picture of the control character
		case r == 0x7f || r >= 0x80 && r < 0xa0, unicode.Is(unicode.Cf, r), r == 0x2028, r == 0x2029:
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
