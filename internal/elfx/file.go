// Package elfx reads what this program needs of ELF files: the dynamic
// section, dynamic symbols by name, symbol versions, and a few sections. It
// reads through small bounded pieces, because the files are foreign bytes and
// up to 1.5 GB long; nothing in a file can make it read, allocate or loop
// without limit. Layouts are those of the System V gABI and of the GNU
// extensions in elf.h of glibc.
package elfx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Limits on counts in a file. The largest library of PyTorch stays far below each.
const (
	maxProgs    = 256
	maxDyn      = 4096     // entries of the dynamic section
	maxNeeded   = 512      // NEEDED entries
	maxName     = 16 << 10 // bytes of one name or path
	maxSections = 1024
	maxVersions = 8192
)

var (
	errRange = errors.New("offset outside of the file")
	// ErrNotELF means that the file does not start as an ELF file.
	ErrNotELF = errors.New("not an ELF file")
)

// Machine numbers of the ELF header that matter here.
const (
	X86     = 3
	PPC64   = 21
	X86_64  = 62
	AArch64 = 183
	RISCV   = 243
)

// MachineName returns the name of a machine number as uname -m prints it.
func MachineName(machine uint16) string {
	switch machine {
	case X86:
		return "i686"
	case PPC64:
		return "ppc64le"
	case X86_64:
		return "x86_64"
	case AArch64:
		return "aarch64"
	case RISCV:
		return "riscv64"
	}
	return fmt.Sprintf("machine %d", machine)
}

// File is an opened ELF file.
type File struct {
	Class64 bool
	Order   binary.ByteOrder
	Type    uint16 // 2 executable, 3 shared object or position independent executable
	Machine uint16

	Interp  string   // program interpreter; "" for a library
	Dynamic bool     // there is a dynamic section
	Soname  string   // DT_SONAME
	Needed  []string // DT_NEEDED in order
	RPath   []string // DT_RPATH, split at colons; empty when the file has DT_RUNPATH, as ld.so does
	RunPath []string // DT_RUNPATH, split at colons
	NoDef   bool     // DF_1_NODEFLIB: default directories are not searched

	p     pager
	progs []prog
	shoff int64
	shnum int
	shstr int
	dyn   struct {
		strtab, strsz, symtab, hash, gnuHash  uint64
		versym, verneed, verneedN, verdef, vN uint64
	}
	versions []string // by index of the version table; read on demand
	verFiles []string // the file that an index is needed from
	verRead  bool
}

type prog struct {
	typ           uint32
	off           int64
	vaddr, filesz uint64
}

// Open reads the headers and the dynamic section. It reads some pages; m may be nil.
func Open(r io.ReaderAt, size int64, m *Meter) (*File, error) {
	if err := m.file(); err != nil {
		return nil, err
	}
	f := &File{p: pager{r: r, size: size, m: m}}
	if err := f.header(); err != nil {
		return nil, err
	}
	if err := f.dynamic(); err != nil {
		return nil, fmt.Errorf("dynamic section: %w", err)
	}
	return f, nil
}

// OpenFS opens a file of a file system. The closer closes it.
func OpenFS(fsys fs.FS, name string, m *Meter) (*File, io.Closer, error) {
	h, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	st, err := h.Stat()
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		h.Close()
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	}
	r, ok := h.(io.ReaderAt)
	if !ok {
		s, ok := h.(io.ReadSeeker)
		if !ok {
			h.Close()
			return nil, nil, fmt.Errorf("%s cannot be read at random", name)
		}
		r = seekReaderAt{s}
	}
	f, err := Open(r, st.Size(), m)
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return f, h, nil
}

// End returns the offset behind the last byte that the loader maps. A file that
// is shorter was cut: it may open, and the process dies where it touches what is
// not there.
func (f *File) End() int64 {
	const load = 1 // PT_LOAD
	var end int64
	for _, p := range f.progs {
		if p.typ == load && p.off >= 0 && p.filesz < 1<<62 {
			end = max(end, p.off+int64(p.filesz))
		}
	}
	return end
}

// seekReaderAt reads at an offset of a file that can only seek. It is used by one goroutine.
type seekReaderAt struct{ s io.ReadSeeker }

func (r seekReaderAt) ReadAt(b []byte, off int64) (int, error) {
	if _, err := r.s.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(r.s, b)
}

