package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/squashfs"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// BenchmarkWalk walks an image of 50,000 entries and reads all its inodes.
func BenchmarkWalk(b *testing.B) {
	tree := filepath.Join(b.TempDir(), "tree")
	if err := makeTree(tree, 50000); err != nil {
		b.Fatal(err)
	}
	tool := testenv.Tool(b, "mksquashfs")
	for _, comp := range []string{"gzip", "lzo", "lz4", "xz", "zstd"} {
		b.Run(comp, func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "image.sqsh")
			if out, err := exec.Command(tool, tree, name, "-comp", comp, "-noD", "-noF", "-quiet", "-no-progress").CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			image, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				c := &counter{r: bytes.NewReader(image)}
				s, err := squashfs.Open(c, int64(len(image)))
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				err = fs.WalkDir(s, ".", func(_ string, d fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					n++
					_, err = d.Info()
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(n), "entries")
				b.ReportMetric(float64(c.bytes.Load()), "bytes-read")
				b.ReportMetric(float64(c.calls.Load()), "reads")
			}
		})
	}
}
