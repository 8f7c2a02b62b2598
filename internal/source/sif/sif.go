// Package sif reads SIF files, the images of Apptainer and Singularity: their
// header, their list of data objects, and the squashfs partition that a
// container would run from, as an io/fs file system.
//
// A SIF file is foreign bytes: the number of data objects, their sizes and
// positions are checked before they are used. Signatures are not verified.
package sif

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
)

// Errors that callers tell apart with errors.Is. An image whose partition is
// not squashfs or damaged is an error of package squashfs.
var (
	// ErrNotSIF: the first bytes are not those of a SIF file.
	ErrNotSIF = errors.New("not a SIF image")
	// ErrCorrupt: the file contradicts itself or ends too early.
	ErrCorrupt = errors.New("corrupt SIF image")
	// ErrEncrypted: the container's partition is encrypted.
	ErrEncrypted = errors.New("the SIF image is encrypted: its files can only be seen with its key or passphrase")
	// ErrUnsupported: the container's partition is of a kind that is not read.
	ErrUnsupported = errors.New("unsupported SIF image")
	// ErrArch: no partition is for the wanted architecture.
	ErrArch = errors.New("no partition for the architecture")
)

const (
	headerSize     = 128
	descriptorSize = 585
	maxObjects     = 4096    // Apptainer makes 48
	maxText        = 1 << 20 // bytes of a definition file or of labels
)

// Type says what a data object is.
type Type int32

// The types of data objects.
const (
	DefinitionFile Type = 0x4001 + iota
	Environment
	Labels
	FileSystem
	Signature
	JSON
	Generic
	CryptoMessage
	SBOM
	OCIIndex
	OCIBlob
)

// Object is one data object of the file.
type Object struct {
	ID       uint32
	Type     Type
	Name     string // as the builder named it
	Offset   int64  // in the file
	Size     int64
	Created  time.Time
	Modified time.Time

	extra [12]byte // of a file system: its format, its use, its architecture
}

// Format is how a file system is stored.
type Format int32

// The formats of file systems.
const (
	Squashfs Format = 1 + iota
	Ext3
	Archive
	Raw
	EncryptedSquashfs
)

// String is the format's usual name.
func (f Format) String() string {
	switch f {
	case Squashfs:
		return "squashfs"
	case Ext3:
		return "ext3"
	case Archive:
		return "archive"
	case Raw:
		return "raw"
	case EncryptedSquashfs:
		return "encrypted squashfs"
	}
	return fmt.Sprintf("format %d", int32(f))
}

// Use is what a file system is for.
type Use int32

// The uses of file systems.
const (
	System  Use = 1 + iota // an operating system, for another architecture
	Primary                // the operating system that the container runs from
	Data                   // data only
	Overlay                // laid over the primary one
)

// String is the use in a word.
func (u Use) String() string {
	switch u {
	case System:
		return "system"
	case Primary:
		return "primary system"
	case Data:
		return "data"
	case Overlay:
		return "overlay"
	}
	return fmt.Sprintf("use %d", int32(u))
}

// Partition is a data object that is a file system.
type Partition struct {
	Object
	Format Format
	Use    Use
	Arch   string // as Go names it: amd64, arm64; "" when it is not said
}

// Image is an opened SIF file.
type Image struct {
	FS         *squashfs.FS // of the chosen partition
	Arch       string       // for which that is, as Go names it; "" when it is not said
	Definition string       // the definition file that it was built from, "" when there is none
	Labels     []byte       // JSON, nil when there are none
	Partitions []Partition  // all, in the order of the file
	Objects    []Object     // all, partitions too

	r io.ReaderAt
}

// Open reads the header of a SIF file of size bytes and opens the squashfs
// partition for an architecture (amd64 or x86_64, arm64 or aarch64, …, also as
// a platform such as linux/arm64/v8), or the primary one when arch is "". r must stay open while the Image is used.
//
// When the header could be read but the partition cannot be opened, Open
// returns the Image without FS together with the error.
func Open(r io.ReaderAt, size int64, arch string) (*Image, error) {
	objects, err := readObjects(r, size)
	if err != nil {
		return nil, err
	}
	img := &Image{Objects: objects, r: r}
	for _, o := range objects {
		switch o.Type {
		case FileSystem:
			le := binary.LittleEndian
			img.Partitions = append(img.Partitions, Partition{
				Object: o, Format: Format(le.Uint32(o.extra[:])), Use: Use(le.Uint32(o.extra[4:])), Arch: archOf(o.extra[8:11]),
			})
		case DefinitionFile:
			if b, err := img.Read(o, maxText); err == nil && img.Definition == "" {
				img.Definition = string(b)
			}
		case Labels:
			if b, err := img.Read(o, maxText); err == nil && img.Labels == nil {
				img.Labels = b
			}
		}
	}
	p, err := img.choose(arch)
	if err != nil {
		return img, err
	}
	img.Arch = p.Arch
	img.FS, err = img.open(p)
	return img, err
}

