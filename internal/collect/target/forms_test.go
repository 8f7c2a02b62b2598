package target

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// debianRoot makes a root file system of Debian's Python with its CPU build of
// torch and the libraries that those need; hard links where they can be had.
func debianRoot(t *testing.T) string {
	t.Helper()
	py, err := filepath.EvalSymlinks(testenv.DebianTorch(t))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	sh := exec.Command("/bin/sh", "-euc", `
		mkdir -p "$R/usr/bin" "$R/usr/lib/python3/dist-packages" "$R/usr/lib64" "$R/etc" "$R/root" "$R/var/lib/dpkg/info"
		ln -s usr/bin "$R/bin"; ln -s usr/lib "$R/lib"; ln -s usr/lib64 "$R/lib64"
		cp "$PY" "$R/usr/bin/"; ln -s "${PY##*/}" "$R/usr/bin/python3"
		mkdir -p "$R/usr/lib/${PY##*/}"; cp "/usr/lib/${PY##*/}/os.py" "/usr/lib/${PY##*/}/site.py" "$R/usr/lib/${PY##*/}/"
		cp -a /usr/lib/python3/dist-packages/torch-*info "$R/usr/lib/python3/dist-packages/"
		mkdir "$R/usr/lib/python3/dist-packages/torch"; cd /usr/lib/python3/dist-packages/torch
		cp -a __init__.py version.py _C.*.so lib "$R/usr/lib/python3/dist-packages/torch/"
		cp -L /etc/os-release /etc/ld.so.cache /etc/passwd "$R/etc/"
		printf 'PATH=/usr/bin:/bin\n' >"$R/etc/environment"
		mkdir -p "$R/usr/lib/x86_64-linux-gnu"; cp -L /lib64/ld-linux-x86-64.so.2 "$R/usr/lib/x86_64-linux-gnu/"
		ln -s ../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$R/usr/lib64/"
		cp /var/lib/dpkg/info/python3-torch.list "$R/var/lib/dpkg/info/"; cp /var/lib/dpkg/status "$R/var/lib/dpkg/"
		{ ldd "$PY"; ldd /usr/lib/python3/dist-packages/torch/_C.*.so; } | grep -o '/[^ ]*' | sort -u | while read -r f; do
			case $f in
			/lib64/*) ;;
			/lib/*|/usr/lib/*) d=usr/lib/${f#*lib/}; mkdir -p "$R/${d%/*}"; cp -L "$f" "$R/$d" ;;
			esac
		done`)
	sh.Env = append(os.Environ(), "R="+root, "PY="+py)
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

// pipe runs a command in a folder and keeps what it writes in a file.
func pipe(t *testing.T, dir, out, cmd string, args ...string) string {
	t.Helper()
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := exec.Command(testenv.Tool(t, cmd), args...)
	c.Dir, c.Stdout, c.Stderr = dir, f, os.Stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return out
}

func readFile(t *testing.T, p string) []byte {
	t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A real torch says the same in every form: the folder, an archive, OCI and
// docker layers, squashfs by all compressors, SIF.
func TestRealForms(t *testing.T) {
	all := os.Getenv("NCCLINIC_WHEELS") != ""
	if runtime.GOARCH != "amd64" {
		testenv.Need(t, "an x86_64 machine", "run it on one")
	}
	root := debianRoot(t)
	want := factsAt(t, root, Options{})
	w := want.Winner()
	if w == nil || w.Accel() != fact.AccelCPU || w.NCCL.Or(true) || !w.Gloo.Or(false) || w.Origin.V.Kind != fact.OriginDebian || len(want.Problems) > 0 {
		t.Fatalf("the folder: %+v, problems %v", w, want.Problems)
	}
	dir := t.TempDir()
	tar := pipe(t, root, filepath.Join(dir, "root.tar"), "tar", "-cf", "-", ".")
	check := func(p string) {
		t.Helper()
		tg, err := source.Open(context.Background(), p, source.OpenOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		defer tg.Close()
		var b fact.Bundle
		if _, err := Collect(context.Background(), tg, Options{}, &b); err != nil {
			t.Error(err)
			return
		}
		g := b.Winner()
		if g == nil || g.Version.V != w.Version.V || g.Accel() != w.Accel() || g.NCCL.Or(true) || !g.Gloo.Or(false) || g.Distributed.V != w.Distributed.V || g.Machine.V != w.Machine.V ||
			g.Origin.V != w.Origin.V || b.Python.Version.V != want.Python.Version.V || len(b.Python.Path) != len(want.Python.Path) || len(b.Problems) > 0 || len(b.Loads) != len(want.Loads) {
			t.Errorf("%s: %+v, problems %v, loads %v", filepath.Base(p), g, b.Problems, b.Loads)
		}
		mem, disk := tg.Kept()
		t.Logf("%s: %d MB, %d read, %d kept in memory, %d on disk", filepath.Base(p), tg.Size>>20, b.Target.Read, mem, disk)
		os.Remove(p)
	}
	zst := pipe(t, dir, filepath.Join(dir, "root.tar.zst"), "zstd", "-q", "-1", "-c", tar)
	layer := readFile(t, zst)
	check(zst)
	img := packtest.Image{Config: packtest.Config{Arch: "amd64", Env: []string{"PATH=/usr/bin:/bin"}}, Layers: [][]byte{layer, packtest.Tree{"etc/.wh.nothing": ""}.Tar()}}
	check(writeFile(t, dir, "oci.tar", packtest.OCI(img).Tar()))
	check(writeFile(t, dir, "save.tar", packtest.DockerSave(img).Tar()))
	layer, img = nil, packtest.Image{}
	comps := [][]string{{"lz4"}}
	if all {
		comps = [][]string{{"lzo", "-noD"}, {"gzip"}, {"zstd"}, {"lz4"}, {"xz", "-action", "uncompressed@type(f) && size(+16M)"}, {"lzo", "-Xcompression-level", "1"}, {"zstd", "-b", "1M", "-Xcompression-level", "1"}}
	}
	for i, c := range comps {
		sq := filepath.Join(dir, strings.ReplaceAll(strings.Join(c[:min(len(c), 3)], ""), "-", "_")+".sqsh")
		out, err := exec.Command(testenv.Tool(t, "mksquashfs"), append([]string{root, sq, "-quiet", "-no-progress", "-all-root", "-comp"}, c...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if i == 0 {
			sif := writeFile(t, dir, "image.sif", packtest.SIF(readFile(t, sq), "02"))
			check(sif)
		}
		check(sq)
	}
	check(tar)
}

func writeFile(t *testing.T, dir, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}
