// Package elftest builds small ELF libraries for tests: real enough that
// glibc's loader maps them and resolves their dependencies.
package elftest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// Lib describes a shared library (or, with Interp, an executable). The zero
// value is an x86_64 library without name or symbols.
type Lib struct {
	Machine   uint16 // ELF machine number; 0: x86_64 (62)
	Class32   bool
	BigEndian bool

	Soname  string
	Needed  []string
	RPath   string // DT_RPATH
	RunPath string // DT_RUNPATH
	Interp  string // PT_INTERP
	NoDef   bool   // DF_1_NODEFLIB

	// Defined are exported symbols: "name" or "name@VERSION".
	Defined []string
	// Undefined are needed symbols: "name", or "name@VERSION/libneeded.so.1".
	Undefined []string
	// Versions are versions that the library defines beyond those of Defined.
	Versions []string

	Sections []Section // further sections with contents

	NoGNUHash  bool // write only DT_HASH
	NoSysVHash bool // write only DT_GNU_HASH
	NoSections bool // no section headers
}

// Section is a section with contents, such as .rodata.
type Section struct {
	Name string
	Data []byte
}

// base is the virtual address of offset 0: not zero, so that an address is never mistaken for an offset.
const base = 0x10000

type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

type builder struct {
	Lib
	o    order
	buf  bytes.Buffer
	strs []byte
	sidx map[string]uint32
	secs []sec
}

type sec struct {
	name       string
	typ, flags uint32
	off, size  int
	link, info uint32
	align, ent int
}

func (b *builder) str(s string) uint32 {
	if i, ok := b.sidx[s]; ok {
		return i
	}
	i := uint32(len(b.strs))
	b.strs = append(append(b.strs, s...), 0)
	b.sidx[s] = i
	return i
}

func (b *builder) word() int {
	if b.Class32 {
		return 4
	}
	return 8
}

func (b *builder) align(n int) int {
	for b.buf.Len()%n != 0 {
		b.buf.WriteByte(0)
	}
	return b.buf.Len()
}

func (b *builder) put(vs ...any) {
	for _, v := range vs {
		switch v := v.(type) {
		case uint16:
			b.buf.Write(b.o.AppendUint16(nil, v))
		case uint32:
			b.buf.Write(b.o.AppendUint32(nil, v))
		case uint64:
			b.buf.Write(b.o.AppendUint64(nil, v))
		case byte:
			b.buf.WriteByte(v)
		}
	}
}

// addr writes an address-sized number.
func (b *builder) addr(vs ...int) {
	for _, v := range vs {
		if b.Class32 {
			b.put(uint32(v))
		} else {
			b.put(uint64(v))
		}
	}
}

type symbol struct {
	name, version, file string
	defined             bool
}

func split(list []string, defined bool) []symbol {
	var out []symbol
	for _, s := range list {
		name, rest, _ := strings.Cut(s, "@")
		ver, file, _ := strings.Cut(strings.TrimPrefix(rest, "@"), "/")
		out = append(out, symbol{name, ver, file, defined})
	}
	return out
}

func gnuHash(s string) uint32 {
	h := uint32(5381)
	for i := range len(s) {
		h = h*33 + uint32(s[i])
	}
	return h
}

func sysvHash(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = h<<4 + uint32(s[i])
		h ^= h >> 24 & 0xf0
	}
	return h & 0x0fffffff
}

