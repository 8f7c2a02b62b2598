package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source/archive"
	"github.com/ncclinic/ncclinic/internal/source/spool"
	"github.com/ncclinic/ncclinic/internal/source/vfs"
)

// Kinds of a Target.
const (
	KindWheel   = "wheel"         // .whl
	KindConda   = "conda"         // .conda, .tar.bz2 of conda
	KindEnv     = "environment"   // archive of an environment (conda-pack, venv-pack, tar of a prefix)
	KindSite    = "site-packages" // a folder or archive of packages alone
	KindRootFS  = "rootfs"        // an unpacked root file system, or an archive of one
	KindOCI     = "oci"           // OCI layout, folder or archive
	KindDocker  = "docker"        // docker save
	KindSIF     = "sif"           // Apptainer, Singularity
	KindSquash  = "squashfs"      // enroot, pyxis
	KindLibrary = "library"       // one shared library
)

// Target is an artefact that was opened: nothing of it was run, mounted or unpacked.
type Target struct {
	Path string // as it was named
	Kind string
	FS   fs.FS // what it holds; for an image its root file system

	Image  *Image // of an image: what it says about itself
	Prefix string // of KindEnv: the folder of the environment in FS, absolute
	Site   string // of KindWheel, KindSite and KindConda: the folder of packages in FS, absolute

	// Streamed says that reading far into a long file is dear, because it is compressed.
	Streamed bool
	Size     int64 // bytes of the artefact; 0 for a folder
	Problems []fact.Problem

	read  *atomic.Int64
	store *spool.Store
	close []io.Closer
	files []opened // what the artefact is made of, unless that is a folder
}

// opened is a file and what it was when it was opened.
type opened struct {
	f   *os.File
	was fs.FileInfo
}

// ErrChanged means that the artefact was written to while it was read, so that
// what was read of it need not fit together.
var ErrChanged = errors.New("the file changed while it was read")

// Changed returns ErrChanged when a file of the artefact is not any more what it
// was when it was opened.
func (t *Target) Changed() error {
	for _, o := range t.files {
		now, err := o.f.Stat()
		if err != nil {
			return err
		}
		if now.Size() != o.was.Size() || !now.ModTime().Equal(o.was.ModTime()) {
			return ErrChanged
		}
	}
	return nil
}

// Image is what an image says about itself.
type Image struct {
	OS, Arch   string            // linux, x86_64; "" when it does not say
	Env        map[string]string // environment that a process in it gets
	EnvAt      string            // where Env stands
	Entrypoint []string          // command line that it would start
	WorkDir    string
	Platforms  []string // of a multi-platform image: all that it has
}

// IsImage reports whether the target is a root file system.
func (t *Target) IsImage() bool {
	switch t.Kind {
	case KindRootFS, KindOCI, KindDocker, KindSIF, KindSquash:
		return true
	}
	return false
}

// BytesRead counts what was read of the artefact.
func (t *Target) BytesRead() int64 {
	if t.read == nil {
		return 0
	}
	return t.read.Load()
}

// Kept returns the bytes that are held of compressed members, in memory and in a temporary file.
func (t *Target) Kept() (mem, disk int64) {
	if t.store == nil {
		return 0, 0
	}
	return t.store.Used()
}

// Close closes files and gives temporary space back.
func (t *Target) Close() error {
	var errs []error
	for i := len(t.close) - 1; i >= 0; i-- {
		errs = append(errs, t.close[i].Close())
	}
	t.close = nil
	return errors.Join(errs...)
}

// OpenOptions say which part of an artefact is meant.
type OpenOptions struct {
	// Platform chooses from a multi-platform image: linux/amd64, linux/arm64 or only the
	// architecture. Empty: that of this machine, or the only one there is.
	Platform string
	// Apart looks at a folder of packages as at an artefact, without this machine around it.
	Apart bool
}

// ErrUnknownKind means that a file is no artefact that is known here.
var ErrUnknownKind = errors.New("not a wheel, conda package, archive, image, environment or library")

