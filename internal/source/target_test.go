package source_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

func open(t *testing.T, b []byte, o source.OpenOptions) (*source.Target, error) {
	t.Helper()
	p := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(p, b, 0o644); err != nil {
		t.Fatal(err)
	}
	tg, err := source.Open(context.Background(), p, o)
	if tg != nil {
		t.Cleanup(func() { tg.Close() })
	}
	return tg, err
}

func content(t *testing.T, f fs.FS, name string) string {
	t.Helper()
	b, err := fs.ReadFile(f, name)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

// Kinds are told by content, whatever a file is called.
func TestKinds(t *testing.T) {
	site := packtest.Site("2.6.0+cu124", "12.4")
	root := packtest.Root(site)
	env := packtest.Prefix(site)
	img := packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH, Env: []string{"PATH=/opt/env/bin:/usr/bin"}}, Layers: [][]byte{packtest.Gzip(root.Tar())}}
	info := packtest.Tree{"info/index.json": `{"name":"pytorch","version":"2.6.0","build":"cuda126_mkl_py311_1","subdir":"linux-64"}`}
	conda := site.Under("lib/python3.11/site-packages").With(info)
	sq := root.Squashfs(t, "-comp", "zstd")
	for _, c := range []struct {
		name, kind string
		data       []byte
		file       string // that FS must have
	}{
		{"wheel", source.KindWheel, site.Zip(nil), "torch/version.py"},
		{"wheel, stored", source.KindWheel, site.Zip(func(string) bool { return true }), "torch/version.py"},
		{".conda", source.KindConda, conda.Conda("pytorch-2.6.0-cuda126_mkl_py311_1"), "lib/python3.11/site-packages/torch/version.py"},
		{".tar.bz2 of conda", source.KindConda, packtest.Bzip2(t, conda.Tar()), "lib/python3.11/site-packages/torch/version.py"},
		{"conda-pack", source.KindEnv, packtest.Gzip(env.Tar()), "env/lib/python3.11/site-packages/torch/version.py"},
		{"environment in a folder, xz", source.KindEnv, packtest.Xz(env.Under("myenv").Tar()), "env/myenv/lib/python3.11/site-packages/torch/version.py"},
		{"environment, zip", source.KindEnv, env.With(packtest.Tree{"bin/python": "x"}).Zip(nil), "env/lib/python3.11/site-packages/torch/version.py"},
		{"environment, squashfs", source.KindEnv, env.Squashfs(t), "env/lib/python3.11/site-packages/torch/version.py"},
		{"packages", source.KindSite, packtest.Zstd(site.Tar()), "torch/version.py"},
		{"root file system", source.KindRootFS, root.Tar(), "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"OCI archive", source.KindOCI, packtest.OCI(img).Tar(), "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"OCI archive, gzip", source.KindOCI, packtest.Gzip(packtest.OCI(img).Tar()), "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"docker save", source.KindDocker, packtest.DockerSave(img).Tar(), "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"docker save, zstd", source.KindDocker, packtest.Zstd(packtest.DockerSave(img).Tar()), "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"squashfs", source.KindSquash, sq, "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"SIF", source.KindSIF, packtest.SIF(sq, "02"), "opt/env/lib/python3.11/site-packages/torch/version.py"},
		{"library", source.KindLibrary, []byte(site["torch/lib/libc10.so"]), "target"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg, err := open(t, c.data, source.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if tg.Kind != c.kind {
				t.Errorf("kind %s, want %s", tg.Kind, c.kind)
			}
			if got := content(t, tg.FS, c.file); c.kind != source.KindLibrary && got != site["torch/version.py"] || strings.HasPrefix(got, "error") {
				t.Errorf("%s: %q", c.file, got)
			}
			if tg.BytesRead() <= 0 || tg.Size != int64(len(c.data)) {
				t.Errorf("%d bytes of %d read", tg.BytesRead(), tg.Size)
			}
		})
	}
}

