package source_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/archive"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
	"github.com/ncclinic/ncclinic/internal/source/spool"
	"github.com/ncclinic/ncclinic/internal/source/vfs"
)

// use reads of an opened target what collectors might.
func use(tg *source.Target) {
	n := 0
	fs.WalkDir(tg.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if n++; n > 200 || err != nil {
			return fs.SkipAll
		}
		if d.Type().IsRegular() {
			if f, err := tg.FS.Open(p); err == nil {
				io.CopyN(io.Discard, f, 4096)
				if r, ok := f.(io.ReaderAt); ok {
					r.ReadAt(make([]byte, 64), 1000)
				}
				f.Close()
			}
		}
		return nil
	})
}

func seeds() map[string][]byte {
	site := packtest.Site("2.6.0", "12.4")
	small := packtest.Tree{"torch/version.py": site["torch/version.py"], "torch-2.6.0.dist-info/WHEEL": "Tag: a-b-c\n", "lib/x": "->../torch"}
	root := packtest.Root(packtest.Tree{"torch/version.py": "x"})
	img := packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH, Env: []string{"A=b"}}, Layers: [][]byte{packtest.Gzip(root.Tar()), packtest.Tree{"etc/.wh.passwd": ""}.Tar()}}
	return map[string][]byte{
		"whl": small.Zip(nil), "stored": small.Zip(func(string) bool { return true }), "tar": small.Tar(), "tar.gz": packtest.Gzip(small.Tar()), "tar.zst": packtest.Zstd(small.Tar()),
		"conda": packtest.Tree{"info/index.json": `{"name":"a","version":"1","build":"b"}`, "lib/python3.11/site-packages/torch/version.py": "x"}.Conda("a-1-b"),
		"oci":   packtest.OCI(img).Tar(), "oci.gz": packtest.Gzip(packtest.OCI(img).Tar()), "docker": packtest.DockerSave(img).Tar(),
		"sif": packtest.SIF([]byte("hsqs"), "02"), "elf": []byte(site["torch/lib/libc10.so"]),
	}
}

// FuzzOpen gives every opener bytes that are nearly right.
func FuzzOpen(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		p := filepath.Join(dir, fmt.Sprintf("t%d", os.Getpid()))
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		tg, err := source.Open(ctx, p, source.OpenOptions{})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		use(tg)
		tg.Close()
	})
}

// Cut and flipped artefacts are errors or readable, never a crash.
func TestMutations(t *testing.T) {
	p := filepath.Join(t.TempDir(), "target")
	for name, b := range seeds() {
		step := max(1, len(b)/60)
		for i := 0; i < len(b); i += step {
			for _, m := range [][]byte{b[:i], append(append(append([]byte(nil), b[:i]...), b[i]^0xff), b[i+1:]...)} {
				if err := os.WriteFile(p, m, 0o644); err != nil {
					t.Fatal(err)
				}
				tg, err := source.Open(context.Background(), p, source.OpenOptions{})
				if err != nil {
					if !strings.Contains(err.Error(), p) {
						t.Errorf("%s: the error does not name the file: %v", name, err)
					}
					continue
				}
				use(tg)
				tg.Close()
			}
		}
	}
}

// heap returns what is in use, so that a bound can be shown.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// endless is a tar stream of n empty files, as it goes along.
type endless struct {
	n, made int
	head    []byte
	buf     []byte
	name    string
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.buf) == 0 {
		if e.made == e.n {
			return 0, io.EOF
		}
		if e.head == nil {
			var h bytes.Buffer
			w := tar.NewWriter(&h)
			if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o644, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}); err != nil {
				return 0, err
			}
			e.head = h.Bytes()[:512]
		}
		// A number in the name, and the checksum that fits.
		copy(e.head[len(e.name)-9:], fmt.Sprintf("%09d", e.made))
		sum := 8 * int(' ')
		for i, c := range e.head {
			if i < 148 || i >= 156 {
				sum += int(c)
			}
		}
		copy(e.head[148:], fmt.Sprintf("%06o\x00 ", sum))
		e.buf = e.head
		e.made++
	}
	n := copy(b, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

// Ten million names: what does not matter takes no memory, and what would is refused.
func TestTenMillionNames(t *testing.T) {
	if testing.Short() {
		return
	}
	before := heap()
	f := vfs.New(archive.MaxNames)
	e := &endless{n: 500_000, name: "usr/share/doc/some/package/file000000000"}
	if err := archive.Tar(context.Background(), e, archive.TarOptions{Store: &spool.Store{}}, func(o archive.Op) error { return archive.Apply(f, o) }); err != nil {
		t.Fatal(err)
	}
	if got := heap(); got > before+8<<20 {
		t.Errorf("%d bytes for names that do not matter", got-before)
	}
	e = &endless{n: 10_000_000, name: "usr/bin/000000000"}
	err := archive.Tar(context.Background(), e, archive.TarOptions{Store: &spool.Store{}}, func(o archive.Op) error { return archive.Apply(f, o) })
	if !errors.Is(err, vfs.ErrFull) {
		t.Errorf("%v", err)
	}
	got := int64(heap()) - int64(before)
	t.Logf("%d names take %d MB", f.Len(), got>>20)
	if got > 64<<20 {
		t.Errorf("%d bytes for %d names", got, f.Len())
	}
	runtime.KeepAlive(f)
}

// A zip file that claims more members than it can have, and one whose members
// claim to be huge, take no memory for the claim.
func TestZipClaims(t *testing.T) {
	z := packtest.Site("2.6.0", "12.4").Zip(nil)
	end := bytes.LastIndex(z, []byte("PK\x05\x06"))
	many := append([]byte(nil), z...)
	binary.LittleEndian.PutUint16(many[end+8:], 65000)
	binary.LittleEndian.PutUint16(many[end+10:], 65000)
	if _, err := open(t, many, source.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("too many members: %v", err)
	}
	// The first member says that it has a terabyte.
	big := append([]byte(nil), z...)
	dir := int(binary.LittleEndian.Uint32(z[end+16:]))
	binary.LittleEndian.PutUint32(big[dir+24:], 1<<31)
	before := heap()
	tg, err := open(t, big, source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	use(tg)
	if got := heap(); got > before+16<<20 {
		t.Errorf("%d bytes for a claim", got-before)
	}
}

// centralDir is a zip file of n empty members, in nothing but its central directory.
type centralDir struct{ n int64 }

const (
	centralName = "usr/bin/000000000"
	centralLen  = 46 + int64(len(centralName))
)

func (c centralDir) size() int64 { return c.n*centralLen + 56 + 20 + 22 }

func (c centralDir) record(i int64) []byte {
	le := binary.LittleEndian
	if i < c.n {
		b := make([]byte, centralLen)
		le.PutUint32(b, 0x02014b50)
		le.PutUint16(b[28:], uint16(len(centralName)))
		copy(b[46:], centralName[:len(centralName)-9]+fmt.Sprintf("%09d", i))
		return b
	}
	b := make([]byte, 56+20+22)
	le.PutUint32(b, 0x06064b50)
	le.PutUint64(b[32:], uint64(c.n))
	le.PutUint64(b[40:], uint64(c.n*centralLen))
	le.PutUint32(b[56:], 0x07064b50)
	le.PutUint64(b[64:], uint64(c.n*centralLen))
	le.PutUint32(b[76:], 0x06054b50)
	le.PutUint16(b[86:], 1<<16-1)
	le.PutUint32(b[88:], 1<<32-1)
	le.PutUint32(b[92:], 1<<32-1)
	return b
}

func (c centralDir) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		i := min((off+int64(n))/centralLen, c.n)
		r := c.record(i)[off+int64(n)-i*centralLen:]
		if len(r) == 0 {
			return n, io.EOF
		}
		n += copy(b[n:], r)
	}
	return n, nil
}

