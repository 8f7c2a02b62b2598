package sif_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/sif"
	"github.com/ncclinic/ncclinic/internal/source/squashfs"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// object is a data object of a hand-made SIF file.
type object struct {
	typ    sif.Type
	format sif.Format
	use    sif.Use
	arch   string // two digits
	data   []byte
}

// build makes a SIF file by hand, as the format's description says.
func build(objects ...object) []byte {
	const total = 48
	le := binary.LittleEndian
	h := make([]byte, 128+total*585)
	copy(h, "#!/usr/bin/env run-singularity\n")
	copy(h[32:], "SIF_MAGIC\x0001\x0002\x00")
	le.PutUint64(h[80:], uint64(total-len(objects)))
	le.PutUint64(h[88:], total)
	le.PutUint64(h[96:], 128)
	le.PutUint64(h[104:], total*585)
	for i, o := range objects {
		for len(h)%4096 != 0 {
			h = append(h, 0)
		}
		d := h[128+i*585:]
		le.PutUint32(d, uint32(o.typ))
		d[4] = 1
		le.PutUint32(d[5:], uint32(i+1))
		le.PutUint64(d[17:], uint64(len(h)))
		le.PutUint64(d[25:], uint64(len(o.data)))
		copy(d[73:], "object")
		le.PutUint32(d[201:], uint32(o.format))
		le.PutUint32(d[205:], uint32(o.use))
		copy(d[209:], o.arch)
		h = append(h, o.data...)
	}
	return h
}

func openBytes(b []byte, arch string) (*sif.Image, error) {
	return sif.Open(bytes.NewReader(b), int64(len(b)), arch)
}

// system is a squashfs image that says which one it is.
func system(t testing.TB, name string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "name"), []byte(name), 0o644); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "image.sqsh")
	if out, err := exec.Command(testenv.Tool(t, "mksquashfs"), dir, image, "-quiet", "-no-progress").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChoice(t *testing.T) {
	amd, arm := system(t, "amd64"), system(t, "arm64")
	primary := object{sif.FileSystem, sif.Squashfs, sif.Primary, "02", amd}
	second := object{sif.FileSystem, sif.Squashfs, sif.System, "04", arm}
	unsaid := object{sif.FileSystem, sif.Squashfs, sif.Primary, "00", amd}
	overlay := object{sif.FileSystem, sif.Ext3, sif.Overlay, "02", make([]byte, 4096)}
	extra := object{sif.FileSystem, sif.Squashfs, sif.Data, "02", arm}
	for _, tt := range []struct {
		name    string
		objects []object
		arch    string
		want    string // content of the file "name"
		err     error
		says    string
	}{
		{"primary", []object{overlay, extra, primary}, "", "amd64", nil, ""},
		{"uname's name", []object{second, primary}, "x86_64", "amd64", nil, ""},
		{"second architecture", []object{primary, second}, "aarch64", "arm64", nil, ""},
		{"platform", []object{primary, second}, "linux/arm64/v8", "arm64", nil, ""},
		{"primary of several", []object{second, primary}, "", "amd64", nil, ""},
		{"unsaid architecture", []object{unsaid}, "arm64", "amd64", nil, ""},
		{"exact before unsaid", []object{unsaid, second}, "arm64", "arm64", nil, ""},
		{"other architecture", []object{primary, second}, "ppc64le", "", sif.ErrArch, "amd64, arm64"},
		{"no partition", []object{{typ: sif.DefinitionFile, data: []byte("Bootstrap: docker\n")}}, "", "", sif.ErrUnsupported, "no primary"},
		{"encrypted", []object{{sif.FileSystem, sif.EncryptedSquashfs, sif.Primary, "02", []byte("LUKS\xba\xbe")}}, "", "", sif.ErrEncrypted, "encrypted"},
		{"LUKS that is said to be squashfs", []object{{sif.FileSystem, sif.Squashfs, sif.Primary, "02", []byte("LUKS\xba\xbe\x00\x02")}}, "", "", sif.ErrEncrypted, ""},
		{"ext3", []object{{sif.FileSystem, sif.Ext3, sif.Primary, "02", make([]byte, 2048)}}, "", "", sif.ErrUnsupported, "ext3"},
		{"not squashfs", []object{{sif.FileSystem, sif.Squashfs, sif.Primary, "02", []byte("text")}}, "", "", squashfs.ErrNotSquashfs, ""},
		{"OCI-SIF", []object{{typ: sif.OCIIndex, data: []byte("{}")}}, "", "", sif.ErrUnsupported, "OCI-SIF"},
		{"squashfs that is cut off", []object{{sif.FileSystem, sif.Squashfs, sif.Primary, "02", amd[:150]}}, "", "", squashfs.ErrCorrupt, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img, err := openBytes(build(tt.objects...), tt.arch)
			if !errors.Is(err, tt.err) || (err != nil && !strings.Contains(err.Error(), tt.says)) {
				t.Fatalf("error %v, want %v with %q", err, tt.err, tt.says)
			}
			if img == nil || len(img.Objects) != len(tt.objects) {
				t.Fatalf("image %+v", img)
			}
			if err != nil {
				if img.FS != nil {
					t.Error("an error and a file system")
				}
				return
			}
			b, err := fs.ReadFile(img.FS, "name")
			if err != nil || string(b) != tt.want {
				t.Errorf("read %q, %v; want %q", b, err, tt.want)
			}
		})
	}
}

func TestTextObjects(t *testing.T) {
	def := "Bootstrap: docker\nFrom: nvcr.io/nvidia/pytorch:25.01-py3\n"
	img, err := openBytes(build(
		object{typ: sif.DefinitionFile, data: []byte(def)},
		object{typ: sif.Labels, data: []byte(`{"a":"b"}`)},
		object{typ: sif.JSON, data: []byte(`{"c":1}`)},
		object{sif.FileSystem, sif.Squashfs, sif.Primary, "04", system(t, "x")},
	), "")
	if err != nil {
		t.Fatal(err)
	}
	if img.Definition != def || string(img.Labels) != `{"a":"b"}` || img.Arch != "arm64" {
		t.Errorf("definition %q, labels %s, arch %q", img.Definition, img.Labels, img.Arch)
	}
	if b, err := img.Read(img.Objects[2], 100); err != nil || string(b) != `{"c":1}` {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := img.Read(img.Objects[2], 3); err == nil {
		t.Error("an object longer than allowed was read")
	}
}

func TestHeaders(t *testing.T) {
	good := build(object{typ: sif.JSON, data: []byte("{}")})
	set := func(at int, v uint64) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint64(b[at:], v)
		return b
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, sif.ErrNotSIF},
		{"a script", []byte("#!/usr/bin/env run-singularity\nSIF"), sif.ErrNotSIF},
		{"header cut off", good[:127], sif.ErrCorrupt},
		{"descriptors cut off", good[:128+585], sif.ErrCorrupt},
		{"data cut off", good[:len(good)-1], sif.ErrCorrupt},
		{"many descriptors", set(88, 1<<40), sif.ErrCorrupt},
		{"negative descriptors", set(88, 1<<63), sif.ErrCorrupt},
		{"descriptors far away", set(96, 1<<62), sif.ErrCorrupt},
		{"object far away", set(128+17, 1<<62), sif.ErrCorrupt},
		{"object of negative size", set(128+25, 1<<63), sif.ErrCorrupt},
		{"huge object", set(128+25, 1<<62), sif.ErrCorrupt},
		{"version", append(append(bytes.Clone(good[:42]), '9', '9'), good[44:]...), sif.ErrUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := openBytes(tt.b, ""); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}