func TestFolders(t *testing.T) {
	site := packtest.Site("2.6.0+cpu", "")
	img := packtest.Image{Config: packtest.Config{Arch: "arm64", Env: []string{"A=1"}}, Layers: [][]byte{packtest.Root(site).Tar()}}
	for kind, tree := range map[string]packtest.Tree{source.KindOCI: packtest.OCI(img), source.KindRootFS: packtest.Root(site), source.KindSite: site, source.KindEnv: packtest.Prefix(site)} {
		tg, err := source.Open(context.Background(), tree.Write(t, t.TempDir()), source.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		defer tg.Close()
		if tg.Kind != kind {
			t.Errorf("kind %s, want %s", tg.Kind, kind)
		}
	}
}

// What is no artefact, or a damaged one, is an error that names path and reason.
func TestRefused(t *testing.T) {
	site := packtest.Site("2.6.0", "12.4")
	root := packtest.Root(site).Tar()
	img := packtest.Image{Config: packtest.Config{Arch: "amd64"}, Layers: [][]byte{packtest.Gzip(root)}}
	whl := site.Zip(nil)
	sub := func(t packtest.Tree, name, s string) packtest.Tree { return t.With(packtest.Tree{name: s}) }
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"empty", nil, "empty file"},
		{"text", []byte("hello world, this is a log\n"), "begins with"},
		{"cut wheel", whl[:len(whl)/2], "no central directory"},
		{"cut tar.gz", packtest.Gzip(root)[:2000], "damaged or cut"},
		{"cut tar", root[:len(root)/2+100], "damaged or cut"},
		{"gzip of text", packtest.Gzip([]byte(strings.Repeat("text ", 300))), "without a tar archive inside"},
		{"tar of something", packtest.Tree{"a": "b"}.Tar(), "no torch package"},
		{"layer that is not there", sub(packtest.OCI(img), "index.json", `{"manifests":[{"digest":"sha256:`+strings.Repeat("0", 64)+`"}]}`).Tar(), "names no image"},
		{"digest that leads out", sub(packtest.OCI(img), "index.json", `{"manifests":[{"digest":"sha256:../../../../../../etc/passwd"}]}`).Tar(), "no image"},
		{"docker config that leads out", sub(packtest.DockerSave(img), "manifest.json", `[{"Config":"../../etc/passwd","Layers":["a"]}]`).Tar(), "no path inside"},
		{"docker layer that leads out", sub(packtest.DockerSave(img), "manifest.json", `[{"Config":"config.json","Layers":["../../../etc/passwd"]}]`).Tar(), "no path inside"},
		{"no manifest", sub(packtest.DockerSave(img), "manifest.json", `[]`).Tar(), "names no image"},
		{"manifest that is no JSON", sub(packtest.DockerSave(img), "manifest.json", `{{`).Tar(), "manifest.json"},
		{"squashfs head", []byte("hsqs" + strings.Repeat("\xff", 200)), "squashfs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg, err := open(t, c.data, source.OpenOptions{})
			if err == nil {
				t.Fatalf("opened as %s", tg.Kind)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "target") {
				t.Errorf("%v, want %q and the path", err, c.says)
			}
		})
	}
}

func TestPlatforms(t *testing.T) {
	layer := func(s string) []byte { return packtest.Gzip(packtest.Root(packtest.Tree{"x": s}).Tar()) }
	amd := packtest.Image{Config: packtest.Config{Arch: "amd64", Env: []string{"WHICH=amd64"}}, Layers: [][]byte{layer("amd64")}}
	arm := packtest.Image{Config: packtest.Config{Arch: "arm64", Env: []string{"WHICH=arm64"}}, Layers: [][]byte{layer("arm64")}}
	ppc := packtest.Image{Config: packtest.Config{Arch: "ppc64le", Env: []string{"WHICH=ppc64le"}}, Layers: [][]byte{layer("ppc64le")}}
	both, foreign := packtest.OCI(amd, arm).Tar(), packtest.OCI(ppc, packtest.Image{Config: packtest.Config{Arch: "s390x"}, Layers: ppc.Layers}).Tar()
	for _, c := range []struct {
		data       []byte
		want, says string
		platform   string
	}{
		{both, runtime.GOARCH, "", ""}, {both, "arm64", "", "linux/arm64"}, {both, "arm64", "", "aarch64"}, {both, "arm64", "", "linux/arm64/v8"}, {both, "amd64", "", "x86_64"},
		{both, "", "linux/amd64, linux/arm64", "linux/s390x"}, {foreign, "", "--platform", ""}, {packtest.OCI(arm).Tar(), "arm64", "", ""},
	} {
		tg, err := open(t, c.data, source.OpenOptions{Platform: c.platform})
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("--platform %q: %v, want %q", c.platform, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("--platform %q: %v", c.platform, err)
			continue
		}
		if got := tg.Image.Env["WHICH"]; got != c.want && c.want != "ppc64le" {
			t.Errorf("--platform %q: %s, want %s", c.platform, got, c.want)
		}
	}
}

