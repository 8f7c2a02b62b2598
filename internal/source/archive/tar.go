package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/source/spool"
	"github.com/ncclinic/ncclinic/internal/source/vfs"
)

// Limits on tar archives.
const (
	MaxNames   = 250_000    // kept of one archive or image: about 40 MB of memory
	maxMembers = 20_000_000 // passed over
	maxStream  = 1 << 40    // bytes of one unpacked stream
)

// What an Op does.
const (
	OpAdd      = iota
	OpLink     // a hard link: Name becomes another name of Entry.Link
	OpWhiteout // Name goes away, as far as it comes from earlier layers
	OpOpaque   // what earlier layers put into folder Name goes away
)

// Op is one step of building a tree from an archive.
type Op struct {
	vfs.Entry
	Do int
}

// Apply carries an Op out. Names that lead out of the tree, and links to nothing, change
// nothing and are no error: an unpacking program refuses them too.
func Apply(f *vfs.FS, o Op) error {
	var err error
	switch o.Do {
	case OpLink:
		err = f.Link(o.Name, o.Link)
	case OpWhiteout:
		err = f.Whiteout(o.Name)
	case OpOpaque:
		err = f.Opaque(o.Name)
	default:
		err = f.Add(o.Entry)
	}
	if errors.Is(err, vfs.ErrFull) {
		return err
	}
	return nil
}

// TarOptions say how a tar archive is read.
type TarOptions struct {
	// Store keeps contents of a stream. It is not used with At.
	Store *spool.Store
	// At, where it is given, is the same bytes with random access: contents are
	// read from there when somebody asks for them, and every name is taken.
	At io.ReaderAt
	// Layer says that names of the form .wh.X are whiteouts of an image layer.
	Layer bool
	// Member, where it is given, is shown each regular file of a stream first. It
	// says whether it has dealt with it.
	Member func(name string, size int64, r io.Reader) (bool, error)
}

// Tar reads a tar archive once and hands what matters to add, in order. The
// error says that the archive is damaged, cut, or larger than any real one, or
// that ctx ended.
func Tar(ctx context.Context, r io.Reader, o TarOptions, add func(Op) error) error {
	in := &counter{r: r, ctx: ctx, max: maxStream}
	var tr *tar.Reader
	if s, ok := r.(io.Seeker); ok && o.At != nil {
		tr = tar.NewReader(seekCounter{in, s})
	} else {
		tr = tar.NewReader(in)
	}
	var buf []byte
	for n := 0; ; n++ {
		h, err := tr.Next()
		if err == io.EOF {
			if o.At == nil {
				return tail(in)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if n == maxMembers {
			return fmt.Errorf("more than %d members", maxMembers)
		}
		op, ok := o.member(h)
		if !ok {
			continue
		}
		if op.Do == OpAdd && op.Mode.IsRegular() {
			if o.Member != nil {
				if done, err := o.Member(op.Name, h.Size, tr); err != nil {
					return err
				} else if done {
					continue
				}
			}
			class := Classify(op.Name, h.Size)
			if o.At != nil {
				if !sparse(h) {
					op.Data = io.NewSectionReader(o.At, in.n, h.Size)
				}
				if class == Ignore && n > MaxNames/4 {
					continue // a small archive is kept as it is, a large one is not
				}
			} else if class == Ignore {
				continue
			} else if what, ok := class.what(); ok && h.Size > 0 {
				if buf == nil {
					buf = make([]byte, 128<<10)
				}
				f, err := spool.Take(o.Store, tr, h.Size, what, buf)
				if err != nil {
					return fmt.Errorf("%s: %w", h.Name, err)
				}
				op.Data = f
			}
		}
		if err := add(op); err != nil {
			return err
		}
	}
}

// member turns a header into an Op; ok is false for what is not taken.
func (o TarOptions) member(h *tar.Header) (op Op, ok bool) {
	name := strings.TrimPrefix(h.Name, "./")
	op.Name = name
	if o.Layer {
		dir, base := path.Split(strings.TrimSuffix(name, "/"))
		if base == ".wh..wh..opq" {
			op.Name, op.Do = dir, OpOpaque
			return op, true
		}
		if rest, is := strings.CutPrefix(base, ".wh."); is {
			if strings.HasPrefix(rest, ".wh.") || rest == "" || rest == "." || rest == ".." {
				return op, false // .wh..wh.plnk and the like: bookkeeping of AUFS; or no name at all
			}
			op.Name, op.Do = dir+rest, OpWhiteout
			return op, true
		}
	}
	perm := fs.FileMode(h.Mode) & fs.ModePerm
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, '\x00', '7':
		op.Mode, op.Size = perm, h.Size
	case tar.TypeDir:
		op.Mode = fs.ModeDir | perm
		if skipped(strings.TrimSuffix(name, "/")) {
			return op, false
		}
	case tar.TypeSymlink:
		op.Mode, op.Link = fs.ModeSymlink|fs.ModePerm, h.Linkname
		if skipped(path.Dir(name)) {
			return op, false
		}
	case tar.TypeLink:
		op.Do = OpLink
		op.Link = strings.TrimPrefix(h.Linkname, "./")
	default:
		return op, false // devices, FIFOs
	}
	return op, true
}

func sparse(h *tar.Header) bool {
	return h.Typeflag == tar.TypeGNUSparse || h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != ""
}

// counter counts what was read, ends with its context and has an end.
type counter struct {
	r   io.Reader
	ctx context.Context
	n   int64
	max int64
}

func (c *counter) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.n >= c.max {
		return 0, errors.New("unpacks to more than any real archive")
	}
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// seekCounter lets archive/tar skip contents instead of reading them.
type seekCounter struct {
	*counter
	s io.Seeker
}

func (c seekCounter) Seek(off int64, whence int) (int64, error) {
	p, err := c.s.Seek(off, whence)
	if err == nil {
		c.n = p
	}
	return p, err
}
