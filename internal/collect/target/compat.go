package target

import (
	"io/fs"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var compatFile = lazyre.New(`^libcuda\.so\.([0-9]{3}(?:\.[0-9]{1,4}){1,2})$`)

// compatIn finds the forward compatibility package of an image: cuda-compat of the
// images of nvidia/cuda and NGC lies in the folder compat of CUDA, at NGC in its lib.real,
// to which the entry point makes a link when the driver is older.
func compatIn(f fs.FS) fact.Val[fact.LibCUDA] {
	dirs := []string{"usr/local/cuda"}
	list, _ := fs.ReadDir(f, "usr/local")
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "cuda-") && len(dirs) < 20 {
			dirs = append(dirs, "usr/local/"+e.Name())
		}
	}
	best := fact.None[fact.LibCUDA](fact.File("/usr/local/cuda/compat"))
	for _, d := range dirs {
		for _, sub := range []string{"compat", "compat/lib", "compat/lib.real"} {
			dir := path.Join(d, sub)
			list, _ := fs.ReadDir(f, dir)
			for _, e := range list {
				m := compatFile.FindStringSubmatch(e.Name())
				if m == nil || best.IsKnown() && tables.Compare(m[1], best.V.Version) <= 0 {
					continue
				}
				p := "/" + source.Rel(path.Join(dir, e.Name()))
				best = fact.Of(fact.LibCUDA{Path: p, Version: m[1], Compat: true}, fact.File(p))
			}
		}
	}
	return best
}
