package squashfs_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
)

// smallImages are images of a few files, one of each compressor, that
// mksquashfs made of the same tree with blocks of 4 KiB.
func smallImages(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.sqsh")
	if err != nil || len(names) != 7 {
		t.Fatalf("%d images in testdata, %v", len(names), err)
	}
	out := map[string][]byte{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(n), ".sqsh")] = b
	}
	return out
}

// errStop ends a bounded walk.
var errStop = errors.New("enough")

// exercise uses all of an image up to some bounds. Errors are expected.
func exercise(b []byte, entries int, bytesPerFile int64) (seen int, err error) {
	s, err := squashfs.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 4<<10)
	var first error
	note := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) && first == nil {
			first = err
		}
	}
	err = fs.WalkDir(s, ".", func(p string, d fs.DirEntry, err error) error {
		if seen++; seen > entries {
			return errStop
		}
		note(err)
		if err != nil {
			return nil
		}
		_, err = d.Info()
		note(err)
		_, err = s.Stat(p)
		note(err)
		switch d.Type() {
		case fs.ModeSymlink:
			_, err := s.ReadLink(p)
			note(err)
		case 0:
			f, err := s.Open(p)
			note(err)
			if err != nil {
				return nil
			}
			defer f.Close()
			_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.LimitReader(f, bytesPerFile)}, buf)
			note(err)
			if st, err := f.Stat(); err == nil && st.Size() > 0 {
				_, err := f.(io.ReaderAt).ReadAt(buf[:min(100, st.Size())], st.Size()-min(100, st.Size()))
				note(err)
			}
		}
		return nil
	})
	if err != nil && err != errStop {
		note(err)
	}
	return seen, first
}

// TestSmallImages: no tool is needed to see that each compressor is read.
func TestSmallImages(t *testing.T) {
	want := ""
	for name, b := range smallImages(t) {
		got := strings.Join(describe(t, openBytes(t, b)), "\n")
		if want == "" {
			want = got
		}
		if got != want || !strings.Contains(got, "lib/torch/version.py -rw-r--r-- 0:0 rdev 0 links 1 1767323045 26 ") {
			t.Fatalf("%s:\n%s", name, got)
		}
	}
}

// TestMutated changes, cuts and swaps bytes: an error or another content, but
// no panic, no loop and no large allocation.
func TestMutated(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for name, image := range smallImages(t) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(len(name))))
			var before, after runtime.MemStats
			failed := 0
			for range rounds {
				b := bytes.Clone(image)
				for range 1 + rng.IntN(6) {
					at := rng.IntN(len(b))
					if rng.IntN(3) == 0 { // the superblock and the tables at the end decide most
						at = rng.IntN(96)
					}
					b[at] = [...]byte{byte(rng.Uint32()), b[at] ^ 1<<rng.IntN(8), 0, 0xff, b[at] + 1}[rng.IntN(5)]
				}
				if rng.IntN(10) == 0 {
					b = b[:rng.IntN(len(b))]
				}
				runtime.ReadMemStats(&before)
				if _, err := exercise(b, 500, 256<<10); err != nil {
					failed++
				}
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
					t.Fatalf("%d bytes were allocated for an image of %d", n, len(b))
				}
			}
			if failed < rounds/4 {
				t.Errorf("only %d of %d changed images gave an error", failed, rounds)
			}
		})
	}
}

// TestEveryPrefix: an image that is cut off at any byte is an error.
func TestEveryPrefix(t *testing.T) {
	b := smallImages(t)["gzip"]
	for n := range len(b) {
		_, err := squashfs.Open(bytes.NewReader(b[:n]), int64(n))
		if !errors.Is(err, squashfs.ErrCorrupt) && !errors.Is(err, squashfs.ErrNotSquashfs) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
		// A file that became shorter after it was looked at.
		s, err := squashfs.Open(bytes.NewReader(b[:n]), int64(len(b)))
		if err == nil {
			_, err = s.ReadDir(".")
		}
		if n < 97 && err == nil {
			t.Fatalf("%d of %d bytes: no error", n, len(b))
		}
	}
}

