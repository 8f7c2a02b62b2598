package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	klauspost "github.com/klauspost/compress/flate"
)

// texts are contents of many kinds: noise, text, long runs, far and near repeats.
func texts() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 200_000) // codes of all lengths
	for i := range skewed {
		skewed[i] = byte(min(r.ExpFloat64()*12, 255))
	}
	var mixed []byte
	for len(mixed) < 400_000 {
		switch n := r.IntN(600) + 1; {
		case len(mixed) > 40_000 && r.IntN(2) == 0:
			at := len(mixed) - 1 - r.IntN(32_768)
			mixed = append(mixed, mixed[at:min(at+n, len(mixed))]...)
		case r.IntN(3) == 0:
			mixed = append(mixed, bytes.Repeat([]byte{byte(n)}, n)...)
		default:
			mixed = append(mixed, skewed[n:2*n]...)
		}
	}
	return map[string][]byte{
		"nothing": nil, "a byte": {1}, "noise": noise, "skewed": skewed, "mixed": mixed, "zeros": make([]byte, 300_000),
		"text": []byte(strings.Repeat("the quick brown fox jumps over the lazy dog; ", 5000)),
	}
}

// packed are the forms that two writers give a content.
func packed(tb testing.TB, b []byte) [][]byte {
	var out [][]byte
	for level := flate.HuffmanOnly; level <= 9; level++ {
		var std, other bytes.Buffer
		w, err := flate.NewWriter(&std, level)
		if err != nil {
			tb.Fatal(err)
		}
		k, err := klauspost.NewWriter(&other, level)
		if err != nil {
			tb.Fatal(err)
		}
		for _, w := range []interface {
			io.WriteCloser
			Flush() error
		}{w, k} {
			w.Write(b[:len(b)/3])
			w.Flush() // an empty stored block
			w.Write(b[len(b)/3:])
			w.Close()
		}
		out = append(out, std.Bytes(), other.Bytes())
	}
	return out
}

func TestAgainstWriters(t *testing.T) {
	for name, b := range texts() {
		for i, z := range packed(t, b) {
			got, err := io.ReadAll(NewReader(bytes.NewReader(append(z, "what follows"...))))
			if err != nil || !bytes.Equal(got, b) {
				t.Errorf("%s, form %d: %d bytes of %d, %v", name, i, len(got), len(b), err)
			}
			if len(z) > 50_000 {
				continue
			}
			for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(z)), iotest.DataErrReader(bytes.NewReader(z)), iotest.HalfReader(bytes.NewReader(z))} {
				if got, err := io.ReadAll(iotest.HalfReader(NewReader(r))); err != nil || !bytes.Equal(got, b) {
					t.Errorf("%s, form %d, in pieces: %d bytes of %d, %v", name, i, len(got), len(b), err)
				}
			}
		}
	}
}

// same holds that both readers unpack the same and agree whether a stream is whole.
func same(t *testing.T, z []byte) {
	t.Helper()
	const most = 1 << 20
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(z)), most))
	got, err := io.ReadAll(io.LimitReader(NewReader(bytes.NewReader(z)), most))
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%v after %d bytes, the standard library says %v after %d", err, len(got), wantErr, len(want))
	}
	n := min(len(got), len(want))
	if err == nil && len(got) != len(want) || !bytes.Equal(got[:n], want[:n]) {
		t.Fatalf("%d bytes, the standard library has %d, and they differ", len(got), len(want))
	}
}

func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, b := range texts() {
		b = b[:min(len(b), 3000)]
		for _, z := range packed(t, b) {
			for range 40 {
				m := bytes.Clone(z[:r.IntN(len(z)+1)])
				same(t, m)
				for range 1 + r.IntN(3) {
					m = bytes.Clone(z)
					m[r.IntN(len(m))] ^= 1 << r.IntN(8)
				}
				same(t, m)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	z := packed(t, []byte(strings.Repeat("abcdefgh", 1000)))[5]
	if _, err := io.ReadAll(NewReader(bytes.NewReader(z[:len(z)-3]))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
	if _, err := io.ReadAll(NewReader(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(z))))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a failing disk: %v", err)
	}
	if _, err := io.ReadAll(NewReader(strings.NewReader("\x07"))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a block of no kind: %v", err)
	}
	r := NewReader(bytes.NewReader(z))
	r.Close()
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("reading after the end")
	}
}

