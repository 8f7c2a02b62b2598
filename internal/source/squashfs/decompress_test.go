package squashfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
	xzlzma "github.com/ulikunitz/xz/lzma"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// samples are blocks of data with different kinds of redundancy.
func samples() map[string][]byte {
	random := make([]byte, 70000)
	x := uint64(7)
	for i := range random {
		x = x*6364136223846793005 + 1442695040888963407
		random[i] = byte(x >> 56)
	}
	// Machine code's calls and branches of all the filters' processors, at random.
	code := bytes.Clone(random)
	ops := [][]byte{{0xe8}, {0xe9}, {0, 0, 0, 0xeb}, {0x00, 0xf0, 0x00, 0xf8}, {0x48, 0, 0, 1}, {0x40, 0, 0x10}, {0x7f, 0xff, 0xff}, {0, 0, 0, 0x94}, {0, 0, 0, 0x97}, {0, 0, 0, 0x90}, {0, 0, 0xf0, 0xb0}, {0xe8, 0xe8}, {0xff}, {0}}
	for i := 0; i+8 < len(code); i += 4 {
		op := ops[int(random[i])%len(ops)]
		copy(code[i:], op)
		if random[i+1]&1 == 0 {
			code[i+4] = random[i+2] & 1 * 0xff
		}
	}
	text := []byte(strings.Repeat("RuntimeError: Distributed package doesn't have NCCL built in\n", 1000))
	for i := 0; i < len(text); i += 97 {
		text[i] = random[i]
	}
	return map[string][]byte{
		"empty": {}, "one": {0}, "zeros": make([]byte, 100000), "text": text, "random": random, "code": code,
		"both": append(bytes.Clone(random[:30000]), text...),
	}
}

// TestLZMA decodes what the general library encodes, with all parameters.
func TestLZMA(t *testing.T) {
	d, old := &lzma{}, &lzma{}
	for name, want := range samples() {
		for _, p := range [][3]int{{3, 0, 2}, {0, 0, 0}, {4, 0, 4}, {0, 4, 0}, {2, 2, 1}} {
			props := &xzlzma.Properties{LC: p[0], LP: p[1], PB: p[2]}
			var two, one bytes.Buffer
			w2, err := xzlzma.Writer2Config{Properties: props}.NewWriter2(&two)
			if err != nil {
				t.Fatal(err)
			}
			w2.Write(want)
			w2.Close()
			got := make([]byte, len(want)+1)
			n, rest, err := d.lzma2(got, append(two.Bytes(), 1, 2, 3))
			if err != nil || !bytes.Equal(got[:n], want) || len(rest) != 3 {
				t.Errorf("%s %v: LZMA2: %d of %d bytes, %d left, %v", name, p, n, len(want), len(rest), err)
			}
			if _, _, err := d.lzma2(make([]byte, max(0, len(want)-1)), two.Bytes()); len(want) > 0 && !errors.Is(err, errLonger) {
				t.Errorf("%s %v: LZMA2 into too short a block: %v", name, p, err)
			}
			if name == "empty" {
				continue // no block of an image is
			}
			for _, known := range []bool{true, false} {
				one.Reset()
				c := xzlzma.WriterConfig{Properties: props, EOSMarker: !known, SizeInHeader: known, Size: int64(len(want))}
				w, err := c.NewWriter(&one)
				if err != nil {
					t.Fatal(err)
				}
				w.Write(want)
				w.Close()
				for _, room := range []int{0, 1} {
					n, err := old.alone(got[:len(want)+room], one.Bytes())
					if err != nil || !bytes.Equal(got[:n], want) {
						t.Errorf("%s %v: LZMA, size known %v: %d of %d bytes, %v", name, p, known, n, len(want), err)
					}
				}
				if _, err := old.alone(make([]byte, max(0, len(want)-1)), one.Bytes()); len(want) > 0 && err == nil {
					t.Errorf("%s %v: LZMA into too short a block", name, p)
				}
			}
		}
	}
}

// TestXZ decodes what the general library and xz itself write.
func TestXZ(t *testing.T) {
	d := &xzDecoder{}
	for name, want := range samples() {
		for _, check := range []byte{xz.CRC32, xz.CRC64, xz.SHA256, xz.None} {
			var b bytes.Buffer
			w, err := xz.WriterConfig{CheckSum: check, NoCheckSum: check == xz.None}.NewWriter(&b)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(want)
			w.Close()
			got := make([]byte, len(want))
			if n, err := d.decode(got, b.Bytes()); err != nil || !bytes.Equal(got[:n], want) {
				t.Errorf("%s, check %d: %d of %d bytes, %v", name, check, n, len(want), err)
			}
		}
	}
}