// Read returns the content of a data object of at most max bytes.
func (img *Image) Read(o Object, max int64) ([]byte, error) {
	if o.Size > max {
		return nil, fmt.Errorf("data object %d has %d bytes, more than %d", o.ID, o.Size, max)
	}
	return io.ReadAll(img.Section(o))
}

// Section reads a data object where it lies.
func (img *Image) Section(o Object) *io.SectionReader {
	return io.NewSectionReader(img.r, o.Offset, o.Size)
}

// choose finds the partition that a container would run from.
func (img *Image) choose(arch string) (Partition, error) {
	want := goArch(arch)
	best := -1
	var have []string
	for i, p := range img.Partitions {
		if p.Use != Primary && p.Use != System {
			continue
		}
		fits := p.Arch == want || want != "" && p.Arch == "" || want == "" && p.Use == Primary
		if !fits {
			if p.Arch != "" && !slices.Contains(have, p.Arch) {
				have = append(have, p.Arch)
			}
			continue
		}
		// An exact architecture beats an unsaid one, then the primary partition wins.
		rank := func(p Partition) int {
			n := 0
			if want != "" && p.Arch == want {
				n += 2
			}
			if p.Use == Primary {
				n++
			}
			return n
		}
		if best < 0 || rank(p) > rank(img.Partitions[best]) {
			best = i
		}
	}
	switch {
	case best >= 0:
		return img.Partitions[best], nil
	case len(have) > 0 && want != "":
		return Partition{}, fmt.Errorf("%w %s: it has %s", ErrArch, want, strings.Join(have, ", "))
	case slices.ContainsFunc(img.Objects, func(o Object) bool { return o.Type == OCIIndex }):
		return Partition{}, fmt.Errorf("%w: an OCI image in a SIF file (OCI-SIF)", ErrUnsupported)
	}
	return Partition{}, fmt.Errorf("%w: no primary system partition", ErrUnsupported)
}

// open opens a partition's file system.
func (img *Image) open(p Partition) (*squashfs.FS, error) {
	var head [6]byte
	n, _ := img.r.ReadAt(head[:min(6, p.Size)], p.Offset)
	switch luks := string(head[:n]) == "LUKS\xba\xbe"; {
	case p.Format == EncryptedSquashfs || luks:
		return nil, ErrEncrypted
	case p.Format != Squashfs:
		return nil, fmt.Errorf("%w: its %s partition is %s, not squashfs", ErrUnsupported, p.Use, p.Format)
	}
	fsys, err := squashfs.Open(img.Section(p.Object), p.Size)
	if err != nil {
		return nil, fmt.Errorf("the SIF image's %s partition: %w", p.Use, err)
	}
	return fsys, nil
}

// readObjects reads header and descriptors.
func readObjects(r io.ReaderAt, size int64) ([]Object, error) {
	var h [headerSize]byte
	n, err := r.ReadAt(h[:min(headerSize, max(0, size))], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// A launch line of 32 bytes is in front.
	if n < 42 || string(h[32:42]) != "SIF_MAGIC\x00" {
		return nil, ErrNotSIF
	}
	if n < headerSize {
		return nil, fmt.Errorf("%w: cut off within its header", ErrCorrupt)
	}
	if v := text(h[42:45]); v != "01" {
		return nil, fmt.Errorf("%w: version %q", ErrUnsupported, v)
	}
	le := binary.LittleEndian
	number := func(b []byte) int64 { return int64(le.Uint64(b)) }
	total, at := number(h[88:]), number(h[96:])
	switch {
	case total < 0 || total > maxObjects:
		return nil, fmt.Errorf("%w: %d data objects", ErrCorrupt, total)
	case at < 0 || at > size || total*descriptorSize > size-at:
		return nil, fmt.Errorf("%w: its %d descriptors at byte %d are beyond its end at %d", ErrCorrupt, total, at, size)
	}
	table := make([]byte, total*descriptorSize)
	if n, err := r.ReadAt(table, at); n < len(table) {
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: cut off within its descriptors", ErrCorrupt)
		}
		return nil, err
	}
	var out []Object
	for d := range slices.Chunk(table, descriptorSize) {
		if d[4] == 0 { // not in use
			continue
		}
		o := Object{
			Type: Type(le.Uint32(d)), ID: le.Uint32(d[5:]), Offset: number(d[17:]), Size: number(d[25:]),
			Created: time.Unix(number(d[41:]), 0), Modified: time.Unix(number(d[49:]), 0),
			Name: text(d[73:201]), extra: [12]byte(d[201:213]),
		}
		if o.Offset < 0 || o.Size < 0 || o.Offset > size || o.Size > size-o.Offset {
			return nil, fmt.Errorf("%w: data object %d (%d bytes at %d) is beyond its end at %d", ErrCorrupt, o.ID, o.Size, o.Offset, size)
		}
		out = append(out, o)
	}
	return out, nil
}

// text is a field that ends at the first NUL.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.ToValidUTF8(string(b), "\ufffd")
}
