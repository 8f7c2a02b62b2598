package target

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

func factsOf(t *testing.T, data []byte, name string, o Options) *fact.Bundle {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return factsAt(t, p, o)
}

func factsAt(t *testing.T, p string, o Options) *fact.Bundle {
	t.Helper()
	tg, err := source.Open(context.Background(), p, source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	var b fact.Bundle
	if _, err := Collect(context.Background(), tg, o, &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// same leaves out what is meant to differ between forms of one thing: how a
// fact was seen of a library that is compressed.
func same(t *testing.T, b *fact.Bundle) string {
	t.Helper()
	c := *b
	c.Subject, c.Target, c.Container, c.Host.OS, c.Host.Arch = fact.Subject{}, fact.Target{}, fact.Container{}, fact.Val[string]{}, fact.Val[string]{}
	c.Torch = append([]fact.Torch(nil), b.Torch...)
	for i := range c.Torch {
		w := &c.Torch[i]
		for _, v := range []*fact.Val[bool]{&w.NCCL, &w.Gloo, &w.MPI, &w.XCCL, &w.NCCLStatic, &w.Distributed} {
			v.At = fact.Evidence{}
		}
	}
	out, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// One root file system says the same in every form that an image can have.
func TestFormsOfAnImageAgree(t *testing.T) {
	site := packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.21.5"))
	root := packtest.Root(site)
	env := []string{"PATH=/opt/env/bin:/usr/bin"}
	cfg := packtest.Config{Arch: runtime.GOARCH, Env: env}
	enroot := root.With(packtest.Tree{"etc/environment": strings.Join(env, "\n") + "\n"})
	apptainer := root.With(packtest.Tree{".singularity.d/env/10-docker2singularity.sh": "export PATH=\"/opt/env/bin:/usr/bin\"\n"})
	// The same files, a library of them only in the second layer.
	first := packtest.Tree{}
	for n, s := range root {
		if !strings.Contains(n, "libnccl") {
			first[n] = s
		}
	}
	img := func(layers ...[]byte) packtest.Image { return packtest.Image{Config: cfg, Layers: layers} }
	tar := root.Tar()

	want := factsAt(t, enroot.Write(t, t.TempDir()), Options{})
	if w := want.Winner(); w == nil || w.Version.Or("") != "2.6.0+cu124" || !w.NCCL.Or(false) || !w.Distributed.Or(false) {
		t.Fatalf("the folder: %+v", w)
	}
	if l := want.LoadOf("libnccl.so.2"); l == nil || l.Version.Or("") != "2.21.5" || l.Via != "DT_RUNPATH" {
		t.Fatalf("the folder's libnccl: %+v", l)
	}
	for name, data := range map[string][]byte{
		"root.tar": enroot.Tar(), "root.tar.gz": packtest.Gzip(enroot.Tar()), "root.tar.xz": packtest.Xz(enroot.Tar()),
		"oci.tar": packtest.OCI(img(packtest.Gzip(tar))).Tar(), "oci-zstd.tar": packtest.OCI(img(packtest.Zstd(tar))).Tar(), "oci-plain.tar": packtest.OCI(img(tar)).Tar(),
		"oci-two.tar": packtest.OCI(img(packtest.Gzip(first.Tar()), packtest.Zstd(tar))).Tar(),
		"save.tar":    packtest.DockerSave(img(tar)).Tar(), "save.tar.gz": packtest.Gzip(packtest.DockerSave(img(tar)).Tar()),
		"gzip.sqsh": enroot.Squashfs(t, "-comp", "gzip"), "lzo.sqsh": enroot.Squashfs(t, "-comp", "lzo", "-noD"), "lz4.sqsh": enroot.Squashfs(t, "-comp", "lz4"),
		"zstd.sqsh": enroot.Squashfs(t, "-comp", "zstd", "-b", "1M"), "xz.sqsh": enroot.Squashfs(t, "-comp", "xz"),
		"image.sif": packtest.SIF(apptainer.Squashfs(t), "02"),
	} {
		got := factsOf(t, data, name, Options{})
		a, b := same(t, want), same(t, got)
		if name == "image.sif" { // its shell has the folder of --nv on the path
			b = strings.ReplaceAll(b, ":/.singularity.d/libs", "")
			b = strings.Replace(b, `  {
   "name": "LD_LIBRARY_PATH",
   "value": "/.singularity.d/libs"
  },
`, "", 1)
			var keep []string
			for line := range strings.Lines(b) {
				if !strings.Contains(line, "singularity.d") {
					keep = append(keep, line)
				}
			}
			if got.LoadOf("libnccl.so.2").Path.V != want.LoadOf("libnccl.so.2").Path.V || got.Winner().Dir != want.Winner().Dir || got.Winner().Version.V != want.Winner().Version.V || !got.Winner().NCCL.V {
				t.Errorf("%s: %+v", name, got.Winner())
			}
			continue
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s differs from the folder (-want +got):\n%s", name, d)
		}
	}
}

// One package says the same as a wheel, a conda package, an archive and a folder.
func TestFormsOfAPackageAgree(t *testing.T) {
	site := packtest.Site("2.6.0+cu124", "12.4")
	for name, data := range map[string][]byte{
		"torch-2.6.0+cu124-cp311-cp311-manylinux_2_28_x86_64.whl": site.Zip(nil),
		"stored.whl":    site.Zip(func(string) bool { return true }),
		"site.tar":      site.Tar(),
		"site.tar.gz":   packtest.Gzip(site.Tar()),
		"pytorch.conda": site.Under("lib/python3.11/site-packages").With(packtest.Tree{"info/index.json": `{"name":"pytorch","version":"2.6.0","build":"cuda126_mkl_py311_1","subdir":"linux-64"}`}).Conda("x"),
		"site.sqsh":     site.Squashfs(t),
	} {
		b := factsOf(t, data, name, Options{})
		w := b.Winner()
		if w == nil || w.Version.Or("") != "2.6.0+cu124" || w.CUDA.Or("") != "12.4" || !w.NCCL.Or(false) || !w.Gloo.Or(false) || w.MPI.Or(true) || !w.Distributed.Or(false) ||
			w.NCCLVersion.Or("") != "2.21.5" || strings.Join(w.Archs.Or(nil), " ") != "sm_80 sm_90" || w.Machine.Or("") != "x86_64" || len(w.Damage) > 0 {
			t.Errorf("%s: %+v", name, w)
		}
		if b.Host.OS.Or("") != "linux" || b.Target.Platform != "linux/x86_64" || len(b.Loads) > 0 || len(b.Problems) > 0 {
			t.Errorf("%s: os %v, platform %s, loads %v, problems %v", name, b.Host.OS, b.Target.Platform, b.Loads, b.Problems)
		}
		switch name {
		case "pytorch.conda":
			if o := w.Origin.V; o.Kind != fact.OriginConda || o.Build != "cuda126_mkl_py311_1" {
				t.Errorf("%s: origin %+v", name, o)
			}
		case "torch-2.6.0+cu124-cp311-cp311-manylinux_2_28_x86_64.whl":
			if strings.Join(b.Target.Tags, " ") != "cp311-cp311-manylinux_2_28_x86_64" || b.Target.Requires != ">=3.9.0" {
				t.Errorf("%s: %+v", name, b.Target)
			}
		}
	}
}

// The archive of a conda environment is examined as one, with its loader's
// view; the system's libraries are not in it and are not missed.
func TestEnvironmentArchive(t *testing.T) {
	env := packtest.Prefix(packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.20.5"))).With(packtest.Tree{"conda-meta/python-3.11.4-h_0.json": "{}"})
	b := factsOf(t, packtest.Gzip(env.Tar()), "env.tar.gz", Options{})
	if b.Python.Version.Or("") != "3.11.4" || b.Python.Exe.Or("") != "/env/bin/python" || !b.Python.Conda.IsKnown() {
		t.Errorf("%+v", b.Python)
	}
	l := b.LoadOf("libnccl.so.2")
	if l == nil || l.Version.Or("") != "2.20.5" || b.LoadOf("libcudart.so.12") == nil || !b.LoadOf("libcudart.so.12").Path.IsAbsent() {
		t.Errorf("loads %+v", b.Loads)
	}
	for _, l := range b.Loads {
		if strings.HasPrefix(l.Soname, "libc.") || strings.HasPrefix(l.Soname, "libcuda.") {
			t.Errorf("%s is said to be missing", l.Soname)
		}
	}
}

// Of a virtual environment the interpreter is a link to a system that is not there.
func TestVenvArchive(t *testing.T) {
	env := packtest.Site("2.6.0+cpu", "").Under("venv/lib/python3.11/site-packages").With(packtest.Tree{"venv/bin/python": "->/usr/bin/python3.11", "venv/bin/python3": "->python", "venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n"})
	b := factsOf(t, packtest.Zstd(env.Tar()), "venv.tar.zst", Options{})
	if w := b.Winner(); w == nil || w.Version.Or("") != "2.6.0+cpu" || w.Accel() != fact.AccelCPU {
		t.Errorf("%+v", b.Winner())
	}
}

// ~/.local of the home that is bound in shadows the image's torch.
func TestHomeIsBoundIn(t *testing.T) {
	root := packtest.Root(packtest.Site("2.6.0+cu124", "12.4")).With(packtest.Tree{".singularity.d/env/10-x.sh": "export PATH=/opt/env/bin\n"})
	home := packtest.Site("2.1.0+cpu", "").Under(".local/lib/python3.11/site-packages").Write(t, t.TempDir())
	f, err := source.OpenFolder(home)
	if err != nil {
		t.Fatal(err)
	}
	data := packtest.SIF(root.Squashfs(t), "02")
	b := factsOf(t, data, "a.sif", Options{Home: "/home/me", HomeFS: f})
	if w := b.Winner(); w == nil || w.Dir != "/home/me/.local/lib/python3.11/site-packages/torch" || w.Kind != fact.PathUserSite || len(b.Torch) != 2 {
		t.Errorf("%+v", b.Torch)
	}
	if b = factsOf(t, data, "a.sif", Options{}); len(b.Torch) != 1 {
		t.Errorf("without a home: %+v", b.Torch)
	}
}

func TestNotTorch(t *testing.T) {
	data := packtest.Tree{"numpy/__init__.py": "", "numpy-1.26.4.dist-info/WHEEL": "Tag: x\n", "numpy-1.26.4.dist-info/METADATA": "Name: numpy\n"}.Zip(nil)
	p := filepath.Join(t.TempDir(), "numpy-1.26.4-cp311-cp311-linux_x86_64.whl")
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	tg, err := source.Open(context.Background(), p, source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	var b fact.Bundle
	if _, err := Collect(context.Background(), tg, Options{}, &b); err == nil || err.Error() != "a package of numpy 1.26.4, without torch in it" {
		t.Errorf("%v", err)
	}
}

// The newest forward compatibility package of an image is found wherever CUDA's and NGC's images have it.
func TestCompat(t *testing.T) {
	for name, c := range map[string]struct {
		tree packtest.Tree
		want string
	}{
		"nvidia/cuda": {packtest.Tree{"usr/local/cuda-12.9/compat/libcuda.so.575.57.08": "x", "usr/local/cuda-12.9/compat/libcuda.so.1": "->libcuda.so.575.57.08", "usr/local/cuda": "->cuda-12.9"}, "575.57.08"},
		"NGC":         {packtest.Tree{"usr/local/cuda-13.0/compat/lib.real/libcuda.so.580.65.06": "x"}, "580.65.06"},
		"two":         {packtest.Tree{"usr/local/cuda-12.4/compat/libcuda.so.550.54.15": "x", "usr/local/cuda-13.0/compat/libcuda.so.580.65.06": "x"}, "580.65.06"},
		"none":        {packtest.Tree{"usr/local/cuda/compat/libcuda.so.1": "x", "usr/local/cuda/compat/libcuda.so.abc": "x", "usr/local/cuda/lib64/libcuda.so.580.65.06": "x"}, ""},
	} {
		root := packtest.Root(packtest.Site("2.6.0+cu124", "12.4")).With(c.tree)
		for _, b := range []*fact.Bundle{factsAt(t, root.Write(t, t.TempDir()), Options{}), factsOf(t, packtest.Gzip(root.Tar()), "root.tar.gz", Options{})} {
			if got := b.Target.Compat; got.V.Version != c.want || got.IsKnown() != (c.want != "") || !got.Looked() {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}