// zipped is a gzip file of members, the first with all that a head may have.
func zipped(tb testing.TB, parts ...[]byte) []byte {
	var out bytes.Buffer
	for i, b := range parts {
		w := gzip.NewWriter(&out)
		if i == 0 {
			w.Extra, w.Name, w.Comment = []byte("extra"), "name", "comment"
		}
		w.Write(b)
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

// sameGzip is same for gzip files. A few bytes that follow are no header here, and the
// standard library, which reads ten first, says that the file is cut.
func sameGzip(t *testing.T, z []byte) {
	t.Helper()
	read := func(r io.Reader, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(r, 1<<20))
	}
	std, err := gzip.NewReader(bytes.NewReader(z))
	want, wantErr := read(std, err)
	own, err := NewGzip(bytes.NewReader(z))
	got, err := read(own, err)
	if (err == nil) != (wantErr == nil) || errors.Is(err, ErrChecksum) != errors.Is(wantErr, gzip.ErrChecksum) {
		t.Fatalf("%v after %d bytes, the standard library says %v after %d", err, len(got), wantErr, len(want))
	}
	n := min(len(got), len(want))
	if err == nil && len(got) != len(want) || !bytes.Equal(got[:n], want[:n]) {
		t.Fatalf("%d bytes, the standard library has %d, and they differ", len(got), len(want))
	}
}

func TestGzip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, b := range texts() {
		sameGzip(t, zipped(t, b))
		b = b[:min(len(b), 3000)]
		half := len(b) / 2
		z := zipped(t, b[:half], nil, b[half:])
		sameGzip(t, z)
		sameGzip(t, append(bytes.Clone(z), "something else"...))
		sameGzip(t, append(bytes.Clone(z), 0x1f))
		sameGzip(t, append(bytes.Clone(z), 0, 0, 0))
		own, err := NewGzip(iotest.OneByteReader(bytes.NewReader(z)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(iotest.OneByteReader(own)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("byte by byte: %d bytes of %d, %v", len(got), len(b), err)
		}
		for range 300 {
			sameGzip(t, z[:r.IntN(len(z)+1)])
			m := bytes.Clone(z)
			m[r.IntN(len(m))] ^= 1 << r.IntN(8)
			if m[3]&2 == 0 { // the standard library compares the checksum of a head, which nobody writes
				sameGzip(t, m)
			}
		}
	}
}

func FuzzGzip(f *testing.F) {
	for _, b := range texts() {
		f.Add(zipped(f, b[:min(len(b), 300)], b[:min(len(b), 50)]))
	}
	f.Fuzz(func(t *testing.T, z []byte) {
		if !headSum(z) {
			sameGzip(t, z)
		}
	})
}

// headSum reports whether some member may have a checksum of its head.
func headSum(z []byte) bool {
	for i := 0; i+3 < len(z); i++ {
		if z[i] == 0x1f && z[i+1] == 0x8b && z[i+3]&2 != 0 {
			return true
		}
	}
	return false
}

func FuzzInflate(f *testing.F) {
	for _, b := range texts() {
		for _, z := range packed(f, b[:min(len(b), 500)]) {
			f.Add(z)
		}
	}
	f.Fuzz(same)
}

// library is machine code and tables, as wheels are full of.
func library(b *testing.B) []byte {
	data, err := os.ReadFile(os.Args[0]) // this test's own program
	if err != nil {
		b.Fatal(err)
	}
	var z bytes.Buffer
	w, _ := flate.NewWriter(&z, 6)
	w.Write(data)
	w.Close()
	b.SetBytes(int64(len(data)))
	return z.Bytes()
}

func BenchmarkInflate(b *testing.B) {
	z := library(b)
	for b.Loop() {
		io.Copy(io.Discard, NewReader(bytes.NewReader(z)))
	}
}

func BenchmarkStandard(b *testing.B) {
	z := library(b)
	for b.Loop() {
		io.Copy(io.Discard, flate.NewReader(bytes.NewReader(z)))
	}
}

func BenchmarkKlauspost(b *testing.B) {
	z := library(b)
	for b.Loop() {
		io.Copy(io.Discard, klauspost.NewReader(bytes.NewReader(z)))
	}
}
