package ldso

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ncclinic/ncclinic/internal/elfx"
)

// Limits of /etc/ld.so.cache; the file of a large system has 300 KB.
const (
	maxCacheSize    = 16 << 20
	maxCacheEntries = 200_000
	maxCacheString  = 4096
)

// Layout of the cache, from glibc's sysdeps/generic/dl-cache.h: the old format
// may stand alone or be followed by the new one; a system since glibc 2.32
// writes the new one alone.
const (
	oldMagic     = "ld.so-1.7.0"
	newMagic     = "glibc-ld.so.cache1.1"
	newHeader    = 48
	newEntry     = 24
	oldHeader    = 16
	oldEntry     = 12
	extMagic     = 0xeaa42174
	extHWCaps    = 1
	hwcapExtFlag = 1 << 62
)

// Cache is a parsed /etc/ld.so.cache. Its strings stay where they are in the
// file: of some hundred entries a dozen are asked for.
type Cache struct {
	strs    []byte
	entries []cacheEntry
}

type cacheEntry struct {
	name, path uint32 // offsets of strings
	flags      uint32
	hwcaps     string // subdirectory of glibc-hwcaps; "" for the plain file
	legacy     bool   // chosen by old hardware capability bits
}

// ParseCache reads a cache in the old or the new format.
func ParseCache(b []byte) (*Cache, error) {
	if len(b) > maxCacheSize {
		return nil, fmt.Errorf("ld.so.cache of %d bytes", len(b))
	}
	if bytes.HasPrefix(b, []byte(newMagic)) {
		return parseNew(b)
	}
	if !bytes.HasPrefix(b, []byte(oldMagic)) {
		return nil, errors.New("not an ld.so.cache")
	}
	if len(b) < oldHeader {
		return nil, errors.New("ld.so.cache is cut short")
	}
	o := binary.NativeEndian
	n := uint64(o.Uint32(b[12:]))
	end := oldHeader + n*oldEntry
	if n > maxCacheEntries || end > uint64(len(b)) {
		return nil, fmt.Errorf("ld.so.cache with %d entries in %d bytes", n, len(b))
	}
	// The new format starts at the next multiple of 8.
	if at := (end + 7) &^ 7; at < uint64(len(b)) && bytes.HasPrefix(b[at:], []byte(newMagic)) {
		return parseNew(b[at:])
	}
	c := &Cache{strs: b[end:], entries: make([]cacheEntry, 0, n)}
	for e := b[oldHeader:end]; len(e) > 0; e = e[oldEntry:] {
		c.add(o.Uint32(e), o.Uint32(e[4:]), o.Uint32(e[8:]), "", false)
	}
	return c, nil
}

func parseNew(b []byte) (*Cache, error) {
	if len(b) < newHeader {
		return nil, errors.New("ld.so.cache is cut short")
	}
	// Byte 28 holds the byte order since glibc 2.33: 2 little, 3 big; 0 before that.
	o := binary.ByteOrder(binary.LittleEndian)
	if b[28]&3 == 3 {
		o = binary.BigEndian
	}
	n := uint64(o.Uint32(b[20:]))
	end := newHeader + n*newEntry
	if n > maxCacheEntries || end > uint64(len(b)) {
		return nil, fmt.Errorf("ld.so.cache with %d entries in %d bytes", n, len(b))
	}
	caps := hwcapNames(b, o)
	c := &Cache{strs: b, entries: make([]cacheEntry, 0, n)}
	for e := b[newHeader:end]; len(e) > 0; e = e[newEntry:] {
		hw := o.Uint64(e[16:])
		sub, legacy := "", false
		if hw&hwcapExtFlag != 0 {
			i := uint32(hw)
			if int(i) >= len(caps) {
				continue
			}
			sub = caps[i]
		} else {
			legacy = hw != 0
		}
		c.add(o.Uint32(e), o.Uint32(e[4:]), o.Uint32(e[8:]), sub, legacy)
	}
	return c, nil
}

// hwcapNames reads the extension that lists subdirectories of glibc-hwcaps.
func hwcapNames(b []byte, o binary.ByteOrder) []string {
	ext := uint64(o.Uint32(b[32:]))
	if ext < newHeader || ext+8 > uint64(len(b)) || o.Uint32(b[ext:]) != extMagic {
		return nil
	}
	n := min(o.Uint32(b[ext+4:]), 16)
	var out []string
	for i := range uint64(n) {
		at := ext + 8 + i*16
		if at+16 > uint64(len(b)) {
			break
		}
		off, size := uint64(o.Uint32(b[at+8:])), uint64(o.Uint32(b[at+12:]))
		if o.Uint32(b[at:]) != extHWCaps || off+size > uint64(len(b)) || size > 4*64 {
			continue
		}
		for s := b[off : off+size]; len(s) >= 4; s = s[4:] {
			name, _ := cString(b, o.Uint32(s))
			out = append(out, name)
		}
	}
	return out
}

func cString(b []byte, off uint32) (string, bool) {
	if uint64(off) >= uint64(len(b)) {
		return "", false
	}
	s := b[off:]
	s = s[:min(len(s), maxCacheString)]
	i := bytes.IndexByte(s, 0)
	if i < 0 {
		return "", false
	}
	return string(s[:i]), true
}

// add takes an entry; one with strings outside of the file is left out.
func (c *Cache) add(flags, key, value uint32, hwcaps string, legacy bool) {
	if n := uint64(len(c.strs)); uint64(key) < n && uint64(value) < n {
		c.entries = append(c.entries, cacheEntry{key, value, flags, hwcaps, legacy})
	}
}

// named reports whether the string at an offset, which is in the file, is name.
func (c *Cache) named(off uint32, name string) bool {
	s := c.strs[off:]
	return len(s) > len(name) && s[len(name)] == 0 && string(s[:len(name)]) == name
}

// Len returns the number of entries.
func (c *Cache) Len() int { return len(c.entries) }

// flagsOf returns what the loader of an architecture accepts in the flags of
// an entry: the type in the low byte (1 libc5 era, 3 glibc) and the ABI above.
func flagsOf(machine uint16, class64 bool) uint32 {
	const libc6 = 3
	switch machine {
	case elfx.X86_64:
		if !class64 {
			return 0x0800 | libc6 // x32
		}
		return 0x0300 | libc6
	case elfx.AArch64:
		return 0x0a00 | libc6
	case elfx.PPC64:
		return 0x0500 | libc6
	case elfx.RISCV:
		return 0x1000 | libc6 // double float ABI
	}
	return libc6
}

// Lookup returns the path that the cache has for a soname: the best of the
// given glibc-hwcaps levels (best first), else the plain entry.
func (c *Cache) Lookup(soname string, machine uint16, class64 bool, levels []string) (string, bool) {
	want := flagsOf(machine, class64)
	best, plain := -1, ""
	path := ""
	for _, e := range c.entries {
		if e.flags != want || e.legacy || soname == "" || !c.named(e.name, soname) {
			continue
		}
		file, ok := cString(c.strs, e.path)
		if !ok || file == "" {
			continue
		}
		if e.hwcaps == "" {
			if plain == "" {
				plain = file
			}
			continue
		}
		for i, l := range levels {
			if l == e.hwcaps && (best < 0 || i < best) {
				best, path = i, file
			}
		}
	}
	if best >= 0 {
		return path, true
	}
	return plain, plain != ""
}
