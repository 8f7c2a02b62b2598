package spool

import (
	"encoding/binary"
	"sort"
)

// Span is a range of offsets, without the end.
type Span struct{ From, To int64 }

// What says for what a file is kept.
type What uint8

const (
	All     What = iota // the whole file, up to a limit
	Symbols             // symbols, versions and texts of a library
	Loader              // what the dynamic loader reads of a library or program
)

// Limits on what is kept of one library. The real ones stay below: the longest
// string table of a torch library has 11 MB, its read-only first segment 15 MB.
const (
	Whole    = 96 << 20 // files up to this size are kept as they are; libtorch_python has up to 50 MB
	headMax  = 24 << 20 // of a first segment without code
	headCode = 6 << 20  // of a first segment with code, and of longer ones without: NCCL's texts lie within
	segMax   = 24 << 20 // of any other segment without code
	tailKeep = 64 << 10 // section names and headers
	headerN  = 16 << 10

	loaderWhole = 512 << 10 // the same for What Loader
	loaderHead  = 1 << 20
	loaderSeg   = 512 << 10
)

// ELFSpans says which parts of a long ELF file are worth keeping, by the first
// bytes of it: what a look at symbols, versions and needed libraries reads. It is nil
// for a file that is no 64-bit little-endian ELF file.
//
// The tools that repair wheels move the string table and the hash table into
// new segments at the end and leave the symbol table at the beginning, so both
// ends are needed and the gigabyte between is not.
func ELFSpans(head []byte, size int64, what What) []Span {
	if len(head) < 64 || string(head[:6]) != "\x7fELF\x02\x01" {
		return nil
	}
	maxHead, maxCode, maxSeg := int64(headMax), int64(headCode), int64(segMax)
	if what == Loader {
		maxHead, maxCode, maxSeg = loaderHead, loaderHead/2, loaderSeg
	}
	le := binary.LittleEndian
	phoff, shoff := le.Uint64(head[32:]), le.Uint64(head[40:])
	phent, phnum := int(le.Uint16(head[54:])), int(le.Uint16(head[56:]))
	shnum := int64(le.Uint16(head[60:]))
	var out []Span
	add := func(from, n int64) {
		if from >= 0 && n > 0 && from < size {
			out = append(out, Span{from, min(from+n, size)})
		}
	}
	add(0, headerN)
	if shoff < uint64(size) {
		from := max(int64(shoff)-tailKeep, 0)          // their names, unless something was put behind
		add(from, int64(shoff)-from+shnum*64+tailKeep) // what reads them reads ahead
	}
	add(size-min(size, tailKeep), tailKeep)
	if phoff >= uint64(len(head)) && phoff < uint64(size) { // moved too: the segments are not known yet
		add(0, maxHead)
		// BOLT puts them behind the last segment of the original file, which is the writable
		// one with the dynamic section, and the strings of that at the end.
		from := max(0, int64(phoff)-maxSeg)
		add(from, int64(phoff)-from+headerN)
		add(size-min(size, maxSeg), maxSeg)
	} else if phent == 56 && phoff < uint64(len(head)) {
		first := true
		for i := 0; i < phnum && int(phoff)+(i+1)*56 <= len(head); i++ {
			p := head[int(phoff)+i*56:]
			typ, flags := le.Uint32(p), le.Uint32(p[4:])
			off, n := int64(le.Uint64(p[8:])), int64(le.Uint64(p[32:]))
			const load, dynamic, exec = 1, 2, 1
			switch {
			case off < 0 || n < 0 || off > size:
			case typ == dynamic:
				add(off, min(n, 1<<20))
			case typ == load && first:
				if first = false; flags&exec != 0 {
					n = min(n, maxCode)
				}
				add(off, min(n, maxHead))
			case typ == load && flags&exec == 0 && n <= maxSeg:
				add(off, n)
			case typ == load && flags&exec == 0: // constants, before fat binaries
				add(off, maxCode)
			}
		}
	}
	return merge(out)
}

// Keep says which parts of a file are kept, by its first bytes.
func Keep(head []byte, size int64, what What) []Span {
	if what != Loader && size <= Whole || size <= loaderWhole {
		return []Span{{0, size}}
	}
	if what != All {
		if s := ELFSpans(head, size, what); s != nil {
			return s
		}
	}
	return []Span{{0, min(size, headCode)}}
}

// merge sorts spans and joins those that touch.
func merge(in []Span) []Span {
	sort.Slice(in, func(i, j int) bool { return in[i].From < in[j].From })
	var out []Span
	for _, s := range in {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}
