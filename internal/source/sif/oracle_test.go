package sif_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	sylabs "github.com/sylabs/sif/v2/pkg/sif"

	"github.com/ncclinic/ncclinic/internal/source/sif"
)

// TestSylabs reads files that the format's own library writes, as Apptainer
// and Singularity do.
func TestSylabs(t *testing.T) {
	input := func(typ sylabs.DataType, b []byte, opts ...sylabs.DescriptorInputOpt) sylabs.DescriptorInput {
		t.Helper()
		in, err := sylabs.NewDescriptorInput(typ, bytes.NewReader(b), opts...)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	def := []byte("Bootstrap: docker\nFrom: pytorch/pytorch:2.6.0-cuda12.6-cudnn9-runtime\n")
	for _, tt := range []struct{ arch, want string }{
		{"386", "386"}, {"amd64", "amd64"}, {"arm64", "arm64"}, {"ppc64le", "ppc64le"}, {"s390x", "s390x"}, {"riscv64", "riscv64"}, {"loong64", "loong64"},
	} {
		path := filepath.Join(t.TempDir(), "image.sif")
		image, err := sylabs.CreateContainerAtPath(path,
			sylabs.OptCreateWithLaunchScript("#!/usr/bin/env run-singularity\n"),
			sylabs.OptCreateWithDescriptors(
				input(sylabs.DataDeffile, def, sylabs.OptObjectName("image.def")),
				input(sylabs.DataLabels, []byte(`{"org.label-schema.usage":"x"}`)),
				input(sylabs.DataGenericJSON, []byte(`{}`), sylabs.OptObjectName("inspect-metadata.json")),
				input(sylabs.DataPartition, system(t, "other"), sylabs.OptPartitionMetadata(sylabs.FsSquash, sylabs.PartSystem, "mips64")),
				input(sylabs.DataPartition, system(t, tt.arch), sylabs.OptObjectName("rootfs"), sylabs.OptPartitionMetadata(sylabs.FsSquash, sylabs.PartPrimSys, tt.arch)),
				input(sylabs.DataPartition, make([]byte, 1024), sylabs.OptPartitionMetadata(sylabs.FsExt3, sylabs.PartOverlay, tt.arch)),
			))
		if err != nil {
			t.Fatal(err)
		}
		// A removed object leaves a descriptor that is not in use.
		if err := image.DeleteObject(3, sylabs.OptDeleteZero(true)); err != nil {
			t.Fatal(err)
		}
		type object struct {
			id   uint32
			typ  int32
			name string
			size int64
			at   int64
		}
		var want []object
		image.WithDescriptors(func(d sylabs.Descriptor) bool {
			want = append(want, object{d.ID(), int32(d.DataType()), d.Name(), d.Size(), d.Offset()})
			return false
		})
		if err := image.UnloadContainer(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		img, err := openBytes(b, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(img.Objects) != len(want) {
			t.Fatalf("%d objects, want %d", len(img.Objects), len(want))
		}
		for i, o := range img.Objects {
			if got := (object{o.ID, int32(o.Type), o.Name, o.Size, o.Offset}); got != want[i] {
				t.Errorf("object %+v, want %+v", got, want[i])
			}
		}
		if img.Arch != tt.want || img.Definition != string(def) || len(img.Partitions) != 3 || img.Partitions[2].Use != sif.Overlay || img.Partitions[2].Format != sif.Ext3 {
			t.Errorf("arch %q, definition %q, partitions %+v", img.Arch, img.Definition, img.Partitions)
		}
		if got, err := fs.ReadFile(img.FS, "name"); string(got) != tt.arch {
			t.Errorf("read %q, %v", got, err)
		}
		if img, err = openBytes(b, "mips64"); err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(img.FS, "name"); string(got) != "other" {
			t.Errorf("read %q, %v", got, err)
		}
	}
}

// FuzzSIF: an error, never a panic or a large allocation.
func FuzzSIF(f *testing.F) {
	inner, err := os.ReadFile("../squashfs/testdata/gzip.sqsh")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(build(object{sif.FileSystem, sif.Squashfs, sif.Primary, "02", inner}, object{typ: sif.DefinitionFile, data: []byte("From: x")}), "")
	f.Add(build(object{sif.FileSystem, sif.EncryptedSquashfs, sif.Primary, "04", []byte("LUKS")}), "arm64")
	f.Add(build(object{typ: sif.OCIIndex, data: []byte("{}")}), "amd64")
	f.Add([]byte("#!/usr/bin/env run-singularity\n\x00SIF_MAGIC\x0001"), "")
	f.Fuzz(func(t *testing.T, b []byte, arch string) {
		img, err := openBytes(b, arch)
		if err == nil && img.FS == nil {
			t.Fatal("neither an error nor a file system")
		}
		if img == nil {
			return
		}
		for _, o := range img.Objects {
			if o.Offset < 0 || o.Size < 0 || o.Offset+o.Size > int64(len(b)) {
				t.Fatalf("object beyond the file: %+v", o)
			}
		}
		if img.FS != nil {
			img.FS.ReadDir(".")
			fs.Stat(img.FS, "lib/torch/version.py")
		}
	})
}
