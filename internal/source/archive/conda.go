package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/source/spool"
	"github.com/ncclinic/ncclinic/internal/source/vfs"
)

// IsConda reports whether a zip file is a conda package of format 2: a zip of
// two tar archives with zstd.
func IsConda(z *vfs.FS) bool {
	_, err := fs.Stat(z, "metadata.json")
	return err == nil && len(condaTars(z)) > 0
}

func condaTars(z *vfs.FS) []string {
	var out []string
	list, _ := z.ReadDir(".")
	for _, e := range list {
		if n := e.Name(); (strings.HasPrefix(n, "pkg-") || strings.HasPrefix(n, "info-")) && strings.Contains(n, ".tar") {
			out = append(out, n)
		}
	}
	sort.Strings(out) // info first
	return out
}

// Conda reads the archives inside of a .conda package into one tree, as conda
// would link it into a prefix, with the record that it would leave in conda-meta.
func Conda(ctx context.Context, z *vfs.FS, st *spool.Store) (*vfs.FS, error) {
	f := vfs.New(MaxNames)
	for _, name := range condaTars(z) {
		h, err := z.Open(name)
		if err != nil {
			return nil, err
		}
		err = func() error {
			r, _, err := Decompress(h)
			if err != nil {
				return err
			}
			defer r.Close()
			return Tar(ctx, r, TarOptions{Store: st}, func(o Op) error { return Apply(f, o) })
		}()
		h.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f, AddCondaRecord(f)
}

// CondaIndex is what info/index.json of a conda package says.
type CondaIndex struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Build   string   `json:"build"`
	Subdir  string   `json:"subdir"` // linux-64
	Depends []string `json:"depends"`
}

// ReadCondaIndex reads info/index.json of a package's tree.
func ReadCondaIndex(f fs.FS) (CondaIndex, error) {
	x, _, err := readCondaIndex(f)
	return x, err
}

func readCondaIndex(f fs.FS) (x CondaIndex, text []byte, err error) {
	h, err := f.Open("info/index.json")
	if err != nil {
		return x, nil, err
	}
	defer h.Close()
	text, err = io.ReadAll(io.LimitReader(h, 1<<20))
	if err != nil {
		return x, nil, fmt.Errorf("info/index.json: %w", err)
	}
	if err := json.Unmarshal(text, &x); err != nil {
		return x, nil, fmt.Errorf("info/index.json: %w", err)
	}
	if x.Name == "" || x.Version == "" {
		return x, nil, fmt.Errorf("info/index.json names no package")
	}
	return x, text, nil
}

// AddCondaRecord puts the record of a package where conda puts it in an environment.
func AddCondaRecord(f *vfs.FS) error {
	x, b, err := readCondaIndex(f)
	if err != nil {
		return err
	}
	name := path.Base(x.Name) + "-" + x.Version + "-" + x.Build + ".json"
	return f.Add(vfs.Entry{Name: "conda-meta/" + strings.ReplaceAll(name, "/", "_"), Mode: 0o644, Size: int64(len(b)), Data: strings.NewReader(string(b))})
}
