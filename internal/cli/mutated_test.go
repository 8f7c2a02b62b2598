package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

// wholeTargets are small artefacts of every kind, by file name.
func wholeTargets(t *testing.T) map[string][]byte {
	site := packtest.Site("2.6.0+cu124", "12.4").With(packtest.NVIDIA("2.21.5"))
	root := packtest.Root(site).With(packtest.Tree{".singularity.d/env/10-docker.sh": "export PATH=\"/opt/env/bin:/usr/bin\"\n", "etc/rc": "exec /opt/env/bin/python\n"})
	pack := func(args ...string) []byte { return root.Squashfs(t, args...) }
	layer := packtest.Image{Config: packtest.Config{Arch: "amd64", Env: []string{"PATH=/opt/env/bin:/usr/bin"}, Entrypoint: []string{"/opt/env/bin/python"}},
		Layers: [][]byte{packtest.Gzip(root.Tar()), packtest.Zstd(packtest.Tree{"etc/.wh.nothing": "", "tmp/.wh..wh..opq": ""}.Tar())}}
	arm := layer
	arm.Config.Arch = "arm64"
	env := packtest.Prefix(site).Tar()
	sq := pack("-comp", "zstd")
	return map[string][]byte{
		"torch-2.6.0-cp311-cp311-linux_x86_64.whl":  site.Zip(nil),
		"stored-2.6.0-cp311-cp311-linux_x86_64.whl": site.Zip(func(string) bool { return true }),
		"pytorch-2.6.0-0.conda":                     site.Under("lib/python3.11/site-packages").With(packtest.Tree{"info/index.json": `{"name":"pytorch","version":"2.6.0","build":"cuda124_0"}`}).Conda("pytorch-2.6.0-0"),
		"pytorch-2.6.0-0.tar.bz2":                   packtest.Bzip2(t, site.Under("lib/python3.11/site-packages").With(packtest.Tree{"info/index.json": `{"name":"pytorch","version":"2.6.0","build":"cuda124_0"}`}).Tar()),
		"env.tar":                                   env, "env.tar.gz": packtest.Gzip(env), "env.tar.zst": packtest.Zstd(env), "env.tar.xz": packtest.Xz(env),
		"root.tar":     root.Tar(),
		"oci.tar":      packtest.OCI(layer).Tar(),
		"oci.tar.gz":   packtest.Gzip(packtest.OCI(layer).Tar()),
		"save.tar":     packtest.DockerSave(layer).Tar(),
		"image.sif":    packtest.SIF(sq, "02"),
		"several.sif":  severalPartitions(packtest.SIF(sq, "02")),
		"several.tar":  packtest.OCI(layer, arm).Tar(),
		"zstd.sqsh":    sq,
		"gzip.sqsh":    pack("-comp", "gzip", "-b", "4096"),
		"lzo.sqsh":     pack("-comp", "lzo", "-noD"),
		"lz4.sqsh":     pack("-comp", "lz4"),
		"xz.sqsh":      pack("-comp", "xz"),
		"plain.sqsh":   pack("-noI", "-noD", "-noF", "-noX"),
		"libnccl.so.2": []byte(site["nvidia/nccl/lib/libnccl.so.2"]),
		"libtorch.so":  []byte(site["torch/lib/libtorch_python.so"]),
		"facts.json":   []byte(`{"schema":"ncclinic.facts/v1","host":{"arch":{"v":"x86_64"},"os":{"v":"linux"}},"torch":[{"dir":"/t","version":{"v":"2.6.0+cpu"},"cuda":{"state":"absent"}}],"node":{"driver":{"v":{"version":"470.82.01"}}}}`),
	}
}

// severalPartitions adds to a SIF image of one partition the same one for another
// architecture, an overlay, an encrypted one, and a definition file.
func severalPartitions(sif []byte) []byte {
	const head, size = 128, 585
	le := binary.LittleEndian
	out := bytes.Clone(sif)
	first := bytes.Clone(out[head : head+size])
	for i, d := range []struct {
		kind, format, use uint32
		arch              string
	}{{0x4004, 1, 1, "04"}, {0x4004, 2, 4, "02"}, {0x4004, 4, 1, "02"}, {0x4001, 0, 0, ""}} {
		b := out[head+(i+1)*size:][:size]
		copy(b, first)
		le.PutUint32(b, d.kind)
		le.PutUint32(b[5:], uint32(i+2))
		le.PutUint32(b[201:], d.format)
		le.PutUint32(b[205:], d.use)
		copy(b[209:], d.arch)
	}
	le.PutUint64(out[80:], le.Uint64(out[80:])-4)
	return out
}

