package elfx

import "fmt"

// Need is the symbol versions that a file needs from one library.
type Need struct {
	File     string   // libc.so.6
	Versions []string // GLIBC_2.14, …
}

// Needs returns the symbol versions that the file needs, by library. Versions
// that the file can do without (marked weak) are left out.
func (f *File) Needs() ([]Need, error) {
	var out []Need
	err := f.verneed(func(file, ver string, _ uint16, weak bool) {
		if weak {
			return
		}
		if len(out) == 0 || out[len(out)-1].File != file {
			out = append(out, Need{File: file})
		}
		n := &out[len(out)-1]
		n.Versions = append(n.Versions, ver)
	})
	return out, err
}

// Defines returns the symbol versions that the file defines, its own name first.
func (f *File) Defines() ([]string, error) {
	var out []string
	err := f.verdef(func(ver string, _ uint16) { out = append(out, ver) })
	return out, err
}

func (f *File) verneed(fn func(file, ver string, idx uint16, weak bool)) error {
	if f.dyn.verneed == 0 {
		return nil
	}
	o, total := f.Order, 0
	addr := f.dyn.verneed
	for range min(f.dyn.verneedN, maxVersions) {
		b, err := f.at(addr, 16)
		if err != nil {
			return fmt.Errorf("version needs: %w", err)
		}
		cnt, fileOff, aux, next := o.Uint16(b[2:]), o.Uint32(b[4:]), o.Uint32(b[8:]), o.Uint32(b[12:])
		file, err := f.dynString(uint64(fileOff))
		if err != nil {
			return fmt.Errorf("version needs: %w", err)
		}
		a := addr + uint64(aux)
		for range cnt {
			if total++; total > maxVersions {
				return fmt.Errorf("more than %d version needs", maxVersions)
			}
			b, err := f.at(a, 16)
			if err != nil {
				return fmt.Errorf("version needs: %w", err)
			}
			const flagWeak = 2 // VER_FLG_WEAK
			flags, idx, nameOff, anext := o.Uint16(b[4:]), o.Uint16(b[6:]), o.Uint32(b[8:]), o.Uint32(b[12:])
			ver, err := f.dynString(uint64(nameOff))
			if err != nil {
				return fmt.Errorf("version needs: %w", err)
			}
			fn(file, ver, idx, flags&flagWeak != 0)
			if anext == 0 {
				break
			}
			a += uint64(anext)
		}
		if next == 0 {
			break
		}
		addr += uint64(next)
	}
	return nil
}

func (f *File) verdef(fn func(ver string, idx uint16)) error {
	if f.dyn.verdef == 0 {
		return nil
	}
	o := f.Order
	addr := f.dyn.verdef
	for range min(f.dyn.vN, maxVersions) {
		b, err := f.at(addr, 20)
		if err != nil {
			return fmt.Errorf("version definitions: %w", err)
		}
		idx, cnt, aux, next := o.Uint16(b[4:]), o.Uint16(b[6:]), o.Uint32(b[12:]), o.Uint32(b[16:])
		if cnt > 0 {
			b, err := f.at(addr+uint64(aux), 8)
			if err != nil {
				return fmt.Errorf("version definitions: %w", err)
			}
			ver, err := f.dynString(uint64(o.Uint32(b)))
			if err != nil {
				return fmt.Errorf("version definitions: %w", err)
			}
			fn(ver, idx)
		}
		if next == 0 {
			break
		}
		addr += uint64(next)
	}
	return nil
}

// version returns the version of symbol i and, for a needed one, the library
// that must have it. A damaged version table gives no version.
func (f *File) version(i int) (ver, file string) {
	if f.dyn.versym == 0 {
		return "", ""
	}
	if !f.verRead {
		f.verRead = true
		set := func(idx uint16, file, ver string) {
			idx &= 0x7fff
			if idx < 2 || int(idx) >= maxVersions {
				return
			}
			for int(idx) >= len(f.versions) {
				f.versions, f.verFiles = append(f.versions, ""), append(f.verFiles, "")
			}
			f.versions[idx], f.verFiles[idx] = ver, file
		}
		_ = f.verneed(func(file, ver string, idx uint16, _ bool) { set(idx, file, ver) })
		_ = f.verdef(func(ver string, idx uint16) { set(idx, "", ver) })
	}
	b, err := f.at(f.dyn.versym+2*uint64(i), 2)
	if err != nil {
		return "", ""
	}
	if idx := f.Order.Uint16(b) & 0x7fff; int(idx) < len(f.versions) {
		return f.versions[idx], f.verFiles[idx]
	}
	return "", ""
}
