package source

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source/archive"
	"github.com/ncclinic/ncclinic/internal/source/spool"
	"github.com/ncclinic/ncclinic/internal/source/vfs"
)

// Limits on image layouts.
const (
	maxManifest  = 8 << 20
	maxLayers    = 1000
	maxIndexes   = 4  // indexes within indexes
	maxRead      = 64 // indexes that are read
	maxManifests = 1000
	maxOpText    = 32 << 20 // bytes of names in the layers of a compressed archive
)

// isLayout reports whether a tree is an OCI image layout (image-spec, image-layout.md).
func isLayout(f fs.FS) bool {
	return exists(f, "index.json") && (exists(f, "oci-layout") || exists(f, "blobs"))
}

// isDockerSave reports whether a tree is what docker save writes.
func isDockerSave(f fs.FS) bool { return exists(f, "manifest.json") && !exists(f, "info/index.json") }

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
		Variant      string `json:"variant"`
	} `json:"platform"`
	Annotations map[string]string `json:"annotations"`
}

type manifest struct {
	MediaType string          `json:"mediaType"`
	Manifests few[descriptor] `json:"manifests"` // of an index
	Config    descriptor      `json:"config"`
	Layers    few[descriptor] `json:"layers"`
}

type dockerManifest struct {
	Config   string      `json:"Config"`
	RepoTags few[string] `json:"RepoTags"`
	Layers   few[string] `json:"Layers"`
}

type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Env        few[string] `json:"Env"`
		Entrypoint few[string] `json:"Entrypoint"`
		Cmd        few[string] `json:"Cmd"`
		WorkingDir string      `json:"WorkingDir"`
	} `json:"config"`
}

// layout reads an image layout: a folder, an archive with random access, or
// what was kept of a compressed archive.
type layout struct {
	t      *Target
	f      fs.FS
	layers map[string][]archive.Op // of a compressed archive, by name; nil: they are read from f
}

func (t *Target) openLayout(ctx context.Context, f fs.FS, layers map[string][]archive.Op, o OpenOptions) error {
	l := &layout{t, f, layers}
	var (
		cfg   imageConfig
		paths []string
		at    string
		plats []string
		err   error
	)
	if isLayout(f) {
		t.Kind = KindOCI
		var m manifest
		if m, plats, err = l.choose(o.Platform); err != nil {
			return err
		}
		if at, err = blobPath(m.Config.Digest); err != nil {
			return err
		}
		if err := l.blob(m.Config, &cfg); err != nil {
			return err
		}
		for _, d := range m.Layers {
			p, err := blobPath(d.Digest)
			if err != nil {
				return err
			}
			paths = append(paths, p)
		}
	} else {
		t.Kind = KindDocker
		var ms few[dockerManifest]
		if err := l.json("manifest.json", &ms); err != nil {
			return err
		}
		m, err := l.chooseDocker(ms, o.Platform)
		if err != nil {
			return err
		}
		at, paths = m.Config, m.Layers
		if err := l.json(at, &cfg); err != nil {
			return err
		}
	}
	if len(paths) == 0 {
		return errors.New("the image has no layers")
	}
	if len(paths) > maxLayers {
		return fmt.Errorf("%d layers, more than %d", len(paths), maxLayers)
	}
	t.Image = &Image{OS: cfg.OS, Arch: unameArch(cfg.Architecture), WorkDir: cfg.Config.WorkingDir, EnvAt: at, Platforms: plats,
		Entrypoint: append(slices.Clone(cfg.Config.Entrypoint), cfg.Config.Cmd...), Env: map[string]string{}}
	for _, kv := range cfg.Config.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			t.Image.Env[k] = v
		}
	}
	root := vfs.New(archive.MaxNames)
	for i, p := range paths {
		root.NextLayer()
		if err := l.apply(ctx, root, p); err != nil {
			return fmt.Errorf("layer %d of %d (%s): %w", i+1, len(paths), p, err)
		}
	}
	t.FS = root
	if t.store.Full() {
		t.Problems = append(t.Problems, fact.Problem{What: t.Path, Why: "more libraries than can be kept of compressed layers; some were not examined"})
	}
	return nil
}

