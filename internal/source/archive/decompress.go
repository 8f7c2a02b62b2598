// Package archive opens zip files, tar archives and conda packages as file
// systems without unpacking them. What cannot be read at random is read once,
// and only names and contents that say something about a Python installation
// are kept. All limits hold for hostile archives too.
package archive

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// maxWindow bounds what a zstd or xz stream may make us allocate. conda writes
// windows of 8 MB, "zstd --ultra -22" of 128 MB, which is refused.
const maxWindow = 64 << 20

// Compression formats.
const (
	Plain = "plain"
	Gzip  = "gzip"
	Zstd  = "zstd"
	Xz    = "xz"
	Bzip2 = "bzip2"
)

// Format tells a compression by the first bytes of a stream.
func Format(magic []byte) string {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return Gzip
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}),
		len(magic) >= 4 && magic[0]&0xf0 == 0x50 && magic[1] == 0x2a && magic[2] == 0x4d && magic[3] == 0x18: // skippable frame: zstd:chunked, pzstd
		return Zstd
	case bytes.HasPrefix(magic, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return Xz
	case len(magic) >= 4 && bytes.HasPrefix(magic, []byte("BZh")) && magic[3] >= '1' && magic[3] <= '9':
		return Bzip2
	}
	return Plain
}

// Decompress returns the plain bytes of a stream, which may be compressed, and
// the name of the compression.
func Decompress(r io.Reader) (io.ReadCloser, string, error) {
	br := bufio.NewReaderSize(r, 128<<10)
	magic, err := br.Peek(6)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	f := Format(magic)
	switch f {
	case Gzip:
		z, err := gzip.NewReader(br)
		return z, f, err
	case Zstd:
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, f, err
		}
		return zstdReader{z.IOReadCloser()}, f, nil
	case Xz:
		z, err := (xz.ReaderConfig{DictCap: lzma.MinDictCap}).NewReader(newXZGuard(br)) // DictCap is the least that it makes room for
		if err != nil {
			return nil, f, err
		}
		return io.NopCloser(z), f, nil
	case Bzip2:
		return io.NopCloser(bzip2.NewReader(br)), f, nil
	}
	return io.NopCloser(br), f, nil
}

// zstdReader says what of a stream may have been refused.
type zstdReader struct{ io.ReadCloser }

func (z zstdReader) Read(b []byte) (int, error) {
	n, err := z.ReadCloser.Read(b)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("%w: windows of more than %d MB are refused", err, maxWindow>>20)
	}
	return n, err
}

// maxTail is what stands behind the end of a tar archive in a compressed stream at
// most, so that its checksum is reached: tar pads to 10 KB, or to what -b says.
const maxTail = 4 << 20

// tail reads what is left of a stream behind its archive, so that the checksum at the end
// is compared. What is no compressed data any more is no fault: gzip passes over it too.
func tail(r io.Reader) error {
	_, err := io.Copy(io.Discard, io.LimitReader(r, maxTail))
	var bz bzip2.StructuralError
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch), errors.As(err, &bz) && strings.Contains(string(bz), "magic"):
		return nil
	}
	return err
}
