package elfx

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	shtNoBits = 8
	shtDynsym = 11
)

// Section is a named range of the file.
type Section struct {
	Name string
	Addr uint64
	Off  int64
	Size int64

	typ     uint32
	nameOff uint32
}

// Section finds a section by name. Stripped files may have no section headers:
// then the second value is false.
func (f *File) Section(name string) (Section, bool, error) {
	if f.shnum == 0 || f.shstr >= f.shnum {
		return Section{}, false, nil
	}
	tab, err := f.section(f.shstr)
	if err != nil {
		return Section{}, false, err
	}
	for i := range f.shnum {
		s, err := f.section(i)
		if err != nil {
			return Section{}, false, err
		}
		if s.typ == shtNoBits || int64(s.nameOff)+int64(len(name)) >= tab.Size {
			continue
		}
		b, err := f.p.bytes(tab.Off+int64(s.nameOff), len(name)+1)
		if err != nil {
			return Section{}, false, err
		}
		if string(b[:len(name)]) == name && b[len(name)] == 0 {
			s.Name = name
			return s, true, nil
		}
	}
	return Section{}, false, nil
}

func (f *File) sectionOfType(typ uint32) (Section, bool, error) {
	for i := range f.shnum {
		s, err := f.section(i)
		if err != nil {
			return Section{}, false, err
		}
		if s.typ == typ {
			return s, true, nil
		}
	}
	return Section{}, false, nil
}

func (f *File) section(i int) (Section, error) {
	n := f.shentSize()
	b, err := f.p.bytes(f.shoff+int64(i*n), n)
	if err != nil {
		return Section{}, fmt.Errorf("section headers: %w", err)
	}
	o := f.Order
	s := Section{nameOff: o.Uint32(b), typ: o.Uint32(b[4:])}
	if f.Class64 {
		s.Addr, s.Off, s.Size = o.Uint64(b[16:]), int64(o.Uint64(b[24:])), int64(o.Uint64(b[32:]))
	} else {
		s.Addr, s.Off, s.Size = uint64(o.Uint32(b[12:])), int64(o.Uint32(b[16:])), int64(o.Uint32(b[20:]))
	}
	if s.typ != shtNoBits && (s.Off < 0 || s.Size < 0 || s.Off > f.p.size || s.Size > f.p.size-s.Off) {
		return Section{}, fmt.Errorf("section %d: %w", i, errRange)
	}
	return s, nil
}

// DynStr returns the dynamic string table as a range of the file.
func (f *File) DynStr() (Section, error) {
	if f.dyn.strtab == 0 {
		return Section{}, errors.New("no dynamic string table")
	}
	off, rest, err := f.offset(f.dyn.strtab)
	if err != nil {
		return Section{}, err
	}
	if f.dyn.strsz > uint64(rest) {
		return Section{}, errRange
	}
	return Section{Name: ".dynstr", Addr: f.dyn.strtab, Off: off, Size: int64(f.dyn.strsz)}, nil
}

// Bytes returns n bytes of the file at an offset; n is at most 64 KiB. The
// slice is only valid until the next call.
func (f *File) Bytes(off int64, n int) ([]byte, error) {
	if n > 64<<10 {
		return nil, errRange
	}
	return f.p.bytes(off, n)
}

// BytesAt is Bytes for a virtual address.
func (f *File) BytesAt(vaddr uint64, n int) ([]byte, error) {
	if n > 64<<10 {
		return nil, errRange
	}
	return f.at(vaddr, n)
}

const scanChunk = 128 << 10

// Scan reads a range in chunks and calls fn with each; keep bytes of a chunk
// are given again at the start of the next, so that what is looked for is
// never cut as long as it is not longer than that. It stops when fn returns
// false, and after limit bytes: then it returns ErrBudget, for the rest is unknown.
func (f *File) Scan(s Section, limit int64, keep int, fn func(chunk []byte) bool) error {
	buf := make([]byte, 0, scanChunk+keep)
	for done := int64(0); done < s.Size; {
		if done >= limit {
			return ErrBudget
		}
		if len(buf) > keep {
			buf = buf[:copy(buf, buf[len(buf)-keep:])]
		}
		n := int(min(scanChunk, s.Size-done, limit-done))
		at := len(buf)
		buf = buf[:at+n]
		if err := f.p.readAt(buf[at:], s.Off+done); err != nil {
			return err
		}
		done += int64(n)
		if !fn(buf) {
			return nil
		}
	}
	return nil
}

// Contains reports whether the range holds one of the needles.
func (f *File) Contains(s Section, limit int64, needles ...string) (string, error) {
	keep := 0
	for _, n := range needles {
		keep = max(keep, len(n)-1)
	}
	hit := ""
	err := f.Scan(s, limit, max(keep, 0), func(b []byte) bool {
		for _, n := range needles {
			if bytes.Contains(b, []byte(n)) {
				hit = n
				return false
			}
		}
		return true
	})
	return hit, err
}
