package elfx

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Limits of walks over symbols.
const (
	maxSymbols = 400_000
	maxChain   = 65_536   // steps in one hash chain
	maxNames   = 64 << 20 // bytes of names in one walk: many symbols can share one long name
)

// Symbol is one dynamic symbol.
type Symbol struct {
	Name    string
	Defined bool
	Weak    bool   // an undefined weak symbol need not be there
	Value   uint64 // virtual address of a defined symbol
	Size    uint64
	// Version is the symbol version ("GLIBC_2.34", "libnvJitLink.so.12"); "" without one.
	Version string
	// File is the library that must provide the version of an undefined symbol.
	File string
}

type rawSym struct {
	name  uint64
	info  byte
	shndx uint16
	value uint64
	size  uint64
	index int
}

func (f *File) symSize() int {
	if f.Class64 {
		return 24
	}
	return 16
}

func (f *File) parseSym(b []byte) rawSym {
	o := f.Order
	if f.Class64 {
		return rawSym{name: uint64(o.Uint32(b)), info: b[4], shndx: o.Uint16(b[6:]), value: o.Uint64(b[8:]), size: o.Uint64(b[16:])}
	}
	return rawSym{name: uint64(o.Uint32(b)), value: uint64(o.Uint32(b[4:])), size: uint64(o.Uint32(b[8:])), info: b[12], shndx: o.Uint16(b[14:])}
}

func (f *File) sym(i uint64) (rawSym, error) {
	b, err := f.at(f.dyn.symtab+i*uint64(f.symSize()), f.symSize())
	if err != nil {
		return rawSym{}, err
	}
	s := f.parseSym(b)
	s.index = int(i)
	return s, nil
}

func (f *File) u32(vaddr uint64) (uint32, error) {
	b, err := f.at(vaddr, 4)
	if err != nil {
		return 0, err
	}
	return f.Order.Uint32(b), nil
}

// ErrNoHash means that the file has no hash table of its dynamic symbols.
var ErrNoHash = errors.New("no symbol hash table")

// Lookup finds a defined dynamic symbol by its exact name through the hash
// tables: a handful of pages, whatever the size of the file. The second value
// is false when the file does not define it.
func (f *File) Lookup(name string) (Symbol, bool, error) {
	var s rawSym
	var ok bool
	var err error
	switch {
	case f.dyn.gnuHash != 0:
		s, ok, err = f.lookupGNU(name)
	case f.dyn.hash != 0:
		s, ok, err = f.lookupSysV(name)
	default:
		return Symbol{}, false, ErrNoHash
	}
	if err != nil {
		return Symbol{}, false, fmt.Errorf("symbol hash table: %w", err)
	}
	if !ok {
		return Symbol{}, false, nil
	}
	sym := Symbol{Name: name, Defined: true, Weak: s.info>>4 == 2, Value: s.value, Size: s.size}
	sym.Version, _ = f.version(s.index)
	return sym, true, nil
}

// HasAny reports the first of the names that the file defines, "" when none is.
func (f *File) HasAny(names ...string) (string, error) {
	for _, n := range names {
		_, ok, err := f.Lookup(n)
		if err != nil {
			return "", err
		}
		if ok {
			return n, nil
		}
	}
	return "", nil
}

// gnuHeader returns the four numbers at the start of the GNU hash table.
func (f *File) gnuHeader() (nbuckets, symoffset, bloomSize, bloomShift uint32, err error) {
	b, err := f.at(f.dyn.gnuHash, 16)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	o := f.Order
	return o.Uint32(b), o.Uint32(b[4:]), o.Uint32(b[8:]), o.Uint32(b[12:]), nil
}

func gnuHash(s string) uint32 {
	h := uint32(5381)
	for i := range len(s) {
		h = h*33 + uint32(s[i])
	}
	return h
}

