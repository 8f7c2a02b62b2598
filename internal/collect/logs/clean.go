package logs

import (
	"strings"
	"unicode/utf8"
)

// maxLine is what is kept of one line, in bytes; the rest is cut in the middle.
const maxLine = 8 << 10

// clean returns a line without terminal escapes, control and bidirectional
// characters and box drawing at its ends, as valid UTF-8. Tabs become blanks.
func clean(b []byte) string {
	if len(b) > maxLine {
		b = append(append(append(make([]byte, 0, maxLine+4), b[:maxLine/2]...), " … "...), b[len(b)-maxLine/2:]...)
	}
	plain := true
	for _, c := range b {
		if c < 0x20 || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return unescape(strings.TrimRight(string(b), " "))
	}
	var s strings.Builder
	s.Grow(len(b))
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c == 0x1b:
			i += escLen(b[i:])
			continue
		case c == '\t':
			s.WriteByte(' ')
			i++
			continue
		case c < 0x20 || c == 0x7f:
			i++
			continue
		case c < 0x80:
			s.WriteByte(c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		i += n
		switch {
		case r == utf8.RuneError && n == 1:
			s.WriteRune('\uFFFD')
		case r == '\u00a0':
			s.WriteByte(' ')
		case r == '‘' || r == '’': // of mail programs and word processors
			s.WriteByte('\'')
		case hidden(r):
		default:
			s.WriteRune(r)
		}
	}
	t := unescape(unbox(strings.TrimRight(s.String(), " ")))
	if strings.Contains(t, "File “") {
		t = typeset.Replace(t)
	}
	return t
}

// typeset are the quotation marks that a word processor makes.
var typeset = strings.NewReplacer("“", `"`, "”", `"`)

// entities are what a web page makes of a log.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&#x27;", "'", "&apos;", "'", "&amp;", "&", "&nbsp;", " ")

// unescape undoes what a web page did to a line.
func unescape(s string) string {
	if strings.IndexByte(s, '&') >= 0 {
		s = entities.Replace(s)
	}
	if strings.HasSuffix(s, "<br>") || strings.HasSuffix(s, "<br/>") {
		s = strings.TrimRight(s[:strings.LastIndex(s, "<br")], " ")
	}
	return s
}

// hidden reports characters that show nothing or reorder what is shown.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0, r == 0xfeff, r == 0x00ad,
		r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r >= 0xfff9 && r <= 0xfffb, r == 0x061c, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// escLen returns the length of the terminal escape sequence at the start of b.
func escLen(b []byte) int {
	if len(b) < 2 {
		return 1
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b) && i < 64; i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return 2
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(b) && i < 4096; i++ {
			if b[i] == 7 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return 2
	case '(', ')', '*', '+', '#', '%':
		if len(b) > 2 {
			return 3
		}
	}
	return 2
}

// unbox removes the vertical bars of a rich box around a line.
func unbox(s string) string {
	t := strings.TrimLeft(s, " ")
	if !strings.HasPrefix(t, "│") && !strings.HasPrefix(t, "┃") && !strings.HasPrefix(t, "║") {
		return s
	}
	t = strings.TrimLeft(t[3:], "")
	t = strings.TrimPrefix(t, " ")
	for _, bar := range []string{"│", "┃", "║"} {
		t = strings.TrimSuffix(t, bar)
	}
	return strings.TrimRight(t, " ")
}
