package source

import (
	"errors"
	"fmt"
	"io"

	"github.com/ncclinic/ncclinic/internal/source/sif"
	"github.com/ncclinic/ncclinic/internal/source/squashfs"
)

// openSquash opens an image of enroot and pyxis, or an environment that a site
// keeps in a squashfs file.
func (t *Target) openSquash(r io.ReaderAt, size int64) error {
	f, err := squashfs.Open(r, size)
	if err != nil {
		return err
	}
	if err := t.tree(f); err != nil {
		return err
	}
	if t.Kind == KindRootFS {
		t.Kind = KindSquash
	}
	return nil
}

// openSIF opens an image of Apptainer and Singularity.
func (t *Target) openSIF(r io.ReaderAt, size int64, o OpenOptions) error {
	im, err := sif.Open(r, size, o.Platform)
	if errors.Is(err, sif.ErrArch) {
		return fmt.Errorf("--platform %s: %w", o.Platform, err)
	}
	if err != nil {
		return err
	}
	t.Kind, t.FS = KindSIF, im.FS
	t.Image = &Image{OS: "linux", Arch: unameArch(im.Arch), Env: map[string]string{}}
	for _, p := range im.Partitions {
		if p.Use == sif.Primary || p.Use == sif.System {
			t.Image.Platforms = append(t.Image.Platforms, "linux/"+p.Arch)
		}
	}
	t.rootImage()
	return nil
}