func (f *File) lookupGNU(name string) (rawSym, bool, error) {
	nb, symoff, bloomN, shift, err := f.gnuHeader()
	if err != nil {
		return rawSym{}, false, err
	}
	if nb == 0 {
		return rawSym{}, false, nil
	}
	if bloomN == 0 || bloomN > 1<<24 || nb > 1<<26 {
		return rawSym{}, false, errors.New("impossible size")
	}
	ws := uint64(4)
	if f.Class64 {
		ws = 8
	}
	bits := uint32(ws * 8)
	h := gnuHash(name)
	bloom := f.dyn.gnuHash + 16
	b, err := f.at(bloom+ws*uint64(h/bits%bloomN), int(ws))
	if err != nil {
		return rawSym{}, false, err
	}
	w := f.word(b)
	if shift > 31 || w>>(h%bits)&1 == 0 || w>>((h>>shift)%bits)&1 == 0 {
		if shift > 31 {
			return rawSym{}, false, errors.New("impossible shift")
		}
		return rawSym{}, false, nil
	}
	buckets := bloom + ws*uint64(bloomN)
	i, err := f.u32(buckets + 4*uint64(h%nb))
	if err != nil || i == 0 {
		return rawSym{}, false, err
	}
	if i < symoff {
		return rawSym{}, false, errors.New("bucket before the first symbol")
	}
	chain := buckets + 4*uint64(nb)
	for range maxChain {
		c, err := f.u32(chain + 4*uint64(i-symoff))
		if err != nil {
			return rawSym{}, false, err
		}
		if c|1 == h|1 {
			s, ok, err := f.matches(uint64(i), name)
			if err != nil || ok {
				return s, ok, err
			}
		}
		if c&1 != 0 {
			return rawSym{}, false, nil
		}
		i++
	}
	return rawSym{}, false, errors.New("chain without end")
}

func sysvHash(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = h<<4 + uint32(s[i])
		h ^= h >> 24 & 0xf0
	}
	return h & 0x0fffffff
}

func (f *File) lookupSysV(name string) (rawSym, bool, error) {
	b, err := f.at(f.dyn.hash, 8)
	if err != nil {
		return rawSym{}, false, err
	}
	nb, nc := f.Order.Uint32(b), f.Order.Uint32(b[4:])
	if nb == 0 {
		return rawSym{}, false, nil
	}
	i, err := f.u32(f.dyn.hash + 8 + 4*uint64(sysvHash(name)%nb))
	if err != nil {
		return rawSym{}, false, err
	}
	for range maxChain {
		if i == 0 || i >= nc {
			return rawSym{}, false, nil
		}
		s, ok, err := f.matches(uint64(i), name)
		if err != nil || ok {
			return s, ok, err
		}
		if i, err = f.u32(f.dyn.hash + 8 + 4*(uint64(nb)+uint64(i))); err != nil {
			return rawSym{}, false, err
		}
	}
	return rawSym{}, false, errors.New("chain without end")
}

// matches reports whether symbol i is defined and has the name.
func (f *File) matches(i uint64, name string) (rawSym, bool, error) {
	s, err := f.sym(i)
	if err != nil || s.shndx == 0 {
		return s, false, err
	}
	if s.name+uint64(len(name)) >= f.dyn.strsz {
		return s, false, nil
	}
	b, err := f.at(f.dyn.strtab+s.name, len(name)+1)
	if err != nil {
		return s, false, err
	}
	return s, string(b[:len(name)]) == name && b[len(name)] == 0, nil
}

// Undefined calls yield for the undefined dynamic symbols of the file, those
// that other libraries must provide, until yield returns false. The order is
// that of the string table, which keeps reads close together. Names are read
// one page at a time: about 1.5 MB for libtorch_cuda.so.
func (f *File) Undefined(yield func(Symbol) bool) error {
	return f.walk(false, yield)
}

// Exported calls yield for the defined dynamic symbols. It reads the whole
// symbol and string table: only for small libraries, see SymbolCount.
func (f *File) Exported(yield func(Symbol) bool) error {
	return f.walk(true, yield)
}

