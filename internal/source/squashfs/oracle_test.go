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
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// mksquashfs makes an image of a folder with Debian's mksquashfs and returns its path.
func mksquashfs(t testing.TB, tree string, args ...string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image.sqsh")
	cmd := exec.Command(testenv.Tool(t, "mksquashfs"), append([]string{tree, image, "-no-progress", "-quiet", "-noappend"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return image
}

// mksquashfsTailends is mksquashfs for options with -tailends: with them
// mksquashfs 4.5.1 on a busy machine now and then writes an image that
// unsquashfs cannot unpack either, or from which it unpacks other bytes than
// went in. Such a one is made again.
func mksquashfsTailends(t testing.TB, tree string, args ...string) string {
	t.Helper()
	for range 10 {
		image := mksquashfs(t, tree, args...)
		out := filepath.Join(t.TempDir(), "out")
		if exec.Command(testenv.Tool(t, "unsquashfs"), "-q", "-n", "-d", out, image).Run() == nil && sameBytes(t, tree, out) {
			return image
		}
	}
	t.Fatal("mksquashfs made ten broken images")
	return ""
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

// noise are bytes that no compressor makes shorter.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint64(1)
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	return b
}

// trickyTree makes a small tree with everything that squashfs stores in a way
// of its own. Data lies at the edges of blocks of 4 KiB, 128 KiB and 1 MiB.
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
	random := noise(700 << 10)
	text := []byte(strings.Repeat("NCCL WARN no such device; ", 45000)) // 1.1 MB
	write("empty", nil)
	write("one", []byte{'x'})
	for _, n := range []int{4095, 4096, 4097, 128<<10 - 1, 128 << 10, 128<<10 + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1} {
		write(fmt.Sprintf("sizes/text-%d", n), text[:n])
	}
	for _, n := range []int{4096, 128 << 10, 128<<10 + 1} {
		write(fmt.Sprintf("sizes/noise-%d", n), random[:n])
	}
	write("sizes/mixed", slices.Concat(random[:300000], text[:900001], random[300000:600000]))
	for i := range 1500 {
		write(fmt.Sprintf("many/a-rather-long-name-for-a-file-%05d.py", i), []byte(fmt.Sprint(i)))
	}
	write("deep/"+strings.Repeat("d/", 200)+"end", []byte("end"))
	write("names/"+strings.Repeat("n", 255), []byte("long name"))
	write("names/a \n b", []byte("odd name"))
	write("names/名字", []byte("中文"))
	os.MkdirAll(filepath.Join(dir, "nothing"), 0o711)

	// Holes at the beginning, in the middle and at the end; at 4 KiB its list of
	// blocks is longer than a metadata block.
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("middle"), 2<<20+17)
	f.WriteAt(random[:70000], 4<<20)
	f.WriteAt([]byte("late"), 10<<20-2)
	if err := f.Truncate(12<<20 + 3); err != nil {
		t.Fatal(err)
	}
	f.Close()
	write("zeros", make([]byte, 256<<10))

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
	for _, p := range []string{"one", "many", "sizes/mixed", "empty"} {
		syscall.Setxattr(filepath.Join(dir, p), "user.ncclinic", []byte("value"), 0)
	}
	return dir
}

var compressorNames = []string{"gzip", "lzma", "lzo", "xz", "lz4", "zstd"}

// sameBytes reports whether the regular files of a tree have the same content
// in another one.
func sameBytes(t testing.TB, tree, other string) bool {
	t.Helper()
	same := true
	err := filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(tree, p)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(other, rel))
		same = same && err == nil && bytes.Equal(a, b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return same
}

// variants are the options of mksquashfs that change what is stored.
var variants = []string{
	"", "-b 4096", "-b 8K", "-b 1M", "-noD", "-noI", "-noF", "-noX", "-noId", "-noI -noD -noF -noX", "-no-fragments", "-no-fragments -b 1M -noD",
	"-tailends", "-no-sparse", "-no-exports", "-no-duplicates", "-no-xattrs", "-all-root -nopad", "-b 1M -tailends -noD -no-exports",
}

// TestEveryOption compares images with the tree that they were made of, for
// every compressor with every option.
func TestEveryOption(t *testing.T) {
	tree := trickyTree(t)
	want := describe(t, os.DirFS(tree))
	for _, comp := range compressorNames {
		for i, v := range variants {
			if testing.Short() && i > 0 && comp != "gzip" {
				continue
			}
			t.Run(comp+v, func(t *testing.T) {
				args := append([]string{"-comp", comp}, strings.Fields(v)...)
				if comp == "lzo" && v != "" { // the default algorithm takes ten times as long
					args = append(args, "-Xalgorithm", "lzo1x_1")
				}
				mk := mksquashfs
				if strings.Contains(v, "-tailends") {
					mk = mksquashfsTailends
				}
				s := open(t, mk(t, tree, args...))
				want := want
				if strings.Contains(v, "-all-root") {
					want = strings.Split(allRoot.Replace(strings.Join(want, "\n\n")), "\n\n")
				}
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

// allRoot rewrites the owners that trickyTree sets.
var allRoot = strings.NewReplacer(" 1234:56789 ", " 0:0 ", " 70000:80000 ", " 0:0 ", fmt.Sprintf(" %d:%d ", os.Getuid(), os.Getgid()), " 0:0 ")

// TestCompressorOptions: what compressors do when they are told to.
func TestCompressorOptions(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable() // machine code
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, self, filepath.Join(dir, "code"), 600<<10)
	os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("NCCL INFO Channel 00/08 ", 20000)), 0o644)
	want := describe(t, os.DirFS(dir))
	for _, args := range []string{
		"-comp gzip -Xcompression-level 1 -Xwindow-size 8", "-comp gzip -Xstrategy filtered,huffman_only,run_length_encoded,fixed",
		"-comp lzo -Xalgorithm lzo1x_1_11", "-comp lzo -Xalgorithm lzo1x_1_12", "-comp lzo -Xalgorithm lzo1x_1_15", "-comp lzo -Xcompression-level 1",
		"-comp lz4 -Xhc", "-comp zstd -Xcompression-level 22 -b 1M", "-comp zstd -Xcompression-level 1",
		"-comp xz -Xbcj x86", "-comp xz -Xbcj x86,arm,armthumb,powerpc,sparc", "-comp xz -Xdict-size 100% -b 1M", "-comp xz -Xdict-size 8K",
	} {
		t.Run(args, func(t *testing.T) {
			if diff := cmp.Diff(want, describe(t, open(t, mksquashfs(t, dir, strings.Fields(args)...)))); diff != "" {
				t.Errorf("image and tree differ:\n%s", diff)
			}
		})
	}
}

func copyFile(t testing.TB, from, to string, max int64) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, max))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestPythonTree compares images of a real Python library.
func TestPythonTree(t *testing.T) {
	const python = "/usr/lib/python3.11"
	testenv.File(t, python+"/os.py", "apt-get install python3")
	for _, tt := range []struct{ dir, args string }{
		{"", "-comp lzo -noD"}, // as enroot does
		{"", "-comp gzip"}, {"", "-comp zstd -Xcompression-level 3"}, {"", "-comp lz4"}, {"", "-comp lzo -Xalgorithm lzo1x_1_15"},
		// Compressing everything with these takes a minute.
		{"asyncio", "-comp xz"}, {"lib-dynload", "-comp xz -b 1M"}, {"asyncio", "-comp lzma"}, {"lib-dynload", "-comp lzma -b 1M"},
	} {
		t.Run(tt.dir+tt.args, func(t *testing.T) {
			dir := filepath.Join(python, tt.dir)
			image := mksquashfs(t, dir, strings.Fields(tt.args)...)
			s := open(t, image)
			if diff := cmp.Diff(describe(t, os.DirFS(dir)), describe(t, s)); diff != "" {
				t.Errorf("image and tree differ:\n%s", diff)
			}
			compareListing(t, image, s)
		})
	}
}

// TestListing compares with what unsquashfs lists.
func TestListing(t *testing.T) {
	image := mksquashfs(t, trickyTree(t))
	compareListing(t, image, open(t, image))
}

// compareListing compares a file system with the output of unsquashfs -lln.
func compareListing(t *testing.T, image string, s *squashfs.FS) {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "unsquashfs"), "-lln", "-d", "", image)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n"), "\n") {
		// Columns are padded; a device's numbers are two words.
		if i := strings.IndexByte(line, ','); i >= 0 && (line[0] == 'b' || line[0] == 'c') {
			line = line[:i+1] + strings.TrimLeft(line[i+1:], " ")
		}
		f := strings.Fields(line)
		if len(f) < 5 {
			want = append(want, line)
			continue
		}
		_, p, _ := strings.Cut(line, f[4])
		want = append(want, strings.Join(f[:5], " ")+p)
	}
	var got []string
	err = fs.WalkDir(s, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*squashfs.Stat)
		size := fmt.Sprint(info.Size())
		switch {
		case info.IsDir():
			size = fmt.Sprint(info.Size() + 3) // with "." and ".."
		case info.Mode()&fs.ModeDevice != 0:
			size = fmt.Sprintf("%d,%d", st.Rdev>>8&0xfff, st.Rdev&0xff|st.Rdev>>12&0xfff00)
		}
		line := fmt.Sprintf("%s %d/%d %s %s /%s", unixString(info.Mode()), st.UID, st.GID, size, info.ModTime().UTC().Format("2006-01-02 15:04"), p)
		if p == "." {
			line = strings.TrimSuffix(line, "/.")
		}
		if d.Type() == fs.ModeSymlink {
			to, err := s.ReadLink(p)
			if err != nil {
				return err
			}
			line += " -> " + to
		}
		got = append(got, strings.Split(line, "\n")...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	trim := func(lines []string) []string {
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		slices.Sort(lines)
		return lines
	}
	if diff := cmp.Diff(trim(want), trim(got)); diff != "" {
		t.Errorf("unsquashfs -lln and the reader differ:\n%s", diff)
	}
}

// unixString is a mode as ls writes it.
func unixString(m fs.FileMode) string {
	b := []byte("-rwxrwxrwx")
	for i := range 9 {
		if m&(1<<(8-i)) == 0 {
			b[i+1] = '-'
		}
	}
	for _, s := range []struct {
		bit  fs.FileMode
		at   int
		x, n byte
	}{{fs.ModeSetuid, 3, 's', 'S'}, {fs.ModeSetgid, 6, 's', 'S'}, {fs.ModeSticky, 9, 't', 'T'}} {
		if m&s.bit != 0 {
			if b[s.at] == 'x' {
				b[s.at] = s.x
			} else {
				b[s.at] = s.n
			}
		}
	}
	switch m.Type() {
	case fs.ModeDir:
		b[0] = 'd'
	case fs.ModeSymlink:
		b[0] = 'l'
	case fs.ModeNamedPipe:
		b[0] = 'p'
	case fs.ModeSocket:
		b[0] = 's'
	case fs.ModeDevice:
		b[0] = 'b'
	case fs.ModeDevice | fs.ModeCharDevice:
		b[0] = 'c'
	}
	return string(b)
}
