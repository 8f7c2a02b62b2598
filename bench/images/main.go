// Command images walks squashfs images with this project's reader, for
// bench/images.sh:
//
//	images -walk IMAGE        list all entries as "unsquashfs -ll" does; bytes read go to stderr
//	images -tree DIR -n 50000 make a folder like a Python environment, of short files
//	images -compare IMAGE...  time -walk of this program against unsquashfs -ll
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/ncclinic/ncclinic/bench/internal/whole"
	"github.com/ncclinic/ncclinic/internal/source/squashfs"
)

func main() {
	image := flag.String("walk", "", "image to list")
	tree := flag.String("tree", "", "folder to make")
	entries := flag.Int("n", 50000, "entries of that folder")
	compare := flag.Bool("compare", false, "time the images that follow")
	runs := flag.Int("runs", 7, "counted runs of each command")
	flag.Parse()
	var err error
	switch {
	case *image != "":
		err = walk(*image)
	case *tree != "":
		err = makeTree(*tree, *entries)
	case *compare:
		err = compareAll(flag.Args(), *runs)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/images:", err)
		os.Exit(1)
	}
}

// counter counts what is read of an image.
type counter struct {
	r            io.ReaderAt
	calls, bytes atomic.Int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.calls.Add(1)
	c.bytes.Add(int64(n))
	return n, err
}

func walk(image string) error {
	f, err := os.Open(image)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	c := &counter{r: f}
	s, err := squashfs.Open(c, st.Size())
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	n := 0
	err = fs.WalkDir(s, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n++
		sys := info.Sys().(*squashfs.Stat)
		fmt.Fprintf(out, "%v %d/%d %d %s %s", info.Mode(), sys.UID, sys.GID, info.Size(), info.ModTime().UTC().Format("2006-01-02 15:04"), p)
		if d.Type() == fs.ModeSymlink {
			to, err := s.ReadLink(p)
			if err != nil {
				return err
			}
			fmt.Fprint(out, " -> ", to)
		}
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d entries, %d reads, %d bytes of %d\n", n, c.calls.Load(), c.bytes.Load(), st.Size())
	return out.Flush()
}

// makeTree fills a folder with packages of modules: short files, so that
// making images of it takes seconds.
func makeTree(dir string, n int) error {
	const perPackage = 40
	for i := 0; i < n; i++ {
		pkg := i / perPackage
		p := filepath.Join(dir, "lib/python3.12/site-packages", fmt.Sprintf("package_%03d", pkg/25), fmt.Sprintf("part_%d", pkg%25))
		if i%perPackage == 0 {
			if err := os.MkdirAll(p, 0o755); err != nil {
				return err
			}
			continue
		}
		name := filepath.Join(p, fmt.Sprintf("module_%02d_%x.py", i%perPackage, i*2654435761%65521))
		if i%50 == 7 {
			if err := os.Symlink("../part_0/__init__.py", name); err != nil {
				return err
			}
			continue
		}
		text := strings.Repeat(fmt.Sprintf("from package_%03d import thing_%d\n", pkg%97, i), i%17)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compareAll(images []string, runs int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, image := range images {
		fmt.Println(filepath.Base(image))
		m, err := whole.Compare(os.Stdout, runs,
			whole.Command{Name: "  unsquashfs -ll", Args: []string{"unsquashfs", "-ll", image}},
			whole.Command{Name: "  this reader", Args: []string{self, "-walk", image}})
		if err != nil {
			return err
		}
		if m[1].Wall > m[0].Wall {
			fmt.Println("  slower than unsquashfs")
		}
	}
	return nil
}