func (f *File) header() error {
	id, err := f.p.bytes(0, 16)
	if err != nil {
		if errors.Is(err, errRange) {
			return ErrNotELF
		}
		return err
	}
	if string(id[:4]) != "\x7fELF" {
		return ErrNotELF
	}
	switch id[4] {
	case 1:
	case 2:
		f.Class64 = true
	default:
		return fmt.Errorf("unknown ELF class %d", id[4])
	}
	switch id[5] {
	case 1:
		f.Order = binary.LittleEndian
	case 2:
		f.Order = binary.BigEndian
	default:
		return fmt.Errorf("unknown ELF byte order %d", id[5])
	}
	n := 52
	if f.Class64 {
		n = 64
	}
	h, err := f.p.bytes(0, n)
	if err != nil {
		return fmt.Errorf("ELF header: %w", err)
	}
	o := f.Order
	f.Type, f.Machine = o.Uint16(h[16:]), o.Uint16(h[18:])
	var phoff uint64
	var phent, phnum, shent int
	if f.Class64 {
		phoff, f.shoff = o.Uint64(h[32:]), int64(o.Uint64(h[40:]))
		phent, phnum = int(o.Uint16(h[54:])), int(o.Uint16(h[56:]))
		shent, f.shnum, f.shstr = int(o.Uint16(h[58:])), int(o.Uint16(h[60:])), int(o.Uint16(h[62:]))
	} else {
		phoff, f.shoff = uint64(o.Uint32(h[28:])), int64(o.Uint32(h[32:]))
		phent, phnum = int(o.Uint16(h[42:])), int(o.Uint16(h[44:]))
		shent, f.shnum, f.shstr = int(o.Uint16(h[46:])), int(o.Uint16(h[48:])), int(o.Uint16(h[50:]))
	}
	if f.shnum > maxSections || shent != f.shentSize() || f.shoff <= 0 {
		f.shnum = 0
	}
	if phnum == 0 {
		return nil
	}
	want := 32
	if f.Class64 {
		want = 56
	}
	if phnum > maxProgs || phent != want {
		return fmt.Errorf("%d program headers of %d bytes", phnum, phent)
	}
	if phoff > uint64(f.p.size) {
		return errRange
	}
	b, err := f.p.bytes(int64(phoff), phnum*phent)
	if err != nil {
		return fmt.Errorf("program headers: %w", err)
	}
	for ; len(b) > 0; b = b[phent:] {
		p := prog{typ: o.Uint32(b)}
		if f.Class64 {
			p.off, p.vaddr, p.filesz = int64(o.Uint64(b[8:])), o.Uint64(b[16:]), o.Uint64(b[32:])
		} else {
			p.off, p.vaddr, p.filesz = int64(o.Uint32(b[4:])), uint64(o.Uint32(b[8:])), uint64(o.Uint32(b[16:]))
		}
		f.progs = append(f.progs, p)
	}
	return nil
}

func (f *File) shentSize() int {
	if f.Class64 {
		return 64
	}
	return 40
}

// Tags of the dynamic section.
const (
	dtNeeded   = 1
	dtHash     = 4
	dtStrtab   = 5
	dtSymtab   = 6
	dtStrsz    = 10
	dtSoname   = 14
	dtRPath    = 15
	dtRunPath  = 29
	dtGNUHash  = 0x6ffffef5
	dtVersym   = 0x6ffffff0
	dtFlags1   = 0x6ffffffb
	dtVerdef   = 0x6ffffffc
	dtVerdefN  = 0x6ffffffd
	dtVerneed  = 0x6ffffffe
	dtVerneedN = 0x6fffffff

	df1NoDefLib = 0x800

	ptLoad    = 1
	ptDynamic = 2
	ptInterp  = 3
)

