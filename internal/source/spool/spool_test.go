package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// What was kept is read back, from memory and from the file, and nothing else.
func TestSparse(t *testing.T) {
	for _, mem := range []int64{1, 100, 1 << 20} {
		s := &Store{Mem: mem}
		defer s.Close()
		all := noise(1000)
		f := NewSparse(s)
		for _, p := range [][2]int{{0, 100}, {100, 150}, {300, 600}, {600, 601}, {900, 1000}} {
			if err := f.Keep(all[p[0]:p[1]], int64(p[0])); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			from, to int
			hole     bool
		}{{0, 150, false}, {20, 120, false}, {300, 601, false}, {950, 1000, false}, {0, 0, false}, {149, 151, true}, {200, 210, true}, {290, 310, true}, {999, 1001, true}} {
			b := make([]byte, c.to-c.from)
			n, err := f.ReadAt(b, int64(c.from))
			if c.hole != errors.Is(err, ErrHole) || !c.hole && (n != len(b) || !bytes.Equal(b, all[c.from:c.to])) {
				t.Errorf("mem %d: %d to %d: %d bytes, %v", mem, c.from, c.to, n, err)
			}
		}
	}
}

func TestStoreLimits(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := &Store{Mem: 10, Disk: 100}
	f := NewSparse(s)
	if err := f.Keep(make([]byte, 90), 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the temporary file has a name: %v", left)
	}
	if err := f.Keep(make([]byte, 20), 90); !errors.Is(err, ErrFull) || !s.Full() {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadAt(make([]byte, 10), 0); err == nil {
		t.Error("reading after the end")
	}
}

func lazy(b []byte, size int64, s *Store) (*Lazy, *int) {
	opened := 0
	return &Lazy{Size: size, Store: s, Open: func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(bytes.NewReader(b)), nil
	}}, &opened
}

func TestLazy(t *testing.T) {
	all := noise(300_000)
	s := &Store{Mem: 100_000}
	defer s.Close()
	l, opened := lazy(all, int64(len(all)), s)
	for _, at := range []int{250_000, 0, 299_990, 100} {
		b := make([]byte, 50)
		n, err := l.ReadAt(b, int64(at))
		if want := all[at:min(at+50, len(all))]; n != len(want) || !bytes.Equal(b[:n], want) || (err == io.EOF) != (n < 50) {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
	if *opened != 1 {
		t.Errorf("unpacked %d times", *opened)
	}
	l, _ = lazy(all[:1000], 2000, s)
	if _, err := l.ReadAt(make([]byte, 2000), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("shorter than said: %v", err)
	}
}

// Reading in order sees all of a long file, of which little is kept.
func TestLazyInOrder(t *testing.T) {
	const size = Whole + 5<<20
	s := &Store{Mem: 1, Disk: 16 << 20}
	defer s.Close()
	at := byte(0)
	l := &Lazy{Size: size, What: Symbols, Store: s, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(readFunc(func(b []byte) (int, error) {
			for i := range b {
				b[i] = at
				at++
			}
			return len(b), nil
		})), nil
	}}
	r := io.NewSectionReader(l, 0, size)
	buf := make([]byte, 100_003)
	var total int64
	for {
		n, err := r.Read(buf)
		for i, c := range buf[:n] {
			if c != byte(total+int64(i)) {
				t.Fatalf("wrong byte at %d", total+int64(i))
			}
		}
		total += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if total != size {
		t.Errorf("%d bytes of %d", total, size)
	}
	if _, err := l.ReadAt(buf, 50<<20); !errors.Is(err, ErrHole) {
		t.Errorf("what was passed is gone: %v", err)
	}
}

// A member that claims to be huge is read no further than asked for.
func TestLazyStopsWhereReadingStops(t *testing.T) {
	s := &Store{}
	defer s.Close()
	read := 0
	l := &Lazy{Size: 1 << 40, Store: s, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(readFunc(func(b []byte) (int, error) { clear(b); read += len(b); return len(b), nil })), nil
	}}
	if _, err := l.ReadAt(make([]byte, 100), 5000); err != nil {
		t.Error(err)
	}
	if read > 2*chunk {
		t.Errorf("%d bytes were unpacked", read)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

func TestSpans(t *testing.T) {
	if s := ELFSpans([]byte("#!/bin/sh"), 100, Symbols); s != nil {
		t.Errorf("a script: %v", s)
	}
	if got := merge([]Span{{10, 20}, {0, 5}, {15, 30}, {30, 31}}); !slices.Equal(got, []Span{{0, 5}, {10, 31}}) {
		t.Errorf("merge: %v", got)
	}
	if k := Keep([]byte("x"), 100, Symbols); !slices.Equal(k, []Span{{0, 100}}) {
		t.Errorf("a short file: %v", k)
	}
}

// Program headers that BOLT moved behind the original's last segment: what lies before
// them, with the dynamic section, is kept, as in libtorch_cuda of the aarch64 builds.
func TestMovedHeaders(t *testing.T) {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01")
	binary.LittleEndian.PutUint64(head[32:], 0x19000000) // program headers
	binary.LittleEndian.PutUint64(head[40:], 513_540_000)
	binary.LittleEndian.PutUint16(head[54:], 56)
	binary.LittleEndian.PutUint16(head[56:], 12)
	spans := ELFSpans(head, 513_545_057, Symbols)
	for what, at := range map[string]int64{"symbols": 0x033138, "dynamic section": 0x18007938, "program headers": 0x19000000, "strings": 0x1e400a80, "the end": 513_545_056} {
		if !slices.ContainsFunc(spans, func(s Span) bool { return s.From <= at && at < s.To }) {
			t.Errorf("%s at %#x are not kept: %v", what, at, spans)
		}
	}
	kept := int64(0)
	for _, s := range spans {
		kept += s.To - s.From
	}
	if kept > 96<<20 {
		t.Errorf("%d MB are kept", kept>>20)
	}
}

// Section headers behind which a repaired wheel has megabytes: their names, which
// stand before them, and what is read ahead of them are kept.
func TestHeadersInside(t *testing.T) {
	head := make([]byte, 4096)
	copy(head, "\x7fELF\x02\x01")
	const size, shoff = 260 << 20, 200 << 20
	binary.LittleEndian.PutUint64(head[32:], 64)
	binary.LittleEndian.PutUint64(head[40:], shoff)
	binary.LittleEndian.PutUint16(head[54:], 56)
	binary.LittleEndian.PutUint16(head[60:], 48)
	for _, want := range []Span{{shoff - 500, shoff}, {shoff, shoff + 48*64 + 4096}} {
		if !slices.ContainsFunc(ELFSpans(head, size, Symbols), func(s Span) bool { return s.From <= want.From && want.To <= s.To }) {
			t.Errorf("%v is not kept of %v", want, ELFSpans(head, size, Symbols))
		}
	}
}

func TestTake(t *testing.T) {
	s := &Store{}
	defer s.Close()
	f, err := Take(s, strings.NewReader("hello world"), 11, All, make([]byte, 4))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 11)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "hello world" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Take(s, strings.NewReader("hello"), 11, All, make([]byte, 4)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
}

func FuzzELFSpans(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01"+strings.Repeat("\x01", 200)), int64(1<<30))
	f.Add([]byte("\x7fELF\x02\x01"+strings.Repeat("\xff", 200)), int64(1<<62))
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		if size < 0 {
			return
		}
		last := int64(-1)
		for _, s := range ELFSpans(head, size, Loader) {
			if s.From < 0 || s.To > size || s.From >= s.To || s.From <= last {
				t.Fatalf("span %v of %d", s, size)
			}
			last = s.To
		}
	})
}
