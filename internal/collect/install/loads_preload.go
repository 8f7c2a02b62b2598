package install

import (
	"context"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

// maxInit bounds what is read of torch/__init__.py, which has about 110 KB.
const maxInit = 512 << 10

// preload is what torch/__init__.py loads by itself before torch._C, out of
// the nvidia/*/lib folders on the search path. What is loaded first answers to
// its soname for everything that comes later, whatever other paths say.
//
// The code changed over the releases; it is read and not guessed from the
// version, because NVIDIA's containers and distributions patch it:
//   - 1.13 to 2.3: only when libtorch_global_deps.so could not be loaded, and
//     then every library must be found or the import fails;
//   - 2.4 to 2.8: also libnvJitLink (and libnvrtc) when libcudart came from a wheel;
//   - later: all of them, those that are there.
type preload struct {
	libs    []preloadLib // tried when libtorch_global_deps.so cannot be loaded
	eager   []preloadLib // loaded after it was loaded
	gate    string       // part of a path that must be loaded for eager
	cuXX    bool         // nvidia/cu13/lib is searched too
	without bool         // <entry>/<folder>/lib is searched too
}

// preloadLib is a folder under nvidia/ and a glob for the file.
type preloadLib struct {
	folder, glob string
	optional     bool
}

var (
	preloadPair = lazyre.New(`["'](\w+)["']\s*[:,]\s*["'](lib[\w.*\[\]-]+)["']`)
	preloadCall = lazyre.New(`_preload_cuda_(?:deps|lib)\(\s*["'](\w+)["'],\s*["'](lib[\w.*\[\]-]+)["']([^)]*)\)`)
	preloadAll  = lazyre.New(`_preload_cuda_deps\(\s*(?:required=\w+)?\s*\)`)
	preloadGate = lazyre.New(`["']([\w./-]+)["']\s+not in _maps`)
)

// Lines between which torch/__init__.py loads CUDA's libraries. A regular
// expression over its 100 KB took longer than all that is read of them.
var (
	preloadStart = []string{"def _get_cuda_dep_paths(", "def _preload_cuda_deps(", "def _preload_cuda_lib(", "def _load_global_deps("}
	preloadEnd   = []string{"if USE_RTLD_GLOBAL", "if (USE_RTLD_GLOBAL"}
)

// lineWith returns where the first line begins that starts with one of the
// texts, -1 when none does.
func lineWith(src string, starts []string) int {
	first := -1
	for _, s := range starts {
		i := 0
		if !strings.HasPrefix(src, s) {
			if i = strings.Index(src, "\n"+s) + 1; i == 0 {
				continue
			}
		}
		if first < 0 || i < first {
			first = i
		}
	}
	return first
}

// parsePreload reads the text of torch/__init__.py.
func parsePreload(src string) preload {
	at := lineWith(src, preloadStart)
	if at < 0 {
		return preload{}
	}
	src = src[at:]
	if end := lineWith(src, preloadEnd); end >= 0 {
		src = src[:end]
	} else {
		src = src[:min(len(src), 16<<10)]
	}
	p := preload{cuXX: strings.Contains(src, `f"cu{`), without: strings.Contains(src, "os.path.join(path, lib_folder")}
	// What follows the look at /proc/self/maps and comes before the handler is eager.
	eager := ""
	if i := strings.Index(src, "_maps"); i >= 0 {
		eager = src[i:]
		if j := strings.Index(eager, "except OSError"); j >= 0 {
			eager = eager[:j]
		}
	}
	if m := preloadGate.FindStringSubmatch(eager); m != nil {
		p.gate = m[1]
	}
	for _, m := range preloadPair.FindAllStringSubmatch(strings.Replace(src, eager, "", 1), 64) {
		l := preloadLib{folder: m[1], glob: m[2]}
		for _, c := range preloadCall.FindAllStringSubmatch(src, 64) {
			if c[1] == l.folder && c[2] == l.glob && strings.Contains(c[3], "required=False") {
				l.optional = true
			}
		}
		p.libs = append(p.libs, l)
	}
	if preloadAll.MatchString(eager) {
		for _, l := range p.libs {
			l.optional = true
			p.eager = append(p.eager, l)
		}
	}
	for _, m := range preloadCall.FindAllStringSubmatch(eager, 64) {
		p.eager = append(p.eager, preloadLib{folder: m[1], glob: m[2]})
	}
	return p
}

// find returns the file that torch would load, and the entry of the search path that has it.
func (p *preload) find(ctx context.Context, tr *tree, entries []fact.PathEntry, cudaMajor string, l preloadLib) (file, entry string) {
	for _, e := range entries {
		if ctx.Err() != nil {
			return "", ""
		}
		dirs := []string{path.Join(e.Dir, "nvidia", l.folder, "lib")}
		if p.cuXX && cudaMajor != "" {
			dirs = append(dirs, path.Join(e.Dir, "nvidia", "cu"+cudaMajor, "lib"))
		}
		if p.without {
			dirs = append(dirs, path.Join(e.Dir, l.folder, "lib"))
		}
		for _, d := range dirs {
			if !tr.isDir(d) {
				continue
			}
			names := tr.list(d).sorted(func(n string) bool { ok, _ := path.Match(l.glob, n); return ok })
			if len(names) > 0 {
				return path.Join(d, names[0]), e.Dir
			}
		}
	}
	return "", ""
}

// ownerIndex finds the distributions that list a file as theirs.
type ownerIndex struct {
	m     *source.Machine
	tr    *tree
	dists []fact.Dist
	texts map[string]string // RECORD by folder, behind a line break
	left  int               // bytes that may still be read
}

const maxOwnerRecord = 256 << 10

// owners returns the names of the distributions whose RECORD has the file.
func (o *ownerIndex) owners(file string) (names []string, first fact.Dist) {
	for _, d := range o.dists {
		site := path.Dir(d.Dir)
		rel, ok := strings.CutPrefix(file, site+"/")
		if !ok || !strings.HasSuffix(d.Dir, ".dist-info") || !strings.HasPrefix(d.Name, "nvidia-") && d.Name != "torch" && d.Name != "cuda-toolkit" {
			continue
		}
		if d.Name == "torch" { // its RECORD is long, and everything under torch/ is its
			if strings.HasPrefix(rel, "torch/") {
				names, first = append(names, d.Name), d
			}
			continue
		}
		if strings.Contains(o.record(d.Dir), "\n"+rel+",") {
			if names = append(names, d.Name); len(names) == 1 {
				first = d
			}
		}
	}
	sort.Strings(names)
	return names, first
}

func (o *ownerIndex) record(dir string) string {
	if t, ok := o.texts[dir]; ok {
		return t
	}
	n := min(maxOwnerRecord, o.left)
	var b []byte
	if n > 0 {
		b, _, _ = o.tr.read(path.Join(dir, "RECORD"), n)
		o.left -= len(b)
	}
	t := "\n" + string(b)
	o.texts[dir] = t
	return t
}

// lookLib opens nothing and tells whether a file is there.
func lookLib(tr *tree, p string) bool {
	n := tr.at(p)
	return n.err == nil && n.info.Mode()&fs.ModeType == 0
}
