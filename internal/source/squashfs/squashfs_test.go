package squashfs_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// mksquashfs makes an image of a folder with Debian's mksquashfs and returns its path.
func mksquashfs(t testing.TB, tree string, args ...string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image.sqsh")
	cmd := exec.Command(testenv.Tool(t, "mksquashfs"), append([]string{tree, image, "-no-progress", "-quiet", "-noappend", "-processors", "1"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return image
}

// open opens an image file.
func open(t testing.TB, image string) *squashfs.FS {
	t.Helper()
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s, err := squashfs.Open(f, st.Size())
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	return s
}

// describe lists all of a file system: one line for each path with type, mode,
// owner, size, time, link target and the hash of the content.
func describe(t testing.TB, fsys fs.FS) []string {
	t.Helper()
	var out []string
	sum, buf := sha256.New(), make([]byte, 48<<10)
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type() != info.Mode().Type() {
			t.Errorf("%s: type %v in its directory, %v itself", p, d.Type(), info.Mode().Type())
		}
		line := fmt.Sprintf("%s %v %s %d", p, info.Mode(), owner(info), info.ModTime().Unix())
		switch {
		case info.Mode().IsRegular():
			line += fmt.Sprintf(" %d %x", info.Size(), hashFile(t, fsys, p, sum, buf))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := fs.ReadLink(fsys, p)
			if err != nil {
				return err
			}
			line += " -> " + to
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func owner(info fs.FileInfo) string {
	switch s := info.Sys().(type) {
	case *squashfs.Stat:
		return fmt.Sprintf("%d:%d rdev %d links %d", s.UID, s.GID, s.Rdev, linksOf(info, uint64(s.Nlink)))
	case *syscall.Stat_t:
		return fmt.Sprintf("%d:%d rdev %d links %d", s.Uid, s.Gid, s.Rdev, linksOf(info, uint64(s.Nlink)))
	}
	return "?"
}

// linksOf leaves out directories: not every file system of the host counts
// their links.
func linksOf(info fs.FileInfo, n uint64) uint64 {
	if info.IsDir() {
		return 0
	}
	return n
}

func hashFile(t testing.TB, fsys fs.FS, p string, sum hash.Hash, buf []byte) []byte {
	t.Helper()
	f, err := fsys.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum.Reset()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, buf); err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	return sum.Sum(nil)
}

// trickyTree makes a small tree with everything that squashfs stores in a way of its own.
func trickyTree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, b []byte) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	noise := make([]byte, 3<<20)
	x := uint64(1)
	for i := range noise {
		x = x*6364136223846793005 + 1442695040888963407
		noise[i] = byte(x >> 56)
	}
	text := []byte(strings.Repeat("NCCL WARN no such device; ", 200000))
	write("empty", nil)
	write("one", []byte{'x'})
	for _, n := range []int{4095, 4096, 4097, 128<<10 - 1, 128 << 10, 128<<10 + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		write(fmt.Sprintf("sizes/text-%d", n), text[:n])
		write(fmt.Sprintf("sizes/noise-%d", n), noise[:n])
	}
	write("sizes/mixed", append(append(bytes.Clone(noise[:300000]), text[:900001]...), noise[300000:]...))
	// More than one metadata block of block sizes, and of names.
	write("large", bytes.Repeat(text[:1<<20], 12))
	for i := range 3000 {
		write(fmt.Sprintf("many/a-rather-long-name-for-a-file-%05d.py", i), []byte(fmt.Sprint(i)))
	}
	write("deep/"+strings.Repeat("d/", 200)+"end", []byte("end"))
	write("names/"+strings.Repeat("n", 255), []byte("long name"))
	write("names/a \n b", []byte("odd name"))
	write("names/名字", []byte("中文"))
	os.MkdirAll(filepath.Join(dir, "nothing"), 0o711)

	// Holes at the beginning, in the middle and at the end.
	sparse := filepath.Join(dir, "sparse")
	f, err := os.Create(sparse)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("middle"), 5<<20+17)
	f.WriteAt(noise[:70000], 9<<20)
	if err := f.Truncate(14<<20 + 3); err != nil {
		t.Fatal(err)
	}
	f.Close()
	write("zeros", make([]byte, 1<<20))

	for link, to := range map[string]string{
		"to-one": "one", "abs": "/sizes/mixed", "dangling": "nowhere", "loop": "loop", "deep/up": "../one", "to-dir": "sizes",
		"long": strings.Repeat("./", 1500) + "one", "outside": "../../../one",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "deep/hard")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o620); err != nil {
		t.Fatal(err)
	}
	if fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
		syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(dir, "socket")})
		syscall.Close(fd)
	}
	if os.Getuid() == 0 { // these need root to be made
		syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3)
		syscall.Mknod(filepath.Join(dir, "disk"), syscall.S_IFBLK|0o660, 259<<8|5)
		os.Lchown(filepath.Join(dir, "one"), 1234, 56789)
		os.Lchown(filepath.Join(dir, "nothing"), 70000, 80000)
	}
	os.Chmod(filepath.Join(dir, "sizes"), 0o755|fs.ModeSetgid|fs.ModeSticky)
	os.Chmod(filepath.Join(dir, "empty"), 0o751|fs.ModeSetuid)
	// An extended attribute makes extended inodes; not every file system takes it.
	for _, p := range []string{"one", "many", "sizes/mixed"} {
		syscall.Setxattr(filepath.Join(dir, p), "user.ncclinic", []byte("value"), 0)
	}
	return dir
}

var compressorNames = []string{"gzip", "lzma", "lzo", "xz", "lz4", "zstd"}

func TestEveryCompressor(t *testing.T) {
	tree := trickyTree(t)
	want := describe(t, os.DirFS(tree))
	for _, comp := range compressorNames {
		for _, opts := range [][]string{{}, {"-b", "4096"}, {"-b", "1M"}, {"-noD"}} {
			t.Run(comp+strings.Join(opts, ""), func(t *testing.T) {
				s := open(t, mksquashfs(t, tree, append([]string{"-comp", comp}, opts...)...))
				if diff := cmp.Diff(want, describe(t, s)); diff != "" {
					t.Errorf("image and tree differ:\n%s", diff)
				}
				if s.Compressor() != comp {
					t.Errorf("compressor %q", s.Compressor())
				}
			})
		}
	}
}

// TestIOFS runs the standard library's own test of file systems.
func TestIOFS(t *testing.T) {
	dir := t.TempDir()
	os.CopyFS(dir, fstest.MapFS{"a/b/c.py": {Data: []byte("import torch\n")}, "a/d": {Data: bytes.Repeat([]byte("x"), 300000)}, "e": {}})
	os.Symlink("a/d", filepath.Join(dir, "link"))
	if err := fstest.TestFS(open(t, mksquashfs(t, dir)), "a/b/c.py", "a/d", "e"); err != nil {
		t.Error(err)
	}
}

// TestNameNotUTF8: io/fs says that paths are UTF-8, images do not.
func TestNameNotUTF8(t *testing.T) {
	dir := t.TempDir()
	name := "caf\xe9"
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "\xff.py"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, mksquashfs(t, dir))
	if b, err := fs.ReadFile(s, name+"/\xff.py"); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	if got := describe(t, s); len(got) != 3 {
		t.Errorf("a walk found %q", got)
	}
}
