package source_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

// takes returns how many bytes f allocates.
func takes(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// xzClaims is an xz stream whose block says that it wants a dictionary of 4 GB.
func xzClaims(b []byte, bits byte) []byte {
	z := packtest.Xz(b)
	n := (int(z[12]) + 1) * 4
	i := bytes.Index(z[12:], []byte{0x21, 1}) + 12
	z[i+2] = bits
	binary.LittleEndian.PutUint32(z[12+n-4:], crc32.ChecksumIEEE(z[12:12+n-4]))
	return z
}

// Dictionaries and windows are refused by what they would take, in every block.
func TestDictionaries(t *testing.T) {
	site := packtest.Site("2.6.0", "12.4").Tar()
	half := len(site) / 1024 * 512
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"64 MB", xzClaims(site, 28), ""},
		{"96 MB", xzClaims(site, 29), "dictionary is larger than 64 MB"},
		{"4 GB", xzClaims(site, 40), "dictionary is larger than 64 MB"},
		{"none that is", xzClaims(site, 41), "not a valid xz"},
		{"in the second stream", append(packtest.Xz(site[:half]), xzClaims(site[half:], 40)...), "dictionary is larger than 64 MB"},
		{"two streams with padding", append(append(packtest.Xz(site[:half]), 0, 0, 0, 0), packtest.Xz(site[half:])...), ""},
	} {
		var err error
		var tg *source.Target
		took := takes(func() { tg, err = open(t, c.data, source.OpenOptions{}) })
		switch {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		case c.says == "" && tg.Kind != source.KindSite:
			t.Errorf("%s: %s", c.name, tg.Kind)
		}
		if c.says != "" && took > 64<<20 {
			t.Errorf("%s: %d MB were taken", c.name, took>>20)
		}
	}
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z, zstd.WithWindowSize(128<<20))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(site)
	w.Flush() // so that the frame does not say how short it is
	w.Write(make([]byte, 512))
	w.Close()
	if _, err := open(t, z.Bytes(), source.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "windows of more than 64 MB") {
		t.Errorf("a zstd window of 128 MB: %v", err)
	}
}

// zipped writes a tar archive through zstd as it is made.
func zipped(t *testing.T, fill func(*tar.Writer)) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for name, s := range map[string]string{"etc/os-release": "NAME=x\n", "usr/bin/env": "#!"} {
		w.WriteHeader(&tar.Header{Name: name, Size: int64(len(s)), Typeflag: tar.TypeReg})
		io.WriteString(w, s)
	}
	fill(w)
	w.Close()
	z.Close()
	return out.Bytes()
}

// Small archives whose names, links and manifests would fill gigabytes.
func TestTextBombs(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	manifest := `{"a":"` + strings.Repeat("x", 2<<20) + `"}`
	for _, c := range []struct {
		name, says string
		fill       func(*tar.Writer)
	}{
		{"links", "", func(w *tar.Writer) {
			for i := range 700 {
				w.WriteHeader(&tar.Header{Name: fmt.Sprintf("usr/lib/l%d", i), Linkname: long, Typeflag: tar.TypeSymlink})
			}
		}},
		{"names", "examined of one archive: too many files (their names have more than 32 MB", func(w *tar.Writer) {
			for i := range 12_000 {
				w.WriteHeader(&tar.Header{Name: fmt.Sprintf("usr/lib/%06d%s.so", i, long[:3900]), Typeflag: tar.TypeReg})
			}
		}},
		{"manifests", "", func(w *tar.Writer) {
			for i := range 40 {
				w.WriteHeader(&tar.Header{Name: fmt.Sprintf("blobs/sha256/%064x", i), Size: int64(len(manifest)), Typeflag: tar.TypeReg})
				io.WriteString(w, manifest)
			}
		}},
	} {
		b := zipped(t, c.fill)
		before := heap()
		tg, err := open(t, b, source.OpenOptions{})
		grew := int64(heap()) - int64(before)
		runtime.KeepAlive(tg)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		if t.Logf("%s: %d KB, %d MB of heap", c.name, len(b)>>10, grew>>20); grew > 48<<20 {
			t.Errorf("%s: %d MB", c.name, grew>>20)
		}
	}
	layer := packtest.Tree{}
	for i := range 12_000 {
		layer[fmt.Sprintf("usr/lib/%06d%s.so", i, long[:3900])] = ""
	}
	img := packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH}, Layers: [][]byte{packtest.Zstd(layer.Tar())}}
	if _, err := open(t, packtest.Gzip(packtest.OCI(img).Tar()), source.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "MB of names") {
		t.Errorf("names in a layer: %v", err)
	}
}

