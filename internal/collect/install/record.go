package install

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// maxRecord bounds what is read of torch's RECORD, which has about 1.5 MB.
const maxRecord = 4 << 20

// important reports whether a file of a torch wheel is one without which
// nothing works, or one that tells builds apart.
func important(name string) bool {
	switch name {
	case "torch/__init__.py", "torch/version.py":
		return true
	}
	if lib, ok := strings.CutPrefix(name, "torch/lib/"); ok {
		return strings.Contains(lib, ".so") && !strings.Contains(lib, "/") &&
			(strings.HasPrefix(lib, "libtorch") || strings.HasPrefix(lib, "libc10"))
	}
	return strings.HasPrefix(name, "torch/_C.") && strings.HasSuffix(name, ".so")
}

// recordEntry is one important line of RECORD.
type recordEntry struct {
	name string
	size int64 // -1: not given
	line int
}

// scanRecord reads the important lines of RECORD. It stops early at a file
// that is no RECORD: too long, or with lines that no file name fills.
func scanRecord(r io.Reader) []recordEntry {
	br := bufio.NewReaderSize(io.LimitReader(r, maxRecord), 64<<10)
	var out []recordEntry
	for n := 1; len(out) < 100; n++ {
		line, err := br.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			return out
		}
		if bytes.HasPrefix(line, []byte("torch/")) && !bytes.HasPrefix(line, []byte("torch/include/")) { // most lines, unread
			if e, ok := recordLine(string(trimEOL(line))); ok {
				e.line = n
				out = append(out, e)
			}
		}
		if err != nil {
			return out
		}
	}
	return out
}

func trimEOL(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// recordLine reads name,hash,size. None of the important names needs quotes.
func recordLine(s string) (recordEntry, bool) {
	name, rest, ok := strings.Cut(s, ",")
	if !ok || !strings.HasPrefix(name, "torch/") || !important(name) {
		return recordEntry{}, false
	}
	e := recordEntry{name: name, size: -1}
	if _, size, ok := strings.Cut(rest, ","); ok {
		if v, err := strconv.ParseInt(size, 10, 64); err == nil && v >= 0 {
			e.size = v
		}
	}
	return e, true
}

// checkRecord compares the important files of a wheel with RECORD.
func (c *collector) checkRecord(t *fact.Torch, d fact.Dist) {
	file := path.Join(d.Dir, "RECORD")
	if !strings.HasSuffix(d.Dir, ".dist-info") || !c.t.exists(file) {
		return
	}
	f, _, err := c.t.open(file)
	if err != nil {
		c.b.AddProblem(file, err.Error())
		return
	}
	defer f.Close()
	for _, e := range scanRecord(f) {
		p := path.Join(path.Dir(d.Dir), e.name)
		n := c.t.at(p)
		at := fact.FileLine(file, e.line, e.name)
		switch {
		case n.err != nil && gone(n.err):
			t.Damage = append(t.Damage, fact.Damage{Kind: fact.DamageMissingFile, What: p, At: at})
		case n.err != nil:
			c.b.AddProblem(p, short(n.err).Error())
		case e.size >= 0 && n.info.Mode().IsRegular() && n.info.Size() != e.size:
			kind := fact.DamageChangedFile
			if n.info.Size() < e.size && c.isCut(n) {
				kind = fact.DamageTruncatedFile
			}
			at.Excerpt += ": " + strconv.FormatInt(e.size, 10) + " bytes in RECORD, " + strconv.FormatInt(n.info.Size(), 10) + " on disk"
			t.Damage = append(t.Damage, fact.Damage{Kind: kind, What: p, At: at})
		}
	}
}

// isCut reports whether a library ends before what its header promises to the
// loader. One that is merely smaller than RECORD says may have been stripped.
func (c *collector) isCut(n node) bool {
	if !strings.Contains(path.Base(n.real), ".so") {
		return false
	}
	f, h, err := elfx.OpenFS(c.m.FS, source.Rel(n.real), nil)
	if err != nil {
		var io *fs.PathError
		return !errors.As(err, &io) // of a file that cannot be read nothing is known
	}
	defer h.Close()
	return f.End() > n.info.Size()
}