// mutate cuts, turns bits and bytes, writes extreme numbers, and splices.
func mutate(r *rand.Rand, whole, other []byte) []byte {
	b := bytes.Clone(whole)
	for range 1 + r.IntN(3) {
		if len(b) == 0 {
			return b
		}
		// Half of all changes are where headers, indexes and tables are.
		at := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			at = r.IntN(min(len(b), 256))
		case 1:
			at = len(b) - 1 - r.IntN(min(len(b), 2048))
		}
		switch r.IntN(7) {
		case 0:
			b = b[:at]
		case 1:
			b[at] ^= 1 << r.IntN(8)
		case 2:
			b[at] = byte(r.Uint32())
		case 3:
			n := []int{1, 2, 4, 8}[r.IntN(4)]
			for i := at; i < min(len(b), at+n); i++ {
				b[i] = []byte{0, 0xff, 0x7f, 0x80}[r.IntN(4)]
			}
		case 4:
			n := min(r.IntN(4096), len(b)-at)
			copy(b[r.IntN(len(b)):], b[at:at+n])
		case 5:
			n := min(r.IntN(4096), len(b)-at)
			b = append(b[:at:at], b[at+n:]...)
		case 6:
			from := r.IntN(len(other) + 1)
			b = append(b[:at:at], other[from:min(len(other), from+r.IntN(1<<16))]...)
		}
	}
	return b
}

// Targets of every kind that were damaged in any way are judged or refused: no
// panic, no endless loop. NCCLINIC_MUTATIONS=200 makes so many of each kind and
// runs NCCLINIC_BIN, the program itself, with a watch over memory and time.
func TestMutatedTargets(t *testing.T) {
	n, bin := 6, os.Getenv("NCCLINIC_BIN")
	if v, err := strconv.Atoi(os.Getenv("NCCLINIC_MUTATIONS")); err == nil {
		n = v
	}
	whole := wholeTargets(t)
	var names []string
	for name := range whole {
		names = append(names, name)
	}
	slices.Sort(names)
	dir := t.TempDir()
	for _, name := range names {
		if code, out, errs := ncclinic(t, nil, "check", put(t, dir, name, whole[name]), "--with-node", "none", "--home", "none"); code == exitUsage {
			t.Errorf("%s, whole: %s%s", name, out, errs)
		}
		r := rand.New(rand.NewPCG(uint64(len(name)), 2026)) // the same in each run
		var codes [4]int
		var most int64
		var longest time.Duration
		for i := range n {
			b := mutate(r, whole[name], whole[names[r.IntN(len(names))]])
			p := put(t, dir, name, b)
			keep := func(why string, text string) {
				k := filepath.Join(os.TempDir(), "mutated-"+strconv.Itoa(i)+"-"+name)
				_ = os.WriteFile(k, b, 0o644)
				t.Errorf("%s, kept as %s: %s\n%.2000s", name, k, why, text)
			}
			args := []string{"check", p, "--with-node", "none", "--home", "none", "--driver", "535.161.08", "--gpu", "A100"}
			if bin == "" {
				code, out, errs := ncclinic(t, nil, args...)
				if code < 0 || code > 3 {
					keep("exit "+strconv.Itoa(code), out+errs)
					continue
				}
				codes[code]++
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			cmd := exec.CommandContext(ctx, bin, args...)
			out, err := cmd.CombinedOutput()
			cancel()
			var ee *exec.ExitError
			if err != nil && !errors.As(err, &ee) {
				t.Fatal(err)
			}
			st := cmd.ProcessState
			u := st.SysUsage().(*syscall.Rusage)
			cpu := st.UserTime() + st.SystemTime()
			most, longest = max(most, u.Maxrss>>10), max(longest, cpu)
			switch code := st.ExitCode(); {
			case code < 0 || code > 3 || strings.Contains(string(out), "panic:") || strings.Contains(string(out), "goroutine "):
				keep("exit "+strconv.Itoa(code), string(out))
			case u.Maxrss>>10 > 256:
				keep(strconv.FormatInt(u.Maxrss>>10, 10)+" MB", string(out))
			case cpu > 10*time.Second:
				keep(cpu.String(), string(out))
			default:
				codes[code]++
			}
		}
		t.Logf("%-45s exit 0: %d, 1: %d, 2: %d, 3: %d; at most %d MB, %v of CPU", name, codes[0], codes[1], codes[2], codes[3], most, longest.Round(time.Millisecond))
	}
}