func TestXZFilters(t *testing.T) {
	tool := testenv.Tool(t, "xz")
	d := &xzDecoder{}
	for _, filter := range []string{"--x86", "--arm", "--armthumb", "--arm64", "--powerpc", "--sparc", "--x86=start=4096", "--arm64=start=8192"} {
		for name, want := range samples() {
			cmd := exec.Command(tool, "-c", "--check=crc32", filter, "--lzma2=preset=1")
			cmd.Stdin = bytes.NewReader(want)
			enc, err := cmd.Output()
			if err != nil {
				t.Fatalf("xz %s: %v", filter, err)
			}
			got := make([]byte, len(want))
			if n, err := d.decode(got, enc); err != nil || !bytes.Equal(got[:n], want) {
				t.Errorf("%s %s: %d of %d bytes, %v", filter, name, n, len(want), err)
			}
		}
	}
}

// TestBrokenBlocks: no decoder panics, or writes more than there is room for.
func TestBrokenBlocks(t *testing.T) {
	for id, name := range compressors {
		d, err := newDecoder(id, 4096)
		if err != nil {
			t.Fatal(err)
		}
		for i, src := range [][]byte{{}, {0}, bytes.Repeat([]byte{0xff}, 100), bytes.Repeat([]byte{0}, 5000), []byte("\xfd7zXZ\x00\x00\x01"), {0x78, 0x9c}, {0x28, 0xb5, 0x2f, 0xfd}} {
			dst := make([]byte, 4096)
			n, err := d.decode(dst, src)
			if n > len(dst) || err == nil && n > 0 && name != "lz4" && name != "lzo" {
				t.Errorf("%s, input %d: %d bytes, %v", name, i, n, err)
			}
		}
	}
}

// FuzzBlock feeds one block to each decoder.
func FuzzBlock(f *testing.F) {
	text := bytes.Repeat([]byte("NCCL INFO "), 30)
	var b bytes.Buffer
	w, _ := xzlzma.NewWriter(&b)
	w.Write(text)
	w.Close()
	f.Add(uint8(2), b.Bytes())
	var x bytes.Buffer
	z, _ := xz.WriterConfig{CheckSum: xz.CRC32}.NewWriter(&x)
	z.Write(text)
	z.Close()
	f.Add(uint8(4), x.Bytes())
	f.Add(uint8(1), []byte("\x78\x9c\x03\x00\x00\x00\x00\x01"))
	f.Add(uint8(3), []byte("\x15abcd\x11\x00\x00"))
	f.Add(uint8(5), []byte("\x40abcd"))
	f.Add(uint8(6), []byte("\x28\xb5\x2f\xfd\x04\x00\x21\x00\x00abcd"))
	f.Fuzz(func(t *testing.T, id uint8, src []byte) {
		d, err := newDecoder(uint16(id), metaSize)
		if err != nil || len(src) > 1<<20 {
			return
		}
		for _, room := range []int{metaSize, 100, 1} {
			buf := bytes.Repeat([]byte{0xa5}, room+8)
			n, err := d.decode(buf[:room:room], src)
			if n > room || n < 0 {
				t.Fatalf("%s: %d bytes in %d, %v", compressors[uint16(id)], n, room, err)
			}
			for i := range 8 {
				if buf[room+i] != 0xa5 {
					t.Fatal(fmt.Sprint(compressors[uint16(id)], ": wrote behind its block"))
				}
			}
		}
	})
}

// BenchmarkXZ decodes a block of 128 KiB of a program with this package's
// decoder and with the general library.
func BenchmarkXZ(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(self)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	want := make([]byte, 128<<10)
	if _, err := f.ReadAt(want, 1<<20); err != nil {
		b.Fatal(err)
	}
	var enc bytes.Buffer
	w, err := xz.WriterConfig{CheckSum: xz.CRC32, DictCap: len(want)}.NewWriter(&enc)
	if err != nil {
		b.Fatal(err)
	}
	w.Write(want)
	w.Close()
	dst := make([]byte, len(want))
	b.Run("own", func(b *testing.B) {
		b.SetBytes(int64(len(want)))
		b.ReportAllocs()
		d := &xzDecoder{}
		for b.Loop() {
			if n, err := d.decode(dst, enc.Bytes()); n != len(want) || err != nil {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(want)))
		b.ReportAllocs()
		for b.Loop() {
			r, err := xz.ReaderConfig{DictCap: len(want)}.NewReader(bytes.NewReader(enc.Bytes()))
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.ReadFull(r, dst); err != nil {
				b.Fatal(n, err)
			}
		}
	})
}