func (f *File) walk(defined bool, yield func(Symbol) bool) error {
	first, last, err := f.symRange(defined)
	if err != nil {
		return err
	}
	syms, err := f.symbols(first, last)
	if err != nil {
		return err
	}
	syms = slices.DeleteFunc(syms, func(s rawSym) bool { return (s.shndx != 0) != defined || s.name == 0 })
	slices.SortFunc(syms, func(a, b rawSym) int { return cmp.Compare(a.name, b.name) })
	total := 0
	for _, s := range syms {
		name, err := f.dynString(s.name)
		if err != nil {
			return err
		}
		if total += len(name); total > maxNames {
			return errors.New("names of symbols are too long")
		}
		out := Symbol{Name: name, Defined: defined, Weak: s.info>>4 == 2, Value: s.value, Size: s.size}
		if out.Version, out.File = f.version(s.index); !yield(out) {
			return nil
		}
	}
	return nil
}

// symRange returns the range of symbols that may be undefined, or all of them.
// The GNU hash table holds the defined ones only, and its symbols come last.
func (f *File) symRange(defined bool) (first, last int, err error) {
	if f.dyn.gnuHash != 0 {
		_, symoff, _, _, err := f.gnuHeader()
		if err != nil {
			return 0, 0, err
		}
		if symoff > maxSymbols {
			return 0, 0, fmt.Errorf("%d undefined symbols", symoff)
		}
		if !defined {
			return 1, int(symoff), nil
		}
		n, err := f.SymbolCount()
		return int(symoff), n, err
	}
	n, err := f.SymbolCount()
	return 1, n, err
}

// SymbolCount returns the number of dynamic symbols, defined and undefined.
func (f *File) SymbolCount() (int, error) {
	n := uint64(0)
	switch {
	case f.dyn.hash != 0:
		b, err := f.at(f.dyn.hash, 8)
		if err != nil {
			return 0, err
		}
		n = uint64(f.Order.Uint32(b[4:]))
	case f.dyn.gnuHash != 0:
		if s, ok, err := f.sectionOfType(shtDynsym); err == nil && ok {
			n = uint64(s.Size) / uint64(f.symSize())
			break
		}
		c, err := f.countGNU()
		if err != nil {
			return 0, err
		}
		n = c
	default:
		return 0, ErrNoHash
	}
	if n > maxSymbols {
		return 0, fmt.Errorf("%d dynamic symbols", n)
	}
	return int(n), nil
}

// countGNU follows the chain of the highest bucket to its end.
func (f *File) countGNU() (uint64, error) {
	nb, symoff, bloomN, _, err := f.gnuHeader()
	if err != nil {
		return 0, err
	}
	ws := uint64(4)
	if f.Class64 {
		ws = 8
	}
	if nb > maxSymbols || bloomN > 1<<24 {
		return 0, errors.New("impossible size of the hash table")
	}
	buckets := f.dyn.gnuHash + 16 + ws*uint64(bloomN)
	var top uint32
	for i := range uint64(nb) {
		b, err := f.u32(buckets + 4*i)
		if err != nil {
			return 0, err
		}
		top = max(top, b)
	}
	if top < symoff {
		return uint64(symoff), nil
	}
	for range maxChain {
		c, err := f.u32(buckets + 4*uint64(nb) + 4*uint64(top-symoff))
		if err != nil {
			return 0, err
		}
		top++
		if c&1 != 0 {
			return uint64(top), nil
		}
	}
	return 0, errors.New("chain without end")
}

// symbols reads the symbols [first, last).
func (f *File) symbols(first, last int) ([]rawSym, error) {
	if first >= last {
		return nil, nil
	}
	sz := f.symSize()
	off, rest, err := f.offset(f.dyn.symtab + uint64(first)*uint64(sz))
	if err != nil {
		return nil, err
	}
	n := (last - first) * sz
	if int64(n) > rest {
		return nil, errRange
	}
	out := make([]rawSym, 0, last-first)
	buf := make([]byte, min(n, 64*1024/sz*sz))
	for i := first; i < last; {
		b := buf[:min(len(buf), (last-i)*sz)]
		if err := f.p.readAt(b, off); err != nil {
			return nil, err
		}
		off += int64(len(b))
		for ; len(b) > 0; b = b[sz:] {
			s := f.parseSym(b)
			s.index = i
			out = append(out, s)
			i++
		}
	}
	return out, nil
}
