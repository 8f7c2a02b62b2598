package logs

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxDict bounds what a compressed stream may make us allocate.
const maxDict = 32 << 20

// errHalf is the end of a compressed stream before its end: a job that still
// runs, a full disk, a copy that broke off.
var errHalf = errors.New("the compressed data ends in the middle: what follows was not there to read")

// halfReader has words for a compressed stream that ends too early.
type halfReader struct{ in io.Reader }

func (h halfReader) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errHalf
	}
	return n, err
}

// decode returns a reader of UTF-8 text for a stream that may be compressed
// with gzip, bzip2, xz or zstd and may be UTF-16. It reads through br.
func decode(in io.Reader, br *bufio.Reader) (io.Reader, error) {
	br.Reset(in)
	magic, _ := br.Peek(6)
	var out io.Reader = br
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, err
		}
		out = z
	case bytes.HasPrefix(magic, []byte("BZh")) && len(magic) == 6 && magic[3] >= '1' && magic[3] <= '9' && magic[4] == 0x31 && magic[5] == 0x41:
		out = bzip2.NewReader(br)
	case bytes.HasPrefix(magic, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		z, err := (xz.ReaderConfig{DictCap: maxDict}).NewReader(br)
		if err != nil {
			return nil, err
		}
		out = z
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDict), zstd.WithDecoderMaxWindow(maxDict))
		if err != nil {
			return nil, err
		}
		out = z.IOReadCloser()
	default:
		if enc := utf16Order(magic); enc != 0 {
			return &utf16Reader{in: br, big: enc == 2}, nil
		}
		return br, nil
	}
	ub := bufio.NewReaderSize(halfReader{out}, 64<<10)
	magic, _ = ub.Peek(4)
	if enc := utf16Order(magic); enc != 0 {
		return &utf16Reader{in: ub, big: enc == 2}, nil
	}
	return ub, nil
}

// utf16Order tells UTF-16 by its byte order mark or by NULs in ASCII text: 1 little, 2 big endian.
func utf16Order(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	switch {
	case b[0] == 0xff && b[1] == 0xfe:
		return 1
	case b[0] == 0xfe && b[1] == 0xff:
		return 2
	case b[0] != 0 && b[0] < 0x80 && b[1] == 0 && b[2] != 0 && b[2] < 0x80 && b[3] == 0:
		return 1
	case b[0] == 0 && b[1] != 0 && b[1] < 0x80 && b[2] == 0 && b[3] != 0 && b[3] < 0x80:
		return 2
	}
	return 0
}

// utf16Reader turns UTF-16 into UTF-8; halves of surrogates become U+FFFD.
type utf16Reader struct {
	in   *bufio.Reader
	big  bool
	out  []byte
	high rune
	err  error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

func (u *utf16Reader) fill() {
	u.out = make([]byte, 0, 32<<10)
	var b [2]byte
	for len(u.out) < 30<<10 {
		if _, err := io.ReadFull(u.in, b[:]); err != nil {
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			u.err = err
			return
		}
		c := rune(b[0]) | rune(b[1])<<8
		if u.big {
			c = rune(b[1]) | rune(b[0])<<8
		}
		switch {
		case u.high != 0:
			r := utf16.DecodeRune(u.high, c)
			u.high = 0
			u.out = utf8.AppendRune(u.out, r)
		case c >= 0xd800 && c < 0xdc00:
			u.high = c
		case c == 0xfeff:
		default:
			u.out = utf8.AppendRune(u.out, c)
		}
	}
}

// notText reports whether a sample is no text: NULs or control bytes.
func notText(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if bytes.HasPrefix(b, []byte("\x7fELF")) {
		return true
	}
	bad := 0
	for _, c := range b {
		if c == 0 || c < 7 || c > 13 && c < 32 && c != 27 {
			bad++
		}
	}
	if bad*10 > len(b) {
		return true
	}
	return bad*50 > len(b) && !utf8.Valid(trimRune(b))
}

func trimRune(b []byte) []byte {
	for i := 0; i < 4 && len(b) > 0 && b[len(b)-1] >= 0x80; i++ {
		b = b[:len(b)-1]
	}
	return b
}
