// Package packtest writes artefacts for tests: tar archives, wheels, conda
// packages, OCI layouts, docker save archives and SIF files of a tree in memory.
package packtest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// Tree is a tree of files: path without leading slash to content. A content
// that begins with "->" is a symbolic link, "=>" a hard link to another path; a path that ends with "/" is a folder.
type Tree map[string]string

// Names returns the paths in order.
func (t Tree) Names() []string {
	var out []string
	for n := range t {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// With returns a copy with more files; a content of "" under prefix "-" removes.
func (t Tree) With(more Tree) Tree {
	out := Tree{}
	for _, m := range []Tree{t, more} {
		for n, s := range m {
			out[n] = s
		}
	}
	return out
}

// Under returns the tree below a folder of that name.
func (t Tree) Under(dir string) Tree {
	out := Tree{}
	for n, s := range t {
		if rest, ok := strings.CutPrefix(s, "=>"); ok {
			s = "=>" + dir + "/" + rest
		}
		out[dir+"/"+n] = s
	}
	return out
}

// Sub returns what lies below a folder.
func (t Tree) Sub(dir string) Tree {
	out := Tree{}
	for n, s := range t {
		if rest, ok := strings.CutPrefix(n, dir+"/"); ok && rest != "" {
			out[rest] = s
		}
	}
	return out
}

func mode(name string) int64 {
	if d := filepath.Base(filepath.Dir(name)); d == "bin" || d == "sbin" || strings.Contains(name, ".so") {
		return 0o755
	}
	return 0o644
}

// Write unpacks the tree into a folder.
func (t Tree) Write(tb testing.TB, dir string) string {
	tb.Helper()
	for _, n := range t.Names() {
		p := filepath.Join(dir, filepath.FromSlash(n))
		s := t[n]
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		switch {
		case err != nil:
		case strings.HasSuffix(n, "/"):
			err = os.MkdirAll(p, 0o755)
		case strings.HasPrefix(s, "->"):
			err = os.Symlink(s[2:], p)
		case strings.HasPrefix(s, "=>"):
			err = os.WriteFile(p, []byte(t[s[2:]]), fs.FileMode(mode(n)))
		default:
			err = os.WriteFile(p, []byte(s), fs.FileMode(mode(n)))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// Tar returns a tar archive.
func (t Tree) Tar() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	// Hard links come after what they link to.
	names := t.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return boolInt(strings.HasPrefix(t[a], "=>")) - boolInt(strings.HasPrefix(t[b], "=>"))
	})
	for _, n := range names {
		s := t[n]
		h := &tar.Header{Name: "./" + n, Mode: mode(n), Format: tar.FormatPAX}
		switch {
		case strings.HasSuffix(n, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case strings.HasPrefix(s, "->"):
			h.Typeflag, h.Linkname = tar.TypeSymlink, s[2:]
		case strings.HasPrefix(s, "=>"):
			h.Typeflag, h.Linkname = tar.TypeLink, "./"+s[2:]
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(s))
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if h.Typeflag == tar.TypeReg {
			io.WriteString(w, s)
		}
	}
	w.Close()
	return b.Bytes()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Zip returns a zip archive. Members whose name store accepts are not compressed.
func (t Tree) Zip(store func(string) bool) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, n := range t.Names() {
		s := t[n]
		if strings.HasSuffix(n, "/") || strings.HasPrefix(s, "->") {
			continue
		}
		if strings.HasPrefix(s, "=>") {
			s = t[s[2:]]
		}
		h := &zip.FileHeader{Name: n, Method: zip.Deflate}
		if store != nil && store(n) {
			h.Method = zip.Store
		}
		h.SetMode(fs.FileMode(mode(n)))
		f, err := w.CreateHeader(h)
		if err != nil {
			panic(err)
		}
		io.WriteString(f, s)
	}
	w.Close()
	return b.Bytes()
}

// Gzip compresses.
func Gzip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// Zstd compresses.
func Zstd(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

// Xz compresses.
func Xz(b []byte) []byte {
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err != nil {
		panic(err)
	}
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// Bzip2 compresses with the program of that name.
func Bzip2(tb testing.TB, b []byte) []byte {
	cmd := exec.Command(testenv.Tool(tb, "bzip2"), "-1")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.Output()
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Conda returns a package of format 2.
func (t Tree) Conda(name string) []byte {
	info, pkg := Tree{}, Tree{}
	for n, s := range t {
		if strings.HasPrefix(n, "info/") {
			info[n] = s
		} else {
			pkg[n] = s
		}
	}
	all := func(string) bool { return true }
	return Tree{"metadata.json": `{"conda_pkg_format_version": 2}`,
		"info-" + name + ".tar.zst": string(Zstd(info.Tar())), "pkg-" + name + ".tar.zst": string(Zstd(pkg.Tar()))}.Zip(all)
}

// Config is the part of an image configuration that matters.
type Config struct {
	Arch       string
	Env        []string
	Entrypoint []string
	Cmd        []string
	WorkDir    string
}

func (c Config) json() string {
	b, _ := json.Marshal(map[string]any{"architecture": c.Arch, "os": "linux",
		"config": map[string]any{"Env": c.Env, "Entrypoint": c.Entrypoint, "Cmd": c.Cmd, "WorkingDir": c.WorkDir}})
	return string(b)
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// Image is an image of one platform: its layers as they are stored.
type Image struct {
	Config Config
	Layers [][]byte
}

// OCI returns an OCI layout with the images as one index.
func OCI(images ...Image) Tree {
	out := Tree{"oci-layout": `{"imageLayoutVersion":"1.0.0"}`}
	blob := func(s, media string) string {
		out["blobs/sha256/"+digest(s)] = s
		return fmt.Sprintf(`"mediaType":%q,"digest":"sha256:%s","size":%d`, media, digest(s), len(s))
	}
	var list []string
	for _, im := range images {
		var layers []string
		for _, l := range im.Layers {
			media := "application/vnd.oci.image.layer.v1.tar"
			switch {
			case bytes.HasPrefix(l, []byte{0x1f, 0x8b}):
				media += "+gzip"
			case bytes.HasPrefix(l, []byte{0x28, 0xb5}):
				media += "+zstd"
			}
			layers = append(layers, "{"+blob(string(l), media)+"}")
		}
		m := fmt.Sprintf(`{"schemaVersion":2,"config":{%s},"layers":[%s]}`, blob(im.Config.json(), "application/vnd.oci.image.config.v1+json"), strings.Join(layers, ","))
		list = append(list, fmt.Sprintf(`{%s,"platform":{"os":"linux","architecture":%q}}`, blob(m, "application/vnd.oci.image.manifest.v1+json"), im.Config.Arch))
	}
	// As buildx writes it: an index within the index, and an attestation.
	att := fmt.Sprintf(`{%s,"platform":{"os":"unknown","architecture":"unknown"}}`, blob(`{}`, "application/vnd.oci.image.manifest.v1+json"))
	inner := fmt.Sprintf(`{"schemaVersion":2,"manifests":[%s]}`, strings.Join(append(list, att), ","))
	out["index.json"] = fmt.Sprintf(`{"schemaVersion":2,"manifests":[{%s}]}`, blob(inner, "application/vnd.oci.image.index.v1+json"))
	return out
}

// OCIDir writes an OCI layout of one image with one layer, the file layer, which is moved into it.
func OCIDir(tb testing.TB, dir string, c Config, layer string) string {
	tb.Helper()
	f, err := os.Open(layer)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		tb.Fatal(err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	cfg := c.json()
	m := fmt.Sprintf(`{"schemaVersion":2,"config":{"digest":"sha256:%s","size":%d},"layers":[{"digest":"sha256:%s","size":%d}]}`, digest(cfg), len(cfg), sum, n)
	Tree{"oci-layout": `{"imageLayoutVersion":"1.0.0"}`, "blobs/sha256/" + digest(cfg): cfg, "blobs/sha256/" + digest(m): m,
		"index.json": fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":"sha256:%s","size":%d,"platform":{"os":"linux","architecture":%q}}]}`, digest(m), len(m), c.Arch),
	}.Write(tb, dir)
	if err := os.Rename(layer, filepath.Join(dir, "blobs/sha256", sum)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// DockerSave returns what docker save of older releases writes.
func DockerSave(im Image) Tree {
	out := Tree{"config.json": im.Config.json()}
	var names []string
	for i, l := range im.Layers {
		n := fmt.Sprintf("%064x/layer.tar", i+1)
		out[n] = string(l)
		names = append(names, n)
	}
	// A layer that comes twice is a link to the first.
	b, _ := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{"torch:test"}, "Layers": names}})
	out["manifest.json"] = string(b)
	return out
}

// Squashfs packs the tree with mksquashfs and its options.
func (t Tree) Squashfs(tb testing.TB, opts ...string) []byte {
	tb.Helper()
	dir := t.Write(tb, tb.TempDir())
	return SquashfsOf(tb, dir, opts...)
}

// SquashfsOf packs a folder with mksquashfs and its options.
func SquashfsOf(tb testing.TB, dir string, opts ...string) []byte {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "image.sqsh")
	args := append([]string{dir, out, "-quiet", "-no-progress", "-all-root"}, opts...)
	if msg, err := exec.Command(testenv.Tool(tb, "mksquashfs"), args...).CombinedOutput(); err != nil {
		tb.Fatalf("mksquashfs: %v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// SIF wraps a squashfs image as Apptainer does, arch being its two digits (02: amd64, 04: arm64).
func SIF(squash []byte, arch string) []byte {
	return append(SIFHead(int64(len(squash)), arch), squash...)
}

// SIFHead is what stands before a squashfs image of size bytes in a SIF.
func SIFHead(size int64, arch string) []byte {
	const total = 48
	le := binary.LittleEndian
	h := make([]byte, 128+total*585)
	copy(h, "#!/usr/bin/env run-singularity\n")
	copy(h[32:], "SIF_MAGIC\x0001\x00"+arch+"\x00")
	le.PutUint64(h[80:], total-1)
	le.PutUint64(h[88:], total)
	le.PutUint64(h[96:], 128)
	le.PutUint64(h[104:], total*585)
	for len(h)%4096 != 0 {
		h = append(h, 0)
	}
	d := h[128:]
	le.PutUint32(d, 0x4004) // a file system
	d[4] = 1
	le.PutUint32(d[5:], 1)
	le.PutUint64(d[17:], uint64(len(h)))
	le.PutUint64(d[25:], uint64(size))
	copy(d[73:], "squashfs")
	le.PutUint32(d[201:], 1) // squashfs
	le.PutUint32(d[205:], 2) // the primary system
	copy(d[209:], arch)
	return h
}

// Site is a folder of packages with a small CUDA build of torch, as a wheel has it.
func Site(version, cuda string) Tree {
	cudaLine, local := "None", ""
	if cuda != "" {
		cudaLine = "'" + cuda + "'"
		local = "\nRequires-Dist: nvidia-nccl-cu12 (==2.21.5) ; platform_system == \"Linux\""
	}
	text := func(l elftest.Lib) string { return string(l.Bytes()) }
	py := elftest.Lib{Soname: "libtorch_python.so", Needed: []string{"libtorch.so", "libtorch_cpu.so"}, RunPath: "$ORIGIN", Undefined: []string{"_ZTIN4c10d16ProcessGroupGlooE"},
		Sections: []elftest.Section{{Name: ".rodata", Data: []byte("x\x00_c10d_init\x00sm_80 sm_90\x00y")}}}
	t := Tree{
		"torch/__init__.py":                             "from .version import __version__\n",
		"torch/version.py":                              "__version__ = '" + version + "'\ndebug = False\ncuda = " + cudaLine + "\ngit_version = 'abc'\nhip = None\n",
		"torch/_C.cpython-311-x86_64-linux-gnu.so":      text(elftest.Lib{Needed: []string{"libtorch_python.so"}, RunPath: "$ORIGIN/lib"}),
		"torch/lib/libtorch.so":                         text(elftest.Lib{Soname: "libtorch.so"}),
		"torch/lib/libc10.so":                           text(elftest.Lib{Soname: "libc10.so"}),
		"torch/lib/libtorch_cpu.so":                     text(elftest.Lib{Soname: "libtorch_cpu.so", Needed: []string{"libc10.so"}, RunPath: "$ORIGIN", Defined: []string{"_ZTIN4c10d5StoreE", "_ZTIN4c10d16ProcessGroupGlooE"}}),
		"torch-" + version + ".dist-info/METADATA":      "Metadata-Version: 2.1\nName: torch\nVersion: " + version + "\nRequires-Python: >=3.9.0" + local + "\n\nText\n",
		"torch-" + version + ".dist-info/WHEEL":         "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
		"torch-" + version + ".dist-info/top_level.txt": "torch\n",
	}
	if cuda != "" {
		py.Needed = append(py.Needed, "libtorch_cuda.so")
		py.Undefined = append(py.Undefined, "_ZTIN4c10d16ProcessGroupNCCLE")
		t["torch/lib/libtorch_cuda.so"] = text(elftest.Lib{Soname: "libtorch_cuda.so", Needed: []string{"libnccl.so.2", "libcudart.so.12"}, RunPath: "$ORIGIN:$ORIGIN/../../nvidia/nccl/lib",
			Defined: []string{"_ZTIN4c10d16ProcessGroupNCCLE"}, Undefined: []string{"ncclCommInitRank"}})
	}
	t["torch/lib/libtorch_python.so"] = text(py)
	var rec strings.Builder
	for _, n := range t.Names() {
		fmt.Fprintf(&rec, "%s,sha256=x,%d\n", n, len(t[n]))
	}
	t["torch-"+version+".dist-info/RECORD"] = rec.String()
	return t
}

// NVIDIA are the libraries of nvidia-nccl and nvidia-cuda-runtime beside torch.
func NVIDIA(nccl string) Tree {
	return Tree{
		"nvidia/nccl/lib/libnccl.so.2": string(elftest.Lib{Soname: "libnccl.so.2", Defined: []string{"ncclCommInitRank"},
			Sections: []elftest.Section{{Name: ".rodata", Data: []byte("x\x00NCCL version " + nccl + "+cuda12.4\x00")}}}.Bytes()),
		"nvidia_nccl_cu12-" + nccl + ".dist-info/METADATA": "Name: nvidia-nccl-cu12\nVersion: " + nccl + "\n",
		"nvidia_nccl_cu12-" + nccl + ".dist-info/RECORD":   "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n",
	}
}

// Prefix is an environment with an interpreter of its own, as conda makes it.
func Prefix(site Tree) Tree {
	t := Tree{
		"bin/python3.11":              string(elftest.Lib{Interp: "/lib64/ld-linux-x86-64.so.2"}.Bytes()),
		"bin/python3":                 "->python3.11",
		"bin/python":                  "->python3.11",
		"lib/python3.11/os.py":        "",
		"lib/python3.11/site.py":      "",
		"lib/python3.11/lib-dynload/": "",
	}
	return t.With(site.Under("lib/python3.11/site-packages"))
}

// Root is a root file system with an environment in /opt/env.
func Root(site Tree) Tree {
	return Prefix(site).Under("opt/env").With(Tree{
		"etc/os-release": "PRETTY_NAME=\"Test Linux 1\"\n", "etc/passwd": "root:x:0:0::/root:/bin/sh\n",
		"usr/bin/env": "#!", "bin": "->usr/bin", "lib64": "->usr/lib64",
		"usr/lib64/libcudart.so.12":      string(elftest.Lib{Soname: "libcudart.so.12"}.Bytes()),
		"usr/lib64/ld-linux-x86-64.so.2": string(elftest.Lib{Soname: "ld-linux-x86-64.so.2"}.Bytes()),
		"root/":                          "", "tmp/": "",
	})
}