func TestSuperblock(t *testing.T) {
	good := smallImages(t)["zstd"]
	set := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	ff := bytes.Repeat([]byte{0xff}, 8)
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, squashfs.ErrNotSquashfs},
		{"ELF", []byte("\x7fELF"), squashfs.ErrNotSquashfs},
		{"big-endian", set(0, 's', 'q', 's', 'h'), squashfs.ErrUnsupported},
		{"version 3", set(28, 3), squashfs.ErrUnsupported},
		{"compressor 9", set(20, 9), squashfs.ErrUnsupported},
		{"block size 0", set(12, 0, 0, 0, 0), squashfs.ErrCorrupt},
		{"block size 2 GiB", set(12, 0, 0, 0, 0x80), squashfs.ErrCorrupt},
		{"block size no power of two", set(12, 1), squashfs.ErrCorrupt},
		{"logarithm", set(22, 13), squashfs.ErrCorrupt},
		{"length", set(40, ff...), squashfs.ErrCorrupt},
		{"no owners", set(26, 0, 0), squashfs.ErrCorrupt},
		{"65535 owners", set(26, 0xff, 0xff), squashfs.ErrCorrupt},
		{"owner table", set(48, ff...), squashfs.ErrCorrupt},
		{"inode table", set(64, ff...), squashfs.ErrCorrupt},
		{"directory table", set(72, 1, 0, 0, 0, 0, 0, 0, 0x7f), squashfs.ErrCorrupt},
		{"root", set(32, ff...), squashfs.ErrCorrupt},
		{"root is a file", set(32, 0, 0, 0, 0, 0, 0, 0, 0), squashfs.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := squashfs.Open(bytes.NewReader(tt.b), int64(len(tt.b)))
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// walkErrors walks all of an image and returns how many entries were met and the errors.
func walkErrors(t *testing.T, s *squashfs.FS, stop int) (n int, errs []error) {
	t.Helper()
	fs.WalkDir(s, ".", func(p string, d fs.DirEntry, err error) error {
		if n++; n > stop {
			t.Fatalf("the walk does not end")
		}
		if err != nil {
			errs = append(errs, err)
		}
		return nil
	})
	return n, errs
}

// TestCycles: directories that contain themselves, or that double at each
// level, are errors; a walk ends.
func TestCycles(t *testing.T) {
	t.Run("root in root", func(t *testing.T) {
		f := &forge{}
		at, size := f.listing(item{"again", 0, 1})
		n, errs := walkErrors(t, f.open(t, f.dir(at, size)), 100)
		if n > 3 || len(errs) != 1 || !errors.Is(errs[0], squashfs.ErrCorrupt) {
			t.Errorf("%d entries, %v", n, errs)
		}
	})
	t.Run("two levels", func(t *testing.T) {
		f := &forge{}
		// The second inode is at 40 bytes: an extended directory has that many.
		a := f.dir(f.listing(item{"b", 40, 1}))
		b := f.dir(f.listing(item{"a", a, 1}))
		if b != 40 {
			t.Fatal(b)
		}
		n, errs := walkErrors(t, f.open(t, f.dirOf(item{"a", a, 1})), 100)
		if n > 6 || len(errs) != 1 || !errors.Is(errs[0], squashfs.ErrCorrupt) {
			t.Errorf("%d entries, %v", n, errs)
		}
	})
	t.Run("doubling", func(t *testing.T) {
		f := &forge{}
		ref := f.dirOf()
		for range 100 {
			ref = f.dirOf(item{"a", ref, 1}, item{"b", ref, 1})
		}
		n, errs := walkErrors(t, f.open(t, ref), 1000)
		if len(errs) != 100 {
			t.Errorf("%d entries, %d errors", n, len(errs))
		}
	})
	t.Run("one listing of many directories", func(t *testing.T) {
		f := &forge{}
		at, size := f.listing()
		for range 100 {
			a, b := f.dir(at, size), f.dir(at, size)
			at, size = f.listing(item{"a", a, 1}, item{"b", b, 1})
		}
		walkErrors(t, f.open(t, f.dir(at, size)), 1000)
	})
	t.Run("deep", func(t *testing.T) {
		f := &forge{}
		ref := f.dirOf()
		for range 20000 {
			ref = f.dirOf(item{"d", ref, 1})
		}
		n, errs := walkErrors(t, f.open(t, ref), 5000)
		if len(errs) != 1 || !errors.Is(errs[0], squashfs.ErrLimit) {
			t.Errorf("%d entries, %v", n, errs)
		}
	})
	t.Run("links", func(t *testing.T) {
		f := &forge{}
		var items []item
		for i := range 60 {
			to := fmt.Sprintf("l%02d", i+1)
			items = append(items, item{fmt.Sprintf("l%02d", i), f.inode(3, uint32(1), uint32(len(to)), to), 3})
		}
		self := f.inode(3, uint32(1), uint32(4), "self")
		grow := f.inode(3, uint32(1), uint32(6), "zz/././")
		s := f.open(t, f.dirOf(append(items, item{"self", self, 3}, item{"zz", grow, 3})...))
		for _, p := range []string{"l00", "self", "self/x", "zz", "zz/a"} {
			if _, err := s.Stat(p); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", p, err)
			}
		}
		if _, err := s.Stat("l55"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a link to nothing: %v", err)
		}
	})
}

