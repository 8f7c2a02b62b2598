package squashfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	diskfs "github.com/diskfs/go-diskfs/filesystem/squashfs"
	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// TestOtherWriter reads images that another program laid out: go-diskfs writes
// its tables in another order than mksquashfs.
func TestOtherWriter(t *testing.T) {
	text := []byte(strings.Repeat("NCCL INFO Channel 00/08 ", 30000))
	files := map[string][]byte{"a": text, "b/c/d": text[:5], "b/c/e": nil, "b/f": text[:4096], "g": text[:300001], "h/noise": noise(200000)}
	for _, c := range []diskfs.Compressor{&diskfs.CompressorGzip{}, &diskfs.CompressorXz{}, &diskfs.CompressorZstd{}, nil} {
		image := filepath.Join(t.TempDir(), "image")
		f, err := os.Create(image)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, err := diskfs.Create(file.New(f, false), 0, 0, 4096)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range files {
			if dir := filepath.Dir(name); dir != "." {
				if err := w.Mkdir(dir); err != nil {
					t.Fatal(err)
				}
			}
			o, err := w.OpenFile(name, os.O_CREATE|os.O_RDWR)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Write(b); err != nil {
				t.Fatal(err)
			}
			o.Close()
		}
		none := c == nil
		if err := w.Finalize(diskfs.FinalizeOptions{Compression: c, NoCompressInodes: none, NoCompressData: none, NoCompressFragments: none}); err != nil {
			t.Fatal(err)
		}
		s := open(t, image)
		for name, b := range files {
			got, err := fs.ReadFile(s, name)
			if err != nil || string(got) != string(b) {
				t.Errorf("%T: %s: %d bytes of %d, %v", c, name, len(got), len(b), err)
			}
		}
	}
}

// TestOtherReader compares with what go-diskfs reads of the same image.
func TestOtherReader(t *testing.T) {
	const python = "/usr/lib/python3.11"
	testenv.File(t, python+"/os.py", "apt-get install python3")
	tree := t.TempDir()
	for _, p := range []string{"asyncio", "json", "email"} {
		if err := os.CopyFS(filepath.Join(tree, p), os.DirFS(filepath.Join(python, p))); err != nil {
			t.Fatal(err)
		}
	}
	for _, comp := range []string{"gzip", "xz", "zstd"} {
		image := mksquashfs(t, tree, "-comp", comp)
		f, err := os.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		st, _ := f.Stat()
		other, err := diskfs.Read(file.New(f, true), st.Size(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		read := func(fsys fs.FS) map[string]string {
			out := map[string]string{}
			err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := fs.ReadFile(fsys, p)
				out[p] = string(b)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if diff := cmp.Diff(read(other), read(open(t, image))); diff != "" {
			t.Errorf("%s: go-diskfs and this reader differ:\n%s", comp, diff)
		}
	}
}