// Bytes returns the file.
func (l Lib) Bytes() []byte {
	b := &builder{Lib: l, o: order(binary.LittleEndian), sidx: map[string]uint32{"": 0}, strs: []byte{0}}
	if l.BigEndian {
		b.o = binary.BigEndian
	}
	if b.Machine == 0 {
		b.Machine = 62
	}
	ehsize, phsize, shsize := 64, 56, 64
	if l.Class32 {
		ehsize, phsize, shsize = 52, 32, 40
	}
	phnum := 3 // LOAD, DYNAMIC, GNU_STACK
	if l.Interp != "" {
		phnum++
	}
	b.buf.Write(make([]byte, ehsize+phnum*phsize))
	w := b.word()

	interpOff := 0
	if l.Interp != "" {
		interpOff = b.buf.Len()
		b.buf.WriteString(l.Interp + "\x00")
	}

	// Symbols: undefined first, then the defined ones by bucket, as GNU hash wants.
	syms := split(l.Undefined, false)
	defs := split(l.Defined, true)
	nb := uint32(max(1, len(defs)/4))
	slices.SortStableFunc(defs, func(x, y symbol) int { return int(gnuHash(x.name)%nb) - int(gnuHash(y.name)%nb) })
	symoff := len(syms) + 1
	syms = append(syms, defs...)
	for _, s := range syms {
		b.str(s.name)
	}

	// Versions: index 1 is the global one; the file's own name is version 1 by custom.
	verIdx := map[string]uint16{}
	var defVers []string
	needVers := map[string][]string{}
	var needFiles []string
	next := uint16(2)
	for _, v := range append(versionsOf(defs), l.Versions...) {
		if _, ok := verIdx[v]; !ok {
			verIdx[v] = next
			next++
			defVers = append(defVers, v)
		}
	}
	for _, s := range syms[:symoff-1] {
		key := s.version + "/" + s.file
		if s.version == "" {
			continue
		}
		if _, ok := verIdx[key]; !ok {
			verIdx[key] = next
			next++
			if needVers[s.file] == nil {
				needFiles = append(needFiles, s.file)
			}
			needVers[s.file] = append(needVers[s.file], s.version)
		}
	}
	for _, v := range defVers {
		b.str(v)
	}
	for f, vs := range needVers {
		b.str(f)
		for _, v := range vs {
			b.str(v)
		}
	}
	needed := make([]uint32, len(l.Needed))
	for i, n := range l.Needed {
		needed[i] = b.str(n)
	}
	soname, rpath, runpath := b.str(l.Soname), b.str(l.RPath), b.str(l.RunPath)

	dynsym := b.align(8)
	textAddr := base + ehsize // any address inside; nothing is ever run
	for i := range len(syms) + 1 {
		var name uint32
		var info byte
		var shndx uint16
		var val, size int
		if i > 0 {
			s := syms[i-1]
			name, info = b.str(s.name), 0x12 // global function
			if s.defined {
				shndx, val, size = 1, textAddr, 8
			}
		}
		if l.Class32 {
			b.put(name, uint32(val), uint32(size), info, byte(0), shndx)
		} else {
			b.put(name, info, byte(0), shndx, uint64(val), uint64(size))
		}
	}
	symEnd := b.buf.Len()

	var hashOff, gnuOff, gnuEnd int
	if !l.NoSysVHash {
		hashOff = b.align(8)
		n := uint32(len(syms) + 1)
		nbk := uint32(max(1, len(syms)/2))
		bucket, chain := make([]uint32, nbk), make([]uint32, n)
		for i := uint32(1); i < n; i++ {
			h := sysvHash(syms[i-1].name) % nbk
			chain[i], bucket[h] = bucket[h], i
		}
		b.put(nbk, n)
		for _, v := range append(bucket, chain...) {
			b.put(v)
		}
	}
	if !l.NoGNUHash {
		gnuOff = b.align(8)
		bits := uint32(w * 8)
		const bloomN, shift = 2, 6
		var bloom [bloomN]uint64
		buckets := make([]uint32, nb)
		chain := make([]uint32, len(defs))
		for i, s := range defs {
			h := gnuHash(s.name)
			bloom[h/bits%bloomN] |= 1<<(h%bits) | 1<<((h>>shift)%bits)
			if buckets[h%nb] == 0 {
				buckets[h%nb] = uint32(symoff + i)
			}
			chain[i] = h &^ 1
			if i+1 == len(defs) || gnuHash(defs[i+1].name)%nb != h%nb {
				chain[i] |= 1
			}
		}
		b.put(nb, uint32(symoff), uint32(bloomN), uint32(shift))
		for _, v := range bloom {
			b.addr(int(v))
		}
		for _, v := range append(buckets, chain...) {
			b.put(v)
		}
		gnuEnd = b.buf.Len()
	}

	var versym, verneed, verdef int
	if len(verIdx) > 0 {
		versym = b.align(8)
		b.put(uint16(0))
		for _, s := range syms {
			switch {
			case s.version == "":
				b.put(uint16(1))
			case s.defined:
				b.put(verIdx[s.version])
			default:
				b.put(verIdx[s.version+"/"+s.file])
			}
		}
	}
	if len(needFiles) > 0 {
		verneed = b.align(8)
		for i, f := range needFiles {
			vs := needVers[f]
			nextOff := uint32(16 + 16*len(vs))
			if i == len(needFiles)-1 {
				nextOff = 0
			}
			b.put(uint16(1), uint16(len(vs)), b.str(f), uint32(16), nextOff)
			for j, v := range vs {
				an := uint32(16)
				if j == len(vs)-1 {
					an = 0
				}
				b.put(sysvHash(v), uint16(0), verIdx[v+"/"+f], b.str(v), an)
			}
		}
	}
	if len(defVers) > 0 {
		verdef = b.align(8)
		b.verdef(1, 1, l.Soname, false) // VER_FLG_BASE
		for i, v := range defVers {
			b.verdef(0, verIdx[v], v, i == len(defVers)-1)
		}
	}

	strOff := b.align(8)
	b.buf.Write(b.strs)

	dynOff := b.align(16)
	dyn := func(tag, val int) { b.addr(tag, val) }
	for _, n := range needed {
		dyn(1, int(n))
	}
	if l.Soname != "" {
		dyn(14, int(soname))
	}
	if l.RPath != "" {
		dyn(15, int(rpath))
	}
	if l.RunPath != "" {
		dyn(29, int(runpath))
	}
	if hashOff > 0 {
		dyn(4, base+hashOff)
	}
	if gnuOff > 0 {
		dyn(0x6ffffef5, base+gnuOff)
	}
	dyn(5, base+strOff)
	dyn(6, base+dynsym)
	dyn(10, len(b.strs))
	dyn(11, (symEnd-dynsym)/(len(syms)+1))
	if l.NoDef {
		dyn(0x6ffffffb, 0x800)
	}
	if versym > 0 {
		dyn(0x6ffffff0, base+versym)
	}
	if verneed > 0 {
		dyn(0x6ffffffe, base+verneed)
		dyn(0x6fffffff, len(needFiles))
	}
	if verdef > 0 {
		dyn(0x6ffffffc, base+verdef)
		dyn(0x6ffffffd, len(defVers)+1)
	}
	dyn(0, 0)
	dynEnd := b.buf.Len()

	b.secs = []sec{{}}
	add := func(name string, typ uint32, off, end int) {
		if off > 0 {
			b.secs = append(b.secs, sec{name: name, typ: typ, flags: 2, off: off, size: end - off, align: 8})
		}
	}
	add(".dynsym", 11, dynsym, symEnd)
	add(".gnu.hash", 0x6ffffff6, gnuOff, gnuEnd)
	add(".dynstr", 3, strOff, strOff+len(b.strs))
	add(".dynamic", 6, dynOff, dynEnd)
	for _, s := range l.Sections {
		off := b.align(16)
		b.buf.Write(s.Data)
		add(s.Name, 1, off, b.buf.Len())
	}
	loadEnd := b.align(8)

	shoff, shnum, shstr := 0, 0, 0
	if !l.NoSections {
		names := []byte{0}
		shstr = len(b.secs)
		b.secs = append(b.secs, sec{name: ".shstrtab", typ: 3, align: 1})
		at := make([]uint32, len(b.secs))
		for i, s := range b.secs {
			if s.name != "" {
				at[i] = uint32(len(names))
				names = append(append(names, s.name...), 0)
			}
		}
		b.secs[shstr].off, b.secs[shstr].size = b.buf.Len(), len(names)
		b.buf.Write(names)
		shoff, shnum = b.align(8), len(b.secs)
		for i, s := range b.secs {
			b.put(at[i], s.typ)
			addr := 0
			if s.flags != 0 {
				addr = base + s.off
			}
			b.addr(int(s.flags), addr, s.off, s.size)
			b.put(s.link, s.info)
			b.addr(s.align, s.ent)
		}
	}

	// Now the headers.
	body := b.buf.Bytes()
	h := &builder{Lib: l, o: b.o}
	class, data := byte(2), byte(1)
	if l.Class32 {
		class = 1
	}
	if l.BigEndian {
		data = 2
	}
	h.buf.WriteString("\x7fELF")
	h.put(class, data, byte(1))
	h.buf.Write(make([]byte, 9))
	h.put(uint16(3), b.Machine, uint32(1))
	h.addr(0, ehsize, shoff)
	h.put(uint32(0), uint16(ehsize), uint16(phsize), uint16(phnum), uint16(shsize), uint16(shnum), uint16(shstr))
	prog := func(typ, flags uint32, off, size, align int) {
		if l.Class32 {
			h.put(typ, uint32(off), uint32(base+off), uint32(base+off), uint32(size), uint32(size), flags, uint32(align))
		} else {
			h.put(typ, flags)
			h.addr(off, base+off, base+off, size, size, align)
		}
	}
	if l.Interp != "" {
		prog(3, 4, interpOff, len(l.Interp)+1, 1)
	}
	prog(1, 6, 0, loadEnd, 0x1000)
	prog(2, 6, dynOff, dynEnd-dynOff, 8)
	prog(0x6474e551, 6, 0, 0, 16)
	copy(body, h.buf.Bytes())
	return body
}