// TestNames: a name that is no name would lead out of a directory.
func TestNames(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", "/", "a\x00", strings.Repeat("x", 257)} {
		f := &forge{}
		ref := f.inode(6, uint32(1))
		s := f.open(t, f.dirOf(item{"0", ref, 6}, item{name, ref, 6}))
		list, err := s.ReadDir(".")
		if !errors.Is(err, squashfs.ErrCorrupt) || len(list) != 1 {
			t.Errorf("%.10q: %d entries, %v", name, len(list), err)
		}
	}
	f := &forge{}
	ref := f.inode(6, uint32(1))
	if _, err := f.open(t, f.dirOf(item{"a", ref, 6}, item{"a", ref, 6})).ReadDir("."); !errors.Is(err, squashfs.ErrCorrupt) {
		t.Errorf("a name twice: %v", err)
	}
	// Entries that are not in order are put in order.
	f = &forge{}
	ref = f.inode(6, uint32(1))
	list, err := f.open(t, f.dirOf(item{"b", ref, 6}, item{"ba", ref, 6}, item{"a", ref, 6})).ReadDir(".")
	if err != nil || fmt.Sprint(list) != "[p a p b p ba]" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestClaims: inodes that claim more than there is.
func TestClaims(t *testing.T) {
	f := &forge{data: make([]byte, 5000)}
	items := []item{
		{"dir of other type", f.inode(6, uint32(1)), 1},
		{"dir, huge", f.dir(0, 1<<31), 1},
		{"dir, listing beyond the table", f.dir(1<<40, 100), 1},
		{"dir, listing within an entry", f.dir(0, 11), 1},
		{"file, blocks beyond the inode table", f.file(96, 1<<50), 2},
		{"file, negative", f.file(96, 1<<63), 2},
		{"file, blocks beyond the image", f.file(1<<62, 8192, 4096|1<<24, 4096), 2},
		{"file, blocks that overflow", f.file(1<<63-1, 8192, 4096|1<<24, 4096), 2},
		{"file, long block", f.file(96, 4096, 0xffffff), 2},
		{"file, long plain block", f.file(96, 4096, 0x1ffffff), 2},
		{"file, short plain block", f.file(96, 4096, 100|1<<24), 2},
		{"file, block that is not compressed data", f.file(96, 4096, 100), 2},
		{"file, fragment", f.inode(2, uint32(96), uint32(7), uint32(0), uint32(10)), 2},
		{"link, huge", f.inode(3, uint32(1), ^uint32(0)), 3},
		{"link, long", f.inode(3, uint32(1), uint32(5000), strings.Repeat("x", 5000)), 3},
		{"nothing there", 0xffff_ffff_1000, 2},
		{"offset beyond a block", 0x1fff, 2},
	}
	s := f.open(t, f.dirOf(items...))
	for _, it := range items {
		var err error
		switch it.typ {
		case 1:
			_, err = s.ReadDir(it.name)
		case 2:
			err = readAll(s, it.name)
		case 3:
			_, err = s.ReadLink(it.name)
		}
		if !errors.Is(err, squashfs.ErrCorrupt) && !errors.Is(err, squashfs.ErrLimit) {
			t.Errorf("%s: %v", it.name, err)
		}
	}
}

// readAll reads at most 1 MiB of a file and its last byte.
func readAll(fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(f, 1<<20)); err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	_, err = f.(io.ReaderAt).ReadAt(make([]byte, 1), st.Size()-1)
	return err
}