// Open opens an artefact. Its kind is told by its first bytes and not by its
// name. Errors name the path and the reason.
func Open(ctx context.Context, path string, o OpenOptions) (*Target, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	t := &Target{Path: path, read: new(atomic.Int64), store: &spool.Store{}}
	t.close = append(t.close, t.store)
	if st.IsDir() {
		err = t.openDir(ctx, o)
	} else if !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	} else {
		err = t.openFile(ctx, o)
	}
	if err != nil {
		if t.Changed() != nil { // whatever came of it
			err = ErrChanged
		}
		t.Close()
		var pe *fs.PathError
		if errors.As(err, &pe) && pe.Path == path {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// countReader counts what is read of the artefact.
type countReader struct {
	f    *os.File
	n    *atomic.Int64
	size int64 // when it was opened
}

// ReadAt implements io.ReaderAt. That the file ends before the end that it had is an
// error and no end: what was cut off must not pass for a file that is whole.
func (c countReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.f.ReadAt(b, off)
	c.n.Add(int64(n))
	if err == io.EOF && off+int64(n) < c.size {
		err = ErrChanged
	}
	return n, err
}

func (t *Target) openFile(ctx context.Context, o OpenOptions) error {
	f, err := os.Open(t.Path)
	if err != nil {
		return err
	}
	t.close = append(t.close, f)
	was, err := f.Stat()
	if err != nil {
		return err
	}
	t.files = append(t.files, opened{f, was})
	size := was.Size()
	t.Size = size
	r := countReader{f, t.read, size}
	head := make([]byte, 512)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	head = head[:n]
	if n == 0 {
		return errors.New("an empty file")
	}
	switch sniff(head) {
	case "zip":
		return t.openZip(ctx, r, size)
	case "elf":
		return t.openLibrary()
	case "squashfs":
		return t.openSquash(r, size)
	case "sif":
		return t.openSIF(r, size, o)
	}
	return t.openTar(ctx, r, size, head, o)
}

// sniff tells the formats that have a magic number at their beginning.
func sniff(head []byte) string {
	s := string(head)
	switch {
	case strings.HasPrefix(s, "PK\x03\x04"), strings.HasPrefix(s, "PK\x05\x06"):
		return "zip"
	case strings.HasPrefix(s, "\x7fELF"):
		return "elf"
	case strings.HasPrefix(s, "hsqs"), strings.HasPrefix(s, "sqsh"):
		return "squashfs"
	case len(s) >= 42 && strings.HasPrefix(s[32:], "SIF_MAGIC"):
		return "sif"
	}
	return ""
}

func (t *Target) openZip(ctx context.Context, r io.ReaderAt, size int64) error {
	z, err := archive.Zip(r, size, t.store)
	if err != nil {
		return err
	}
	t.Streamed = true
	if archive.IsConda(z) {
		f, err := archive.Conda(ctx, z, t.store)
		if err != nil {
			return err
		}
		return t.condaTree(f)
	}
	if hasWheel(z) {
		t.Kind, t.FS, t.Site = KindWheel, z, "/"
		return nil
	}
	return t.tree(z)
}

// hasWheel looks for the metadata folder of a wheel.
func hasWheel(f fs.FS) bool {
	list, _ := fs.ReadDir(f, ".")
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".dist-info") {
			if _, err := fs.Stat(f, e.Name()+"/WHEEL"); err == nil {
				return true
			}
		}
	}
	return false
}

// condaTree is the content of one conda package.
func (t *Target) condaTree(f *vfs.FS) error {
	t.Kind, t.FS, t.Site = KindConda, f, "/"
	if site := findSite(f, ".", 4); site != "" {
		t.Site = "/" + site
	}
	return nil
}

// tree tells what the tree of an archive is: a root file system, an
// environment or a folder of packages.
func (t *Target) tree(f fs.FS) error {
	if isRoot(f) {
		t.Kind, t.FS = KindRootFS, f
		t.rootImage()
		return nil
	}
	if p, ok := findPrefix(f, ".", 2); ok {
		// The environment gets a folder of its own: an interpreter finds its
		// standard library above itself, but not in the root.
		t.Kind, t.FS, t.Prefix = KindEnv, Bind(vfs.New(0), "env", f), "/"+filepath.ToSlash(filepath.Join("env", p))
		return nil
	}
	if site := findSite(f, ".", 5); site != "" {
		t.Kind, t.FS, t.Site = KindSite, f, "/"+strings.TrimPrefix(site, ".")
		return nil
	}
	return errors.New("it holds no root file system, no interpreter and no torch package: " + ErrUnknownKind.Error())
}

// isRoot reports whether a tree is a root file system.
func isRoot(f fs.FS) bool {
	has := func(names ...string) bool {
		for _, n := range names {
			if _, err := fs.Lstat(f, n); err == nil {
				return true
			}
		}
		return false
	}
	return has(".singularity.d", "etc/os-release", "etc/passwd") && has("usr", "bin", "lib")
}

// findPrefix looks for the folder that holds bin/python.
func findPrefix(f fs.FS, dir string, depth int) (string, bool) {
	for _, n := range []string{"bin/python", "bin/python3"} {
		if _, err := fs.Lstat(f, join(dir, n)); err == nil {
			return dir, true
		}
	}
	for _, d := range subdirs(f, dir, depth) {
		if p, ok := findPrefix(f, d, depth-1); ok {
			return p, true
		}
	}
	return "", false
}

// findSite looks for the folder that holds torch, or metadata of packages.
func findSite(f fs.FS, dir string, depth int) string {
	list, _ := fs.ReadDir(f, dir)
	for _, e := range list {
		n := e.Name()
		if n == "torch" && e.IsDir() || n == "torchgen" && e.IsDir() || strings.HasSuffix(n, ".dist-info") {
			return dir
		}
	}
	for _, d := range subdirs(f, dir, depth) {
		if s := findSite(f, d, depth-1); s != "" {
			return s
		}
	}
	return ""
}