// A zip file with four million names is refused while its directory is read: no
// room is made for those that would be too many.
func TestZipManyNames(t *testing.T) {
	c := centralDir{4_000_000}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := archive.Zip(c, c.size(), &spool.Store{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, vfs.ErrFull) {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 { // with all that is thrown away at once
		t.Errorf("%d bytes to refuse it", got)
	}
	small := centralDir{1000}
	f, err := archive.Zip(small, small.size(), &spool.Store{})
	if err != nil || f.Len() != 1002 {
		t.Errorf("%v: %v", f, err)
	}
}

// What is written to while it is read is told, not judged.
func TestChanged(t *testing.T) {
	site := packtest.Site("2.6.0", "12.4")
	for name, b := range map[string][]byte{"deflated": site.Zip(nil), "stored": site.Zip(func(string) bool { return true }), "tar": site.Tar()} {
		p := filepath.Join(t.TempDir(), "target")
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		tg, err := source.Open(context.Background(), p, source.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := tg.Changed(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Truncate(p, 100); err != nil { // in the middle of everything
			t.Fatal(err)
		}
		if _, err := fs.ReadFile(tg.FS, "torch/version.py"); !errors.Is(err, source.ErrChanged) {
			t.Errorf("%s: a file that was cut off reads %v", name, err)
		}
		if err := tg.Changed(); !errors.Is(err, source.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
		tg.Close()
	}
}

// A few megabytes that unpack to many gigabytes.
func TestBombs(t *testing.T) {
	zeros := bytes.Repeat([]byte{0}, 1<<20)
	var tarred bytes.Buffer
	w := tar.NewWriter(&tarred)
	w.WriteHeader(&tar.Header{Name: "usr/lib/libtorch_cuda.so", Mode: 0o755, Size: 512 << 20, Typeflag: tar.TypeReg})
	for range 512 {
		w.Write(zeros)
	}
	w.WriteHeader(&tar.Header{Name: "etc/os-release", Size: 0, Typeflag: tar.TypeReg})
	w.WriteHeader(&tar.Header{Name: "usr/bin/env", Size: 0, Typeflag: tar.TypeReg})
	w.Close()
	z := packtest.Gzip(tarred.Bytes())
	tarred.Reset()
	before := heap()
	tg, err := open(t, z, source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	use(tg)
	mem, disk := tg.Kept()
	if got := heap(); got > before+32<<20 || mem > spool.DefaultMem || disk > 64<<20 {
		t.Errorf("%d bytes of memory, %d and %d kept, of a bomb of %d bytes", got-before, mem, disk, len(z))
	}
}

// Names that lead out, absolute names, links in circles and links to nothing.
func TestHostileNames(t *testing.T) {
	root := packtest.Root(packtest.Site("2.6.0", "12.4"))
	for _, tree := range []packtest.Tree{
		{"../../../../tmp/evil": "x"}, {"/etc/passwd2": "x"}, {"a": "->b", "b": "->a"}, {"loop": "->loop/loop"}, {"hard": "=>../../../etc/passwd"}, {"hard2": "=>nothing"},
		{strings.Repeat("d/", 500) + "f": "x"}, {"up": "->../../../../../../../../etc"},
	} {
		tg, err := open(t, packtest.Gzip(root.With(tree).Tar()), source.OpenOptions{})
		if err != nil {
			t.Errorf("%v: %v", tree, err)
			continue
		}
		use(tg)
		if _, err := os.Stat("/tmp/evil"); err == nil {
			t.Error("a file was written")
		}
		if b, err := fs.ReadFile(tg.FS, "up/hostname"); err == nil {
			t.Errorf("read %q of this machine", b)
		}
	}
}