// Indexes that name themselves, or what is not there, hide no image and do not end in a search.
func TestIndexes(t *testing.T) {
	img := packtest.OCI(packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH}, Layers: [][]byte{packtest.Gzip(packtest.Root(packtest.Tree{"torch/version.py": "y"}).Tar())}})
	var inner string // what index.json of the image names
	fmt.Sscanf(img["index.json"][strings.Index(img["index.json"], "sha256:"):], "sha256:%64s", &inner)
	loop := strings.Repeat("a", 64)
	entry := func(digest string) string {
		return `{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"` + digest + `"}`
	}
	good := entry("sha256:" + inner)
	list := func(e ...string) string { return `{"manifests":[` + strings.Join(e, ",") + `]}` }
	many := func(e string, n int) string { return list(strings.Split(strings.Repeat(e+"|", n), "|")[:n]...) }
	for _, c := range []struct{ name, index, loop, says string }{
		{"in itself", list(entry("sha256:" + loop)), list(entry("sha256:" + loop)), "names itself"},
		{"in itself, beside an image", list(entry("sha256:"+loop), good), list(entry("sha256:" + loop)), ""},
		{"bad digests beside an image", list(entry("sha256:zz"), entry(""), entry("md5:../../../x"), `{"digest":"x"}`, good), "{}", ""},
		{"bad digests alone", list(entry("sha256:zz"), entry("")), "{}", "is no digest"},
		{"one that is not there", list(entry("sha256:" + strings.Repeat("b", 64))), "{}", "does not exist"}, {"an image that is not there", list(`{"digest":"sha256:` + strings.Repeat("b", 64) + `"}`), "{}", "no such blob"},
		{"named a thousand times", many(entry("sha256:"+loop), 1000), many(entry("sha256:"+loop), 1000), "names itself"},
		{"a million empty ones", many(`{}`, 1_000_000), "{}", "more than 4096 elements"},
		{"an object", `{"manifests":{}}`, "{}", "not a list"},
	} {
		for form, pack := range map[string]func([]byte) []byte{"plain": func(b []byte) []byte { return b }, "gzip": packtest.Gzip} {
			tree := img.With(packtest.Tree{"index.json": c.index, "blobs/sha256/" + loop: c.loop})
			tg, err := open(t, pack(tree.Tar()), source.OpenOptions{})
			switch {
			case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s, %s: %v, want %q", c.name, form, err, c.says)
			case c.says == "" && content(t, tg.FS, "opt/env/lib/python3.11/site-packages/torch/version.py") != "y":
				t.Errorf("%s, %s: the image was not opened", c.name, form)
			}
		}
	}
}

// A configuration that is not what its digest says is looked at, and that is told.
func TestDigests(t *testing.T) {
	img := packtest.OCI(packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH, Env: []string{"A=b"}}, Layers: [][]byte{packtest.Gzip(packtest.Root(packtest.Tree{"torch/version.py": "y"}).Tar())}})
	for name, s := range img {
		if strings.Contains(s, `"A=b"`) {
			img[name] = strings.Replace(s, `"A=b"`, `"A=c"`, 1)
		}
	}
	tg, err := open(t, img.Tar(), source.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tg.Problems) != 1 || !strings.Contains(tg.Problems[0].Why, "changed or damaged") || tg.Image.Env["A"] != "c" {
		t.Errorf("%v, %v", tg.Problems, tg.Image.Env)
	}
}

