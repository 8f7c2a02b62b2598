// Package squashfs reads squashfs 4.0 images, as mksquashfs writes them for
// enroot and Apptainer, as an io/fs file system: without mounting or unpacking
// them and without a cache that grows with the image.
//
// An image is foreign bytes. Each size, offset and count in it is checked
// before it is used, errors name what is wrong, and the memory of an FS is
// bounded by the constants in this file whatever the image claims.
//
// All compressors of squashfs are read: gzip, lzma, lzo, xz, lz4 and zstd.
// Extended attributes are skipped. Paths are resolved as in a chroot: an
// absolute link starts at the root of the image, and ".." never leaves it.
package squashfs

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
)

// Errors that callers tell apart with errors.Is. Errors of the io.ReaderAt
// itself are passed on.
var (
	// ErrNotSquashfs: the first bytes are not those of a squashfs image.
	ErrNotSquashfs = errors.New("not a squashfs image")
	// ErrCorrupt: the image contradicts itself or ends too early.
	ErrCorrupt = errors.New("corrupt squashfs image")
	// ErrUnsupported: a version or compressor that this reader does not know.
	ErrUnsupported = errors.New("unsupported squashfs image")
	// ErrLimit: what the image claims is beyond what this reader accepts.
	ErrLimit = errors.New("beyond the limits of the squashfs reader")
)

// Limits of what an image may make this package hold or do. An FS keeps at
// most 16 MiB of blocks, 2 MiB of names and the list of directories that were
// entered, 24 bytes each.
const (
	pageSize  = 32 << 10 // unit in which metadata and uncompressed data are read
	maxPages  = 64       // 2 MiB
	maxMeta   = 512      // decompressed metadata blocks of 8 KiB: 4 MiB
	dataBytes = 8 << 20  // decompressed data and fragment blocks
	maxNames  = 4096     // directory entries that were looked up
	maxPaths  = 256      // directories that were found by their path

	maxEntries  = 1 << 18   // entries of one directory that ReadDir returns
	maxListing  = 256 << 20 // bytes of one directory's listing
	maxScan     = 16 << 20  // bytes of a listing that one lookup reads
	maxDirs     = 1 << 19   // directories that are entered
	maxBlocks   = 1 << 24   // blocks of one file: 64 GiB at 4 KiB, 2 TiB at 128 KiB
	maxPath     = 4096      // bytes of a path, PATH_MAX
	maxLinks    = 40        // symbolic links in one path, as Linux
	maxLinkSize = 4096      // bytes of a link's target
)

// FS is a squashfs image. It implements fs.FS, fs.ReadDirFS, fs.StatFS and
// fs.ReadLinkFS, and its files implement io.ReaderAt and io.Seeker. It is safe
// for use by several goroutines, one of which decompresses at a time.
type FS struct {
	r    io.ReaderAt
	sb   superblock
	ids  []uint32
	root *inode
	seed maphash.Seed

	mu      sync.Mutex // guards all below
	dec     decoder
	scratch []byte // a compressed block
	pages   lru[int64, []byte]
	metas   lru[int64, metaBlock]
	datas   lru[dataKey, []byte]
	spare   []byte // buffer of the data block that was dropped last
	names   lru[nameKey, dirent]
	paths   lru[string, *inode]
	dirs    map[uint64]uint64 // directories that were entered, and a hash of the way to them
}

// Open reads the superblock of an image of size bytes and its table of owners.
// The image may be followed by padding. r must stay open while the FS is used.
func Open(r io.ReaderAt, size int64) (*FS, error) {
	sb, err := readSuperblock(r, size)
	if err != nil {
		return nil, err
	}
	s := &FS{r: r, sb: sb, seed: maphash.MakeSeed(), dirs: map[uint64]uint64{}}
	if s.dec, err = newDecoder(sb.compressor, int(sb.blockSize)); err != nil {
		return nil, err
	}
	s.pages.cap, s.metas.cap, s.names.cap, s.paths.cap = maxPages, maxMeta, maxNames, maxPaths
	s.datas.cap = max(2, min(64, dataBytes/int(sb.blockSize)))
	if s.ids, err = s.readIDs(); err != nil {
		return nil, err
	}
	if s.root, err = s.inode(sb.root); err != nil {
		return nil, fmt.Errorf("the root directory: %w", err)
	}
	if !s.root.isDir() {
		return nil, corrupt("the root inode is a %s", s.root.mode.Type())
	}
	return s, nil
}

// Compressor names the compressor that the image was made with, such as "zstd".
func (s *FS) Compressor() string { return compressors[s.sb.compressor] }

// BlockSize is the size of data blocks in bytes.
func (s *FS) BlockSize() int { return int(s.sb.blockSize) }

// Inodes is the number of inodes that the image says it has; it is not checked.
func (s *FS) Inodes() uint32 { return s.sb.inodes }

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func limit(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}