func (f *File) dynamic() error {
	var d *prog
	for i := range f.progs {
		switch p := &f.progs[i]; p.typ {
		case ptDynamic:
			d = p
		case ptInterp:
			if p.filesz > 0 && p.filesz <= maxName {
				if b, err := f.p.bytes(p.off, int(p.filesz)); err == nil {
					f.Interp, _, _ = strings.Cut(string(b), "\x00")
				}
			}
		}
	}
	if d == nil {
		return nil
	}
	ent := 8
	if f.Class64 {
		ent = 16
	}
	n := min(d.filesz/uint64(ent), maxDyn)
	b, err := f.p.bytes(d.off, int(n)*ent)
	if err != nil {
		return err
	}
	f.Dynamic = true
	var needed []uint64
	var soname, rpath, runpath uint64
	var hasSoname, hasRPath, hasRunPath bool
loop:
	for ; len(b) > 0; b = b[ent:] {
		tag, val := f.word(b), f.word(b[ent/2:])
		switch tag {
		case 0:
			break loop
		case dtNeeded:
			if len(needed) < maxNeeded {
				needed = append(needed, val)
			}
		case dtSoname:
			soname, hasSoname = val, true
		case dtRPath:
			rpath, hasRPath = val, true
		case dtRunPath:
			runpath, hasRunPath = val, true
		case dtFlags1:
			f.NoDef = val&df1NoDefLib != 0
		case dtHash:
			f.dyn.hash = val
		case dtGNUHash:
			f.dyn.gnuHash = val
		case dtStrtab:
			f.dyn.strtab = val
		case dtStrsz:
			f.dyn.strsz = val
		case dtSymtab:
			f.dyn.symtab = val
		case dtVersym:
			f.dyn.versym = val
		case dtVerneed:
			f.dyn.verneed = val
		case dtVerneedN:
			f.dyn.verneedN = val
		case dtVerdef:
			f.dyn.verdef = val
		case dtVerdefN:
			f.dyn.vN = val
		}
	}
	str := func(off uint64, what string) (string, error) {
		s, err := f.dynString(off)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		return s, nil
	}
	for _, off := range needed {
		s, err := str(off, "NEEDED")
		if err != nil {
			return err
		}
		f.Needed = append(f.Needed, s)
	}
	if hasSoname {
		if f.Soname, err = str(soname, "SONAME"); err != nil {
			return err
		}
	}
	switch {
	case hasRunPath:
		s, err := str(runpath, "RUNPATH")
		if err != nil {
			return err
		}
		f.RunPath = strings.Split(s, ":")
	case hasRPath:
		s, err := str(rpath, "RPATH")
		if err != nil {
			return err
		}
		f.RPath = strings.Split(s, ":")
	}
	return nil
}

// word reads an address-sized number.
func (f *File) word(b []byte) uint64 {
	if f.Class64 {
		return f.Order.Uint64(b)
	}
	return uint64(f.Order.Uint32(b))
}

// offset turns a virtual address into an offset and tells how many bytes of
// the file follow in the same segment.
func (f *File) offset(vaddr uint64) (off int64, rest int64, err error) {
	for _, p := range f.progs {
		if p.typ != ptLoad || vaddr < p.vaddr || vaddr-p.vaddr >= p.filesz || p.off < 0 || p.off > f.p.size {
			continue
		}
		d := vaddr - p.vaddr
		if d > uint64(f.p.size-p.off) {
			return 0, 0, errRange
		}
		off = p.off + int64(d)
		rest = f.p.size - off
		if left := p.filesz - d; left < uint64(rest) {
			rest = int64(left)
		}
		return off, rest, nil
	}
	return 0, 0, fmt.Errorf("address %#x is in no segment", vaddr)
}

// at returns n bytes at a virtual address.
func (f *File) at(vaddr uint64, n int) ([]byte, error) {
	off, rest, err := f.offset(vaddr)
	if err != nil {
		return nil, err
	}
	if int64(n) > rest {
		return nil, errRange
	}
	return f.p.bytes(off, n)
}

// dynString returns a string of the dynamic string table.
func (f *File) dynString(idx uint64) (string, error) {
	if idx >= f.dyn.strsz || f.dyn.strtab == 0 {
		return "", errRange
	}
	off, rest, err := f.offset(f.dyn.strtab + idx)
	if err != nil {
		return "", err
	}
	return f.cString(off, min(rest, int64(f.dyn.strsz-idx), maxName))
}

// cString reads a string that ends with a zero byte within limit bytes.
func (f *File) cString(off, limit int64) (string, error) {
	var s []byte
	for limit > 0 {
		// To the end of the page, which costs nothing more.
		n := min(limit, pageSize-off&(pageSize-1))
		b, err := f.p.bytes(off, int(n))
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			if s == nil {
				return string(b[:i]), nil
			}
			return string(append(s, b[:i]...)), nil
		}
		s = append(s, b...)
		off, limit = off+n, limit-n
	}
	return "", errors.New("string without end")
}