// Layers cover each other with whiteouts and opaque folders, in every form of image.
func TestLayers(t *testing.T) {
	base := packtest.Root(packtest.Site("2.6.0", "12.4")).With(packtest.Tree{"opt/env/lib/python3.11/site-packages/old.pth": "x", "etc/old/bin/a": "1", "etc/gone": "1"})
	up := packtest.Tree{
		"opt/env/lib/python3.11/site-packages/torch/version.py": "new",
		"opt/env/lib/python3.11/site-packages/.wh.old.pth":      "",
		"etc/old/.wh..wh..opq":                                  "", "etc/old/b": "2", "etc/.wh.gone": "",
		"usr/lib64/libhard.so": "=>opt/env/lib/python3.11/site-packages/torch/version.py",
	}
	for name, pack := range map[string]func([]byte) []byte{"plain": func(b []byte) []byte { return b }, "gzip": packtest.Gzip, "zstd": packtest.Zstd} {
		img := packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH}, Layers: [][]byte{pack(base.Tar()), pack(up.Tar())}}
		for form, data := range map[string][]byte{"oci": packtest.OCI(img).Tar(), "docker": packtest.DockerSave(img).Tar(), "oci.gz": packtest.Gzip(packtest.OCI(img).Tar()), "docker.gz": packtest.Gzip(packtest.DockerSave(img).Tar())} {
			tg, err := open(t, data, source.OpenOptions{})
			if err != nil {
				t.Errorf("%s, %s: %v", form, name, err)
				continue
			}
			for file, want := range map[string]string{
				"opt/env/lib/python3.11/site-packages/torch/version.py": "new", "opt/env/lib/python3.11/site-packages/old.pth": "error",
				"etc/old/bin/a": "error", "etc/old/b": "2", "etc/gone": "error", "usr/lib64/libhard.so": "new",
			} {
				if got := content(t, tg.FS, file); got != want && !(want == "error" && strings.HasPrefix(got, "error")) {
					t.Errorf("%s, %s: %s is %q, want %q", form, name, file, got, want)
				}
			}
		}
	}
}

// A link that leads out of an unpacked image is a link to nothing.
func TestFolderLinksStayInside(t *testing.T) {
	dir := packtest.Root(packtest.Tree{"x": "1"}).With(packtest.Tree{"out": "->../../../../../../etc/hostname", "abs": "->/etc/hostname"}).Write(t, t.TempDir())
	tg, err := source.Open(context.Background(), dir, source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	for _, n := range []string{"out", "abs"} {
		if b, err := fs.ReadFile(tg.FS, n); err == nil {
			t.Errorf("%s leads to %q", n, b)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(p, packtest.Gzip(packtest.Root(packtest.Site("2", "")).Tar()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Open(ctx, p, source.OpenOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The environment of an image as its runtime sets it up.
func TestImageEnvironment(t *testing.T) {
	site := packtest.Tree{"x": ""}
	apptainer := packtest.Root(site).With(packtest.Tree{
		".singularity.d/env/01-base.sh":               "#!/bin/sh\n# comment\n",
		".singularity.d/env/10-docker2singularity.sh": "#!/bin/sh\nexport PATH=\"/opt/env/bin:/usr/bin\"\nexport CUDA_VERSION=\"${CUDA_VERSION:-\"12.4.1\"}\"\nexport A=$(id)\n",
		".singularity.d/env/90-environment.sh":        "#!/bin/sh\nexport LD_LIBRARY_PATH=/opt/lib:$PATH\nMYVAR='a b'; export MYVAR\nif true; then\n",
	})
	enroot := packtest.Root(site).With(packtest.Tree{
		"etc/environment": "PATH=/opt/env/bin:/usr/bin\nNVIDIA_VISIBLE_DEVICES=all\nbad line\n1X=2\n",
		"etc/rc":          "#!/bin/sh\nmkdir -p \"/work\" 2> /dev/null\ncd \"/work\" || exit 1\n\nif [ -s /etc/rc.local ]; then\n    . /etc/rc.local\nfi\n\nif [ $# -gt 0 ]; then\n    exec '/usr/bin/tini' '--' \"$@\"\nelse\n    exec '/usr/bin/tini' '--' '/opt/env/bin/python3' 'train.py'\nfi\n",
	})
	tg, err := open(t, packtest.SIF(apptainer.Squashfs(t), "02"), source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{"PATH": "/opt/env/bin:/usr/bin", "CUDA_VERSION": "12.4.1", "LD_LIBRARY_PATH": "/opt/lib:/opt/env/bin:/usr/bin", "MYVAR": "a b", "A": ""} {
		if got := tg.Image.Env[k]; got != want {
			t.Errorf("apptainer: %s = %q, want %q", k, got, want)
		}
	}
	if tg.Image.Arch != "x86_64" {
		t.Errorf("architecture %q", tg.Image.Arch)
	}
	if tg, err = open(t, enroot.Squashfs(t), source.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := tg.Image.Env; e["PATH"] != "/opt/env/bin:/usr/bin" || e["NVIDIA_VISIBLE_DEVICES"] != "all" || len(e) != 2 {
		t.Errorf("enroot: %v", e)
	}
	if got := tg.Image.Python(); got != "/opt/env/bin/python3" {
		t.Errorf("entry point %q: python %q", tg.Image.Entrypoint, got)
	}
}