func subdirs(f fs.FS, dir string, depth int) []string {
	if depth <= 0 {
		return nil
	}
	var out []string
	list, _ := fs.ReadDir(f, dir)
	for _, e := range list {
		if e.IsDir() && len(out) < 64 {
			out = append(out, join(dir, e.Name()))
		}
	}
	return out
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

func (t *Target) openTar(ctx context.Context, r io.ReaderAt, size int64, head []byte, o OpenOptions) error {
	if archive.Format(head) == archive.Plain {
		if !isTar(head) {
			return fmt.Errorf("%w (it begins with %.16q)", ErrUnknownKind, head)
		}
		f := vfs.New(archive.MaxNames)
		sec := io.NewSectionReader(r, 0, size)
		if err := archive.Tar(ctx, sec, archive.TarOptions{At: r}, func(op archive.Op) error { return archive.Apply(f, op) }); err != nil {
			return tarError(err)
		}
		return t.fromTar(ctx, f, o)
	}
	z, format, err := archive.Decompress(io.NewSectionReader(r, 0, size))
	if err != nil {
		return fmt.Errorf("%s: %w", format, err)
	}
	defer z.Close()
	p := &peeker{r: z}
	if head, err := p.peek(512); err != nil && len(head) == 0 {
		return fmt.Errorf("%s: %w", format, err)
	} else if !isTar(head) {
		return fmt.Errorf("a %s file without a tar archive inside: %w", format, ErrUnknownKind)
	}
	t.Streamed = true
	f, layers, err := t.readStream(ctx, p)
	if err != nil {
		return tarError(err)
	}
	if len(layers) > 0 {
		return t.openLayout(ctx, f, layers, o)
	}
	return t.fromTar(ctx, f, o)
}

// fromTar goes on with the index of a tar archive.
func (t *Target) fromTar(ctx context.Context, f *vfs.FS, o OpenOptions) error {
	switch {
	case isLayout(f), isDockerSave(f):
		return t.openLayout(ctx, f, nil, o)
	case exists(f, "info/index.json"):
		if err := archive.AddCondaRecord(f); err != nil {
			return err
		}
		return t.condaTree(f)
	}
	return t.tree(f)
}

func exists(f fs.FS, name string) bool {
	_, err := fs.Stat(f, name)
	return err == nil
}

func tarError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("the time limit was hit while it was read: %w", err)
	}
	if errors.Is(err, vfs.ErrFull) || errors.Is(err, spool.ErrFull) {
		return fmt.Errorf("beyond what is examined of one archive: %w", err)
	}
	return fmt.Errorf("the archive is damaged or cut: %w", err)
}

// isTar tells a tar archive by its first header, whose checksum must be right.
func isTar(h []byte) bool {
	if len(h) < 512 {
		return false
	}
	want := int64(0)
	for _, c := range strings.Trim(string(h[148:156]), " \x00") {
		if c < '0' || c > '7' {
			return false
		}
		want = want*8 + int64(c-'0')
	}
	var sum int64
	for i, c := range h[:512] {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
	}
	return sum == want && want > 8*' '
}

// peeker gives bytes back that were looked at.
type peeker struct {
	r   io.Reader
	buf []byte
}

func (p *peeker) peek(n int) ([]byte, error) {
	b := make([]byte, n)
	m, err := io.ReadFull(p.r, b)
	p.buf = b[:m]
	return p.buf, err
}

func (p *peeker) Read(b []byte) (int, error) {
	if len(p.buf) > 0 {
		n := copy(b, p.buf)
		p.buf = p.buf[n:]
		return n, nil
	}
	return p.r.Read(b)
}

// openLibrary is a single shared library; nothing is known of its surroundings.
func (t *Target) openLibrary() error {
	f := vfs.New(8)
	h, err := os.Open(t.Path)
	if err != nil {
		return err
	}
	t.close = append(t.close, h)
	t.Kind, t.FS = KindLibrary, f
	return f.Add(vfs.Entry{Name: filepath.Base(t.Path), Mode: 0o644, Size: t.Size, Data: countReader{h, t.read, t.Size}})
}

func (t *Target) openDir(ctx context.Context, o OpenOptions) error {
	f, err := openFolder(t.Path)
	if err != nil {
		return err
	}
	t.close = append(t.close, f)
	switch {
	case isLayout(f):
		return t.openLayout(ctx, f, nil, o)
	case isRoot(f):
		t.Kind, t.FS = KindRootFS, f
		t.rootImage()
		return nil
	}
	if _, ok := findPrefix(f, ".", 0); ok {
		t.Kind, t.FS, t.Prefix = KindEnv, nil, t.Path // looked at where it is
		return nil
	}
	if findSite(f, ".", 0) != "" {
		if o.Apart {
			t.Kind, t.FS, t.Site = KindSite, f, "/"
			return nil
		}
		t.Kind, t.FS, t.Site = KindSite, nil, t.Path
		return nil
	}
	return fmt.Errorf("no bin/python, no torch, no oci-layout and no root file system in this folder: %w", ErrUnknownKind)
}
