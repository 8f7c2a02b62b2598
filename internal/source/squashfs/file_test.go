package squashfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
)

// counter counts what is read of an image.
type counter struct {
	r            io.ReaderAt
	calls, bytes atomic.Int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.calls.Add(1)
	c.bytes.Add(int64(n))
	return n, err
}

// mixed is content with text, noise and holes.
func mixed(n int) []byte {
	b := noise(n)
	for at := 0; at+300000 <= n; at += 600000 {
		clear(b[at : at+200000])
		copy(b[at+200000:], bytes.Repeat([]byte("ncclCommInitRank "), 6000))
	}
	return b
}

func TestRandomAccess(t *testing.T) {
	dir := t.TempDir()
	want := mixed(3<<20 + 777)
	if err := os.WriteFile(filepath.Join(dir, "lib.so"), want, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-comp", "gzip"}, {"-comp", "lzo", "-noD"}, {"-comp", "zstd", "-b", "1M"}, {"-comp", "lz4", "-b", "4K", "-no-fragments"}} {
		f, err := open(t, mksquashfs(t, dir, args...)).Open("lib.so")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := f.(interface {
			io.ReadSeeker
			io.ReaderAt
		})
		if err := iotest.TestReader(r, want); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			off, n := rng.IntN(len(want)+100), rng.IntN(1<<rng.IntN(21)+1)
			p := make([]byte, n)
			got, err := r.ReadAt(p, int64(off))
			exp := want[min(off, len(want)):min(off+n, len(want))]
			if !bytes.Equal(p[:got], exp) || (got < n) != (err == io.EOF) {
				t.Fatalf("%v: %d bytes at %d: %d, %v", args, n, off, got, err)
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("a negative offset")
		}
		for _, s := range []struct {
			off    int64
			whence int
		}{{-1, io.SeekStart}, {1, 7}, {-1 << 62, io.SeekEnd}, {1<<63 - 1, io.SeekEnd}} {
			if _, err := r.Seek(s.off, s.whence); err == nil {
				t.Errorf("Seek(%d, %d)", s.off, s.whence)
			}
		}
		f.Close()
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
		if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	}
}

// TestReadsLittle: a few bytes of a large library cost a few blocks, not the library.
func TestReadsLittle(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lib.so"), noise(24<<20), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		max  int64 // bytes
	}{
		{[]string{"-comp", "gzip"}, 3 * 160 << 10},
		{[]string{"-comp", "lzo", "-noD"}, 5 * 32 << 10},
	} {
		b, err := os.ReadFile(mksquashfs(t, dir, tt.args...))
		if err != nil {
			t.Fatal(err)
		}
		c := &counter{r: bytes.NewReader(b)}
		s, err := squashfs.Open(c, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Open("lib.so")
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 64)
		for range 100 {
			for _, off := range []int64{0, 12 << 20, 24<<20 - 64} {
				if _, err := f.(io.ReaderAt).ReadAt(p, off); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c.bytes.Load() > tt.max || c.calls.Load() > 20 {
			t.Errorf("%v: %d reads of %d bytes in all", tt.args, c.calls.Load(), c.bytes.Load())
		}
	}
}

func TestLinks(t *testing.T) {
	s := open(t, mksquashfs(t, trickyTree(t)))
	one := func(p string) error {
		b, err := fs.ReadFile(s, p)
		if err == nil && string(b) != "x" {
			t.Errorf("%s: %q", p, b)
		}
		return err
	}
	// As in a chroot, ".." and "/" do not lead out of the image.
	for _, p := range []string{"one", "to-one", "deep/up", "deep/hard", "outside", "long"} {
		if err := one(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for p, want := range map[string]error{"dangling": fs.ErrNotExist, "one/x": fs.ErrNotExist, "nothing/x": fs.ErrNotExist, "../one": fs.ErrInvalid, "/one": fs.ErrInvalid, "": fs.ErrInvalid} {
		if err := one(p); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", p, err, want)
		}
	}
	if err := one("loop"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loop: %v", err)
	}
	if st, err := s.Stat("to-dir"); err != nil || !st.IsDir() || st.Name() != "to-dir" {
		t.Errorf("to-dir: %v, %v", st, err)
	}
	if st, err := s.Stat("to-dir/mixed"); err != nil || st.Size() != 1500001 {
		t.Errorf("to-dir/mixed: %v, %v", st, err)
	}
	if st, err := s.Stat("abs"); err != nil || st.Size() != 1500001 {
		t.Errorf("abs: %v, %v", st, err)
	}
	if st, err := s.Lstat("abs"); err != nil || st.Mode().Type() != fs.ModeSymlink {
		t.Errorf("Lstat abs: %v, %v", st, err)
	}
	if l, err := s.ReadDir("to-dir"); err != nil || len(l) != 13 {
		t.Errorf("to-dir: %d entries, %v", len(l), err)
	}
	if _, err := s.ReadDir("one"); err == nil {
		t.Error("a file was listed")
	}
	if _, err := s.ReadLink("one"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("ReadLink of a file: %v", err)
	}
	// What is no file has no content, and does not hang.
	for _, p := range []string{"fifo", "socket"} {
		if b, err := fs.ReadFile(s, p); err != nil || len(b) != 0 {
			t.Errorf("%s: %q, %v", p, b, err)
		}
	}
}

// TestParallel: several goroutines see the same.
func TestParallel(t *testing.T) {
	s := openBytes(t, smallImages(t)["zstd"])
	want := describe(t, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if got := describe(t, s); len(got) != len(want) {
					t.Errorf("%d entries, want %d", len(got), len(want))
				}
			}
		})
	}
	wg.Wait()
}

// errDisk is the error of a disk.
var errDisk = errors.New("input/output error")

type failing struct {
	r    io.ReaderAt
	from int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, errDisk
	}
	return f.r.ReadAt(p, off)
}

// TestDiskError: an error of the disk is not called a corrupt image.
func TestDiskError(t *testing.T) {
	b := smallImages(t)["gzip"]
	for _, from := range []int64{0, 100, int64(len(b)) - 1} {
		_, err := squashfs.Open(failing{bytes.NewReader(b), from}, int64(len(b)))
		if !errors.Is(err, errDisk) || errors.Is(err, squashfs.ErrCorrupt) {
			t.Errorf("from byte %d: %v", from, err)
		}
	}
}