func versionsOf(syms []symbol) []string {
	var out []string
	for _, s := range syms {
		if s.version != "" {
			out = append(out, s.version)
		}
	}
	return out
}

func (b *builder) verdef(flags, idx uint16, name string, last bool) {
	next := uint32(28)
	if last {
		next = 0
	}
	b.put(uint16(1), flags, idx, uint16(1), sysvHash(name), uint32(20), next, b.str(name), uint32(0))
}

// FatBin returns a fat binary with an entry for each architecture: sm_80 is a
// cubin, compute_90 is PTX.
func FatBin(archs ...string) []byte {
	var body []byte
	le := binary.LittleEndian
	for _, a := range archs {
		kind, num, _ := strings.Cut(a, "_")
		k := uint16(2)
		if kind == "compute" {
			k = 1
		}
		n := uint32(0)
		for _, c := range num {
			n = n*10 + uint32(c-'0')
		}
		e := make([]byte, 64+16)
		le.PutUint16(e, k)
		le.PutUint16(e[2:], 0x101)
		le.PutUint32(e[4:], 64)
		le.PutUint64(e[8:], 16)
		le.PutUint32(e[28:], n)
		body = append(body, e...)
	}
	h := make([]byte, 16)
	le.PutUint32(h, 0xBA55ED50)
	le.PutUint16(h[4:], 1)
	le.PutUint16(h[6:], 16)
	le.PutUint64(h[8:], uint64(len(body)))
	return append(h, body...)
}
