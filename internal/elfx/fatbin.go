package elfx

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sizes and numbers of NVIDIA's fat binaries, from fatbinary_section.h and
// fatBinaryHeader in the CUDA toolkit.
const (
	fatMagic   = 0xBA55ED50
	fatHeader  = 16
	entryMin   = 32
	kindPTX    = 1
	kindELF    = 2
	maxEntries = 64
	maxPad     = 512 // steps of 8 bytes
)

// FatArchs returns the architectures (sm_80, compute_90) of the first maxBins
// fat binaries of a section such as .nv_fatbin. Kernels for one architecture
// only are common, so a single fat binary does not tell what a build supports:
// callers look at several. Headers only are read, one page each.
func (f *File) FatArchs(s Section, maxBins int) ([]string, error) {
	seen := make(map[string]bool)
	off, end := s.Off, s.Off+s.Size
	for bins, pad := 0, 0; bins < maxBins && end-off >= fatHeader; {
		b, err := f.p.bytes(off, fatHeader)
		if err != nil {
			return nil, err
		}
		if f.Order.Uint32(b) == 0 && pad < maxPad { // padding between fat binaries
			off, pad = off+8, pad+1
			continue
		}
		bins, pad = bins+1, 0
		if f.Order.Uint32(b) != fatMagic {
			return nil, fmt.Errorf("no fat binary at offset %#x", off)
		}
		hdr, size := int64(f.Order.Uint16(b[6:])), f.Order.Uint64(b[8:])
		if hdr < fatHeader || size > uint64(end-off-hdr) {
			return nil, errRange
		}
		e, next := off+hdr, off+hdr+int64(size)
		for n := 0; n < maxEntries && next-e >= entryMin; n++ {
			b, err := f.p.bytes(e, entryMin)
			if err != nil {
				return nil, err
			}
			kind, eh, es, arch := f.Order.Uint16(b), int64(f.Order.Uint32(b[4:])), f.Order.Uint64(b[8:]), f.Order.Uint32(b[28:])
			if eh < entryMin || es > uint64(end) || arch > 10000 {
				return nil, fmt.Errorf("damaged fat binary at offset %#x", off)
			}
			switch kind {
			case kindELF:
				seen[fmt.Sprintf("sm_%d", arch)] = true
			case kindPTX:
				seen[fmt.Sprintf("compute_%d", arch)] = true
			}
			e += eh + int64(es)
		}
		off = (next + 7) &^ 7
	}
	return slices.SortedFunc(maps.Keys(seen), compareArch), nil
}

// compareArch orders as torch.cuda.get_arch_list does: sm before compute, then by number.
func compareArch(a, b string) int {
	ak, an, _ := strings.Cut(a, "_")
	bk, bn, _ := strings.Cut(b, "_")
	return cmp.Or(cmp.Compare(bk, ak), cmp.Compare(len(an), len(bn)), cmp.Compare(an, bn))
}