// Names of layers in a manifest of docker save stay inside, and say the same whether
// the archive is compressed or not.
func TestDockerNames(t *testing.T) {
	layer := string(packtest.Root(packtest.Tree{"torch/version.py": "y"}).Tar())
	for _, c := range []struct {
		name, link string
		ok         bool
	}{
		{"layer.tar", "", true}, {"/layer.tar", "", true}, {"//layer.tar", "", true}, {"./layer.tar", "", true}, {"a/../layer.tar", "", true},
		{"/etc/passwd", "", false}, {"../../../../etc/passwd", "", false}, {"", "", false}, {"/", "", false},
		{"l/layer.tar", "../layer.tar", true}, {"l/layer.tar", "/etc/passwd", false}, {"l/layer.tar", "../../../../etc/passwd", false}, {"l/layer.tar", "layer.tar", false},
	} {
		tree := packtest.Tree{"manifest.json": fmt.Sprintf(`[{"Config":"/config.json","Layers":[%q]}]`, c.name), "config.json": `{"architecture":"amd64","os":"linux"}`, "layer.tar": layer}
		if c.link != "" {
			tree["l/layer.tar"] = "->" + c.link
		}
		for form, b := range map[string][]byte{"plain": tree.Tar(), "gzip": packtest.Gzip(tree.Tar())} {
			tg, err := open(t, b, source.OpenOptions{})
			if (err == nil) != c.ok {
				t.Errorf("%q -> %q, %s: %v", c.name, c.link, form, err)
			} else if c.ok && content(t, tg.FS, "opt/env/lib/python3.11/site-packages/torch/version.py") != "y" {
				t.Errorf("%q -> %q, %s: not read", c.name, c.link, form)
			}
		}
	}
}

// Compressed layers of several members, with something behind them, and damaged in their last bytes.
func TestEndsOfStreams(t *testing.T) {
	plain := packtest.Root(packtest.Tree{"torch/version.py": "y"}).Tar()
	gz := packtest.Gzip(plain)
	var members []byte
	for i := 0; i < len(plain); i += 512 {
		members = append(members, packtest.Gzip(plain[i:i+512])...)
	}
	flip := func(b []byte, i int) []byte {
		b = bytes.Clone(b)
		b[len(b)-i] ^= 0xff
		return b
	}
	zs := packtest.Zstd(plain)
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"one member for each block": {members, true}, "an empty member first": {append(packtest.Gzip(nil), gz...), true},
		"zeros behind": {append(bytes.Clone(gz), make([]byte, 1000)...), true}, "text behind": {append(bytes.Clone(gz), "signed by somebody"...), true},
		"text behind zstd": {append(bytes.Clone(zs), "signed by somebody"...), true},
		"wrong checksum":   {flip(gz, 8), false}, "wrong length": {flip(gz, 1), false}, "cut": {gz[:len(gz)-4], false},
		"wrong checksum, zstd": {flip(zs, 1), false}, "cut, zstd": {zs[:len(zs)-2], false},
		"wrong checksum, xz": {flip(packtest.Xz(plain), 40), false}, "wrong checksum, bzip2": {flip(packtest.Bzip2(t, plain), 3), false},
	} {
		img := packtest.OCI(packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH}, Layers: [][]byte{c.data}})
		for form, b := range map[string][]byte{"a layer": img.Tar(), "an archive": c.data, "a layer in a compressed archive": packtest.Gzip(img.Tar())} {
			if _, err := open(t, b, source.OpenOptions{}); (err == nil) != c.ok {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
	}
}

// Whiteouts that name nothing, or the folder that they stand in, take nothing away.
func TestWhiteoutNames(t *testing.T) {
	root := packtest.Root(packtest.Tree{"torch/version.py": "y"})
	for _, name := range []string{".wh.", ".wh..", ".wh...", ".wh..wh.", "opt/.wh.", "opt/env/.wh...", ".wh..wh..opq/x", ".wh..wh.plnk/1", "../.wh.opt", "opt/../.wh.opt"} {
		tg, err := open(t, packtest.OCI(packtest.Image{Config: packtest.Config{Arch: runtime.GOARCH}, Layers: [][]byte{root.Tar(), packtest.Tree{name: ""}.Tar()}}).Tar(), source.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, err := fs.Stat(tg.FS, "opt/env/lib/python3.11/site-packages/torch/version.py"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