// apply puts one layer over what is there.
func (l *layout) apply(ctx context.Context, root *vfs.FS, name string) error {
	add := func(o archive.Op) error { return archive.Apply(root, o) }
	if l.layers != nil {
		ops, ok := l.layers[l.resolve(name)]
		if !ok {
			return errors.New("there is no such layer in the archive")
		}
		for _, o := range ops {
			if err := add(o); err != nil {
				return err
			}
		}
		return nil
	}
	h, err := l.open(name)
	if err != nil {
		return err
	}
	st, err := h.Stat()
	if err != nil {
		h.Close()
		return err
	}
	at, ok := h.(io.ReaderAt)
	if !ok || !st.Mode().IsRegular() {
		h.Close()
		return errors.New("not a regular file")
	}
	l.t.close = append(l.t.close, h)
	if _, ok := l.f.(*folder); ok { // its size is that of its layers
		l.t.Size += st.Size()
		at = counted{at, l.t}
	}
	head := make([]byte, 512)
	n, err := at.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	sec := io.NewSectionReader(at, 0, st.Size())
	if archive.Format(head[:n]) == archive.Plain {
		if n > 0 && !isTar(head[:n]) && !zeros(head[:n]) {
			return errors.New("not a tar archive, gzip or zstd: encrypted layers cannot be read")
		}
		return archive.Tar(ctx, sec, archive.TarOptions{At: at, Layer: true}, add)
	}
	l.t.Streamed = true
	z, format, err := archive.Decompress(bufio.NewReaderSize(sec, 256<<10))
	if err != nil {
		return fmt.Errorf("%s: %w", format, err)
	}
	defer z.Close()
	return archive.Tar(ctx, z, archive.TarOptions{Store: l.t.store, Layer: true}, add)
}

// zeros tells an empty tar archive.
func zeros(b []byte) bool { return strings.Trim(string(b), "\x00") == "" }

// counted adds to what was read of a target whose parts are files of their own.
type counted struct {
	io.ReaderAt
	t *Target
}

func (c counted) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, off)
	c.t.read.Add(int64(n))
	return n, err
}

// open opens a file of the layout; links of older docker save stay inside.
func (l *layout) open(name string) (fs.File, error) {
	name = inside(name)
	if !fs.ValidPath(name) || name == "." {
		return nil, fmt.Errorf("%q is no path inside of the image", name)
	}
	return l.f.Open(name)
}

// inside is a name of a manifest as a path in the image; one with a leading slash means
// the same.
func inside(name string) string { return path.Clean(strings.TrimLeft(name, "/")) }

// resolve follows the links of a name that stands for a layer.
func (l *layout) resolve(name string) string {
	name = inside(name)
	for range 8 {
		if _, ok := l.layers[name]; ok {
			return name
		}
		to, err := fs.ReadLink(l.f, name)
		if err != nil {
			break
		}
		name = path.Clean(path.Join(path.Dir(name), to))
	}
	return name
}

