package squashfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/anchore/go-lzo"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compressors are named as mksquashfs -comp names them, by their number in the superblock.
var compressors = map[uint16]string{1: "gzip", 2: "lzma", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}

// errLonger: a block holds more than there may be.
var errLonger = errors.New("more data than a block holds")

// decoder decompresses single blocks. It is used by one goroutine at a time
// and may keep buffers between calls.
type decoder interface {
	// decode writes what src holds to dst and returns its length. It is an
	// error when src holds more than fits.
	decode(dst, src []byte) (int, error)
}

func newDecoder(id uint16, blockSize int) (decoder, error) {
	switch compressors[id] {
	case "gzip":
		return &gzipDecoder{}, nil
	case "lzma":
		return &lzmaDecoder{}, nil
	case "lzo":
		return lzoDecoder{}, nil
	case "xz":
		return &xzDecoder{}, nil
	case "lz4":
		return lz4Decoder{}, nil
	case "zstd":
		return newZstdDecoder(blockSize)
	}
	return nil, fmt.Errorf("%w: compressor %d", ErrUnsupported, id)
}

// gzipDecoder: what squashfs calls gzip is the zlib format.
type gzipDecoder struct {
	in bytes.Reader
	z  io.ReadCloser
}

func (d *gzipDecoder) decode(dst, src []byte) (int, error) {
	d.in.Reset(src)
	var err error
	if d.z == nil {
		d.z, err = zlib.NewReader(&d.in)
	} else {
		err = d.z.(zlib.Resetter).Reset(&d.in, nil)
	}
	if err != nil {
		return 0, err
	}
	return readBlock(d.z, dst)
}

// readBlock reads a stream to its end, where its checksum is compared.
func readBlock(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	switch err {
	case io.EOF:
		return 0, nil
	case io.ErrUnexpectedEOF: // shorter than dst: which end it was, the next read tells
	case nil:
	default:
		return n, err
	}
	var one [1]byte
	for range 8 { // readers may return nothing without an error, but not for ever
		m, err := r.Read(one[:])
		switch {
		case m > 0:
			return n, errLonger
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, io.ErrNoProgress
}

type lzoDecoder struct{}

func (lzoDecoder) decode(dst, src []byte) (int, error) { return lzo.Decompress(src, dst) }

type lz4Decoder struct{}

func (lz4Decoder) decode(dst, src []byte) (int, error) { return lz4.UncompressBlock(src, dst) }

type zstdDecoder struct{ z *zstd.Decoder }

func newZstdDecoder(blockSize int) (decoder, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(uint64(max(blockSize, metaSize))),
		zstd.WithDecoderMaxWindow(8<<20))
	return zstdDecoder{z}, err
}

func (d zstdDecoder) decode(dst, src []byte) (int, error) {
	out, err := d.z.DecodeAll(src, dst[:0:len(dst)])
	switch {
	case err != nil:
		return 0, err
	case len(out) > 0 && &out[0] != &dst[0]:
		return 0, errLonger
	}
	return len(out), nil
}