// TestHugeSparse: a file of 4 GiB without data is legal; its end is read
// without what lies before.
func TestHugeSparse(t *testing.T) {
	f := &forge{}
	const blocks = 1 << 20
	file := f.file(0, blocks<<12, make([]uint32, blocks)...)
	s := f.open(t, f.dirOf(item{"sparse", file, 2}))
	r, err := s.Open("sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := bytes.Repeat([]byte{1}, 100)
	for _, off := range []int64{blocks<<12 - 100, 5 << 30 / 2, 0, blocks<<12 - 100} {
		if n, err := r.(io.ReaderAt).ReadAt(p, off); n != 100 || err != nil && err != io.EOF {
			t.Fatalf("%d, %v", n, err)
		}
		if !bytes.Equal(p, make([]byte, 100)) {
			t.Fatal("a hole is not zero")
		}
	}
}

// deflated is a metadata block of 8 KiB that takes a few bytes.
func deflated(w *zlib.Writer, b []byte) []byte {
	var z bytes.Buffer
	w.Reset(&z)
	w.Write(b)
	w.Close()
	return append(le.AppendUint16(nil, uint16(z.Len())), z.Bytes()...)
}

// TestMillions: ten million entries in one directory of an image of a few MB
// are listed in bounded memory, and looked up in bounded time.
func TestMillions(t *testing.T) {
	entries := 10_000_000
	if testing.Short() {
		entries = 1_000_000
	}
	f := &forge{}
	ref := f.inode(6, uint32(1))
	// All runs have 256 entries with names of 9 bytes: 12+256*17 bytes.
	run := le.AppendUint32(nil, 255)
	run = append(run, make([]byte, 8)...)
	start := len(run)
	for range 256 {
		run = le.AppendUint16(run, uint16(ref))
		run = append(run, 0, 0, 6, 0, 8, 0)
		run = append(run, "000000000"...)
	}
	var table bytes.Buffer
	var pending []byte
	z, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	for n := 0; n < entries; n += 256 {
		for i := range 256 {
			name := run[start+17*i+8:][:9]
			for k, v := 8, n+i; k >= 0; k, v = k-1, v/10 {
				name[k] = '0' + byte(v%10)
			}
		}
		for pending = append(pending, run...); len(pending) >= 8192; pending = pending[8192:] {
			table.Write(deflated(z, pending[:8192]))
		}
	}
	table.Write(deflated(z, pending))
	size := uint32((entries + 255) / 256 * len(run))
	root := f.dir(0, size)
	b := f.image(root)
	// The directory table of the forge is empty: put ours in its place.
	dirs := le.Uint64(b[72:])
	b = append(b[:dirs:dirs], append(table.Bytes(), b[dirs:]...)...)
	for _, at := range []int{40, 48} {
		le.PutUint64(b[at:], le.Uint64(b[at:])+uint64(table.Len()))
	}
	le.PutUint64(b[len(b)-8:], le.Uint64(b[len(b)-8:])+uint64(table.Len()))
	s := openBytes(t, b)

	list, err := s.ReadDir(".")
	if !errors.Is(err, squashfs.ErrLimit) || len(list) != 1<<18 {
		t.Errorf("ReadDir: %d entries, %v", len(list), err)
	}
	list = nil
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := s.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n, most := 0, uint64(0)
	for {
		part, err := d.(fs.ReadDirFile).ReadDir(10000)
		n += len(part)
		if n%1_000_000 < 10000 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < entries {
		t.Errorf("listed %d of %d entries in parts", n, entries)
	}
	if most > before.HeapAlloc+16<<20 {
		t.Errorf("listing in parts held %d MiB", (most-before.HeapAlloc)>>20)
	}
	if _, err := s.Stat("000001234"); err != nil {
		t.Error(err)
	}
	if _, err := s.Stat("009999999"); err == nil && !testing.Short() {
		t.Error("a directory of 170 MB without an index was searched to its end")
	} else if !testing.Short() && !errors.Is(err, squashfs.ErrLimit) {
		t.Error(err)
	}
	t.Logf("an image of %d bytes", len(b))
}

// FuzzSquashfs: an error, never a panic, a loop or a large allocation.
func FuzzSquashfs(f *testing.F) {
	for _, b := range smallImages(f) {
		f.Add(b)
	}
	g := &forge{data: make([]byte, 5000)}
	loop := g.dir(g.listing(item{"a", 0, 1}))
	f.Add(g.image(g.dirOf(item{"dir", loop, 1}, item{"file", g.file(96, 1<<40, 4096|1<<24), 2}, item{"link", g.inode(3, uint32(1), uint32(4), "link"), 3})))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		exercise(b, 1000, 64<<10)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 128<<20 {
			t.Fatalf("%d bytes were allocated for an image of %d", n, len(b))
		}
	})
}