// text reads a manifest or a configuration.
func (l *layout) text(name string) ([]byte, error) {
	h, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	b, err := io.ReadAll(io.LimitReader(h, maxManifest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(b) > maxManifest:
		return nil, fmt.Errorf("%s: longer than any manifest", name)
	}
	return b, nil
}

func (l *layout) json(name string, v any) error {
	b, err := l.text(name)
	if err != nil {
		return err
	}
	return decode(name, b, v)
}

func decode(name string, b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

var digestForm = lazyre.New(`^([a-z0-9]+(?:[.+_-][a-z0-9]+)*):([0-9a-zA-Z=_-]{32,256})$`)

// blobPath turns a digest into the path of its blob. A digest is foreign text.
func blobPath(digest string) (string, error) {
	m := digestForm.FindStringSubmatch(digest)
	if m == nil {
		return "", fmt.Errorf("%.80q is no digest", digest)
	}
	return "blobs/" + m[1] + "/" + m[2], nil
}

// found is one image of an index.
type found struct {
	d        descriptor
	platform string
}

// choose walks through the index to the manifest of one platform.
func (l *layout) choose(want string) (manifest, []string, error) {
	var top manifest
	if err := l.json("index.json", &top); err != nil {
		return top, nil, err
	}
	var all []found
	if why := l.collect(top, 0, map[string]bool{}, &all); len(all) == 0 && why != nil {
		return top, nil, fmt.Errorf("index.json names no image: %w", why)
	} else if len(all) == 0 {
		return top, nil, errors.New("index.json names no image")
	}
	var names []string
	for _, f := range all {
		if f.platform != "" && !slices.Contains(names, f.platform) {
			names = append(names, f.platform)
		}
	}
	pick, err := pickPlatform(len(all), func(i int) string { return all[i].platform }, want, names)
	if err != nil {
		return top, nil, err
	}
	var m manifest
	err = l.blob(all[pick].d, &m)
	return m, names, err
}

// collect lists the images of an index and of those in it. What it cannot follow is
// passed over; why is what stands in the way, for the case that nothing is left.
func (l *layout) collect(m manifest, depth int, seen map[string]bool, out *[]found) (why error) {
	for _, d := range m.Manifests {
		if len(*out) == maxManifests {
			break
		}
		if d.Annotations["vnd.docker.reference.type"] == "attestation-manifest" {
			continue
		}
		plat := ""
		if d.Platform != nil {
			plat = d.Platform.OS + "/" + d.Platform.Architecture
			if plat == "unknown/unknown" {
				continue
			}
		}
		p, err := blobPath(d.Digest)
		switch index := strings.Contains(d.MediaType, "index") || strings.Contains(d.MediaType, "manifest.list"); {
		case err != nil:
		case index && (depth == maxIndexes || len(seen) == maxRead):
			err = errors.New("too many indexes within indexes")
		case index && seen[p]:
			err = fmt.Errorf("%s: an index that names itself, or is named twice", p)
		case index:
			seen[p] = true
			var sub manifest
			if err = l.blob(d, &sub); err == nil {
				err = l.collect(sub, depth+1, seen, out)
			}
		case !exists(l.f, p): // an index may name what was not copied along
			err = fmt.Errorf("%s: no such blob", p)
		default:
			*out = append(*out, found{d, plat})
		}
		if why == nil {
			why = err
		}
	}
	return why
}

// blob reads the manifest, index or configuration that a descriptor names. One that is
// not what its digest says is still looked at, and that is told.
func (l *layout) blob(d descriptor, v any) error {
	p, err := blobPath(d.Digest)
	if err != nil {
		return err
	}
	b, err := l.text(p)
	if err != nil {
		return err
	}
	if sum, ok := strings.CutPrefix(d.Digest, "sha256:"); ok && fmt.Sprintf("%x", sha256.Sum256(b)) != strings.ToLower(sum) {
		l.t.Problems = append(l.t.Problems, fact.Problem{What: p, Why: "its content is not what its digest says: it was changed or damaged"})
	}
	return decode(p, b, v)
}

// pickPlatform chooses among n images.
func pickPlatform(n int, platform func(int) string, want string, names []string) (int, error) {
	match := func(want string) int {
		for i := range n {
			p := platform(i)
			if p == want || !strings.Contains(want, "/") && unameArch(path.Base(p)) == unameArch(want) {
				return i
			}
		}
		return -1
	}
	if want != "" {
		if strings.Count(want, "/") > 1 { // linux/arm64/v8
			want = want[:strings.LastIndexByte(want, '/')]
		}
		if i := match(want); i >= 0 {
			return i, nil
		}
		if n == 1 && platform(0) == "" {
			return 0, nil
		}
		return 0, fmt.Errorf("no image for --platform %s; there are: %s", want, strings.Join(names, ", "))
	}
	if i := match("linux/" + runtime.GOARCH); i >= 0 {
		return i, nil
	}
	if n == 1 || len(names) <= 1 {
		return 0, nil
	}
	return 0, fmt.Errorf("images for several platforms: say which with --platform (%s)", strings.Join(names, ", "))
}

// chooseDocker chooses among the images of a docker save archive. Their
// platforms stand in their configurations.
func (l *layout) chooseDocker(ms []dockerManifest, want string) (dockerManifest, error) {
	if len(ms) == 0 {
		return dockerManifest{}, errors.New("manifest.json names no image")
	}
	if len(ms) > maxManifests {
		return dockerManifest{}, fmt.Errorf("%d images", len(ms))
	}
	if len(ms) > 1 && want == "" {
		l.t.Problems = append(l.t.Problems, fact.Problem{What: "manifest.json", Why: fmt.Sprintf("names %d images; the first one was looked at (%s)", len(ms), strings.Join(ms[0].RepoTags, ", "))})
	}
	if want == "" {
		return ms[0], nil
	}
	plats := make([]string, len(ms))
	for i, m := range ms {
		var c imageConfig
		if err := l.json(m.Config, &c); err != nil {
			return m, err
		}
		plats[i] = c.OS + "/" + c.Architecture
	}
	i, err := pickPlatform(len(ms), func(i int) string { return plats[i] }, want, plats)
	return ms[i], err
}

// unameArch turns Go's and Docker's names of an architecture into those of uname -m.
func unameArch(s string) string {
	switch s {
	case "amd64", "x86-64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return s
}

// readStream reads a compressed archive once. Members that are layers of an
// image are indexed on the way, each on its own, as the manifest that says in
// which order they come may stand behind them.
func (t *Target) readStream(ctx context.Context, r io.Reader) (*vfs.FS, map[string][]archive.Op, error) {
	f := vfs.New(archive.MaxNames)
	layers := map[string][]archive.Op{}
	names, text := 0, 0
	member := func(name string, size int64, r io.Reader) (bool, error) {
		if !layerName(name) || size == 0 {
			return false, nil
		}
		if len(layers) == maxLayers {
			return false, errors.New("too many layers")
		}
		z, _, err := archive.Decompress(r)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		defer z.Close()
		p := &peeker{r: z}
		if head, _ := p.peek(512); !isTar(head) && !zeros(head) {
			if strings.HasPrefix(strings.TrimLeft(string(head), " \t\r\n"), "{") { // a manifest or configuration
				b, err := io.ReadAll(io.LimitReader(p, maxManifest))
				if err != nil {
					return false, err
				}
				kept := spool.NewSparse(t.store)
				if err := kept.Keep(b, 0); err != nil {
					return false, err
				}
				return true, f.Add(vfs.Entry{Name: name, Mode: 0o644, Size: int64(len(b)), Data: kept})
			}
			return true, nil
		}
		ops := []archive.Op{}
		err = archive.Tar(ctx, p, archive.TarOptions{Store: t.store, Layer: true}, func(o archive.Op) error {
			names, text = names+1, text+len(o.Name)+len(o.Link)
			if names > archive.MaxNames || text > maxOpText {
				return fmt.Errorf("%w (more than %d, or %d MB of names, in its layers)", vfs.ErrFull, archive.MaxNames, maxOpText>>20)
			}
			ops = append(ops, o)
			return nil
		})
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		layers[path.Clean(name)] = ops
		return true, nil
	}
	err := archive.Tar(ctx, r, archive.TarOptions{Store: t.store, Member: member}, func(o archive.Op) error { return archive.Apply(f, o) })
	if err != nil {
		return nil, nil, err
	}
	if !isLayout(f) && !isDockerSave(f) {
		layers = nil
	}
	return f, layers, nil
}

// layerName reports whether a member of an archive may be a layer of an image, or its manifest.
func layerName(name string) bool {
	name = strings.TrimPrefix(name, "./")
	dir, base := path.Split(name)
	switch {
	case strings.HasPrefix(dir, "blobs/"), base == "layer.tar" && strings.Count(name, "/") == 1:
		return true
	}
	return dir == "" && (strings.HasSuffix(base, ".tar") || strings.HasSuffix(base, ".tar.gz"))
}
