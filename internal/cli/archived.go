package cli

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/source/archive"
)

// Limits of an archive of logs.
const (
	maxArchived = 20_000   // members that are read
	maxPassed   = 200_000  // members that are passed over
	maxZipNames = 32 << 20 // bytes of a zip's central directory
	tarBlock    = 512
)

var (
	errManyMembers = errors.New("an archive of more than 20000 files") // maxArchived
	errNoMembers   = errors.New("the archive holds no file that could be a log")
	errChanged     = errors.New("the archive has changed")
	errCutArchive  = errors.New("the archive ends in the middle: what follows was not there to read")
)

// archived returns the files of an archive of logs, such as a ticket has attached,
// as inputs named ARCHIVE/MEMBER. ok is false when the file is no tar archive,
// compressed or not, and no zip.
func archived(name string) (ins []logs.Input, ok bool, err error) {
	if ext := strings.ToLower(path.Ext(name)); ext == ".whl" || ext == ".conda" {
		return nil, false, nil // what check examines
	}
	f, err := openFile(name)
	if err != nil {
		return nil, false, nil // whoever reads it as a log says why
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, false, nil
	}
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil {
		return nil, false, nil
	}
	if string(magic) == "PK\x03\x04" {
		ins, err = (&zipLogs{file: name}).inputs(f, st.Size())
	} else {
		t := &tarLogs{file: name}
		if ok, err = t.rewind(); !ok || err != nil {
			t.close()
			return nil, false, nil
		}
		ins, err = t.inputs()
	}
	if err == nil && len(ins) == 0 {
		err = errNoMembers
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", name, err)
	}
	return ins, true, nil
}

// archiveOf returns the archive that a file shown as ARCHIVE/MEMBER is in.
func archiveOf(shown string) (string, bool) {
	for p := path.Dir(shown); p != "." && p != "/"; p = path.Dir(p) {
		if st, err := os.Stat(p); err == nil {
			return p, st.Mode().IsRegular()
		}
	}
	return "", false
}

// member is the name under which a file of an archive is shown, "" for one that is not read.
func member(archive, name string) string {
	name = path.Clean("/" + strings.ReplaceAll(name, "\\", "/"))
	if strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(name, "/__MACOSX/") {
		return ""
	}
	return archive + name
}

// zipLogs reads the members of a zip file. The archive is open from the first of
// them to the last, for its directory takes longer to read than most logs.
type zipLogs struct {
	file string
	z    *zip.ReadCloser
	last int // index of the last member that is read
}

func (l *zipLogs) inputs(f io.ReaderAt, size int64) ([]logs.Input, error) {
	_, n, count, err := archive.ZipDirectory(f, size)
	switch {
	case err != nil:
		return nil, err
	case count > maxPassed: // before anybody makes room for them
		return nil, errManyMembers
	case n > maxZipNames:
		return nil, fmt.Errorf("a central directory of %d bytes", n)
	}
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, err
	}
	var ins []logs.Input
	for i, m := range z.File {
		p := member(l.file, m.Name)
		if p == "" || !m.Mode().IsRegular() {
			continue
		}
		if len(ins) == maxArchived {
			return nil, errManyMembers
		}
		ins = append(ins, logs.Input{Path: p, Open: func() (io.ReadCloser, error) { return l.open(i) }})
		l.last = i
	}
	return ins, nil
}

// open opens a member of the file that was listed.
func (l *zipLogs) open(i int) (r io.ReadCloser, err error) {
	if l.z == nil {
		if l.z, err = zip.OpenReader(l.file); err != nil {
			return nil, err
		}
	}
	if i >= len(l.z.File) {
		return nil, errChanged
	}
	if r, err = l.z.File[i].Open(); err != nil || i < l.last {
		return r, err
	}
	return lastMember{r, l.close}, nil
}

func (l *zipLogs) close() {
	if l.z != nil {
		l.z.Close()
	}
	l.z = nil
}

// lastMember closes the archive too.
type lastMember struct {
	io.ReadCloser
	archive func()
}

func (m lastMember) Close() error {
	defer m.archive()
	return m.ReadCloser.Close()
}

// tarLogs reads the members of a tar archive, which may be compressed, in order.
// They are asked for in that order, so it is unpacked twice in all: to list it
// and to read it.
type tarLogs struct {
	file   string
	f      *os.File
	plain  io.ReadCloser
	tr     *tar.Reader
	passed int // members so far
	last   int // number of the last one that is read
}

// rewind begins at the first member. ok is false when it is no tar archive.
func (t *tarLogs) rewind() (ok bool, err error) {
	t.close()
	if t.f, err = os.Open(t.file); err != nil {
		return false, err
	}
	if t.plain, _, err = archive.Decompress(t.f); err != nil {
		return false, err
	}
	br := bufio.NewReaderSize(io.LimitReader(t.plain, logs.DefaultLimit), 64<<10)
	head, _ := br.Peek(tarBlock)
	if !tarHead(head) {
		return false, nil
	}
	t.tr, t.passed = tar.NewReader(br), 0
	return true, nil
}

func (t *tarLogs) close() {
	if t.plain != nil {
		t.plain.Close()
	}
	if t.f != nil {
		t.f.Close()
	}
	t.f, t.plain, t.tr = nil, nil, nil
}

// tarHead reports whether a block is the head of a tar archive's member: its
// checksum counts the other bytes, with blanks in its own place.
func tarHead(b []byte) bool {
	if len(b) < tarBlock || b[0] == 0 {
		return false
	}
	sum, want := int64(0), int64(0)
	for i, c := range b[:tarBlock] {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
	}
	for _, c := range bytes.Trim(b[148:156], " \x00") {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	return sum == want
}

func (t *tarLogs) inputs() ([]logs.Input, error) {
	defer t.close()
	var ins []logs.Input
	for i := 0; ; i++ {
		h, err := t.tr.Next()
		if err == io.EOF || err != nil && len(ins) > 0 {
			return ins, nil // what is behind the damage cannot be read; each member says so for itself
		}
		if err != nil {
			return nil, cut(err)
		}
		if len(ins) == maxArchived || i == maxPassed {
			return nil, errManyMembers
		}
		if p := member(t.file, h.Name); p != "" && h.Typeflag == tar.TypeReg {
			ins = append(ins, logs.Input{Path: p, Open: func() (io.ReadCloser, error) { return t.open(i) }})
			t.last = i
		}
	}
}

// open goes to a member.
func (t *tarLogs) open(i int) (io.ReadCloser, error) {
	if t.tr == nil || t.passed > i {
		if ok, err := t.rewind(); err != nil {
			return nil, err
		} else if !ok {
			return nil, errChanged
		}
	}
	for t.passed <= i {
		if _, err := t.tr.Next(); err != nil {
			return nil, cut(err)
		}
		t.passed++
	}
	r := io.NopCloser(cutReader{t.tr})
	if i < t.last {
		return r, nil
	}
	return lastMember{r, t.close}, nil
}

// cut has words for an archive that ends too early.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutArchive
	}
	return err
}

type cutReader struct{ in io.Reader }

func (c cutReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	return n, cut(err)
}
