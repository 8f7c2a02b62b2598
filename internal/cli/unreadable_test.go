package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

// A pipe, a device and an empty file are refused in the user's language, and no
// command waits for the writer of a pipe.
func TestNoFileToRead(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := put(t, dir, "torch.whl", nil)
	for _, c := range []struct {
		args   []string
		en, zh string
	}{
		{[]string{"check", fifo}, "not a regular file but a pipe", "不是普通文件，而是管道"},
		{[]string{"check", "/dev/zero"}, "not a regular file but a device", "不是普通文件，而是设备"},
		{[]string{"check", empty}, "an empty file", "空文件"},
		{[]string{"check", "--with-node", fifo, empty}, "an empty file", "空文件"},
		{[]string{"explain", fifo}, "a named pipe", "命名管道"},
		{[]string{"lint", fifo}, "a named pipe", "命名管道"},
		{[]string{"lint", "/dev/zero"}, "larger than 64 MiB", "大于 64 MiB"},
		{[]string{"lint", "--config", fifo, "/dev/null"}, "a named pipe", "命名管道"},
		{[]string{"fix", fifo}, "a named pipe", "命名管道"},
	} {
		for lang, want := range map[string]string{"en": c.en, "zh": c.zh} {
			code, out, errs := ncclinic(t, nil, append(c.args, "--lang", lang)...)
			if code != exitUsage && len(c.args) == 2 || !strings.Contains(out+errs, want) {
				t.Errorf("%v %s: exit %d, no %q in %s%s", c.args, lang, code, want, out, errs)
			}
		}
	}
	log := put(t, dir, "a.log", []byte("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 1 has a total capacity of 79.25 GiB\n"))
	if code, out, _ := ncclinic(t, nil, "explain", fifo, log); code != exitFound || !strings.Contains(out, "gpu-out-of-memory") || !strings.Contains(out, "a named pipe") {
		t.Errorf("beside a log: exit %d\n%s", code, out)
	}
}

// What a shell's <(command) names is read.
func TestProcessSubstitution(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 1 has a total capacity of 79.25 GiB\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	code, out, errs := ncclinic(t, nil, "explain", filepath.Join("/proc/self/fd", strconv.Itoa(int(r.Fd()))))
	if code != exitFound {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// A wheel of torch without any library is no wheel that works.
func TestTorchWithoutLibraries(t *testing.T) {
	bare := packtest.Tree{}
	for name, text := range packtest.Site("2.6.0+cu124", "12.4") {
		if !strings.HasSuffix(name, ".so") && !strings.Contains(name, ".so.") && !strings.HasSuffix(name, "RECORD") {
			bare[name] = text
		}
	}
	whl := put(t, t.TempDir(), "torch-2.6.0+cu124-cp311-cp311-manylinux_2_28_x86_64.whl", bare.Zip(nil))
	code, out, errs := ncclinic(t, nil, "check", whl)
	if code != exitFound {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	must(t, "wheel", out, "torch-install-damaged", "_C.*.so")
	tgz := put(t, t.TempDir(), "env.tar.gz", packtest.Gzip(packtest.Prefix(bare).Tar()))
	for lang, want := range map[string]string{"en": "there is no library of torch", "zh": "其中没有 torch"} {
		code, out, errs := ncclinic(t, nil, "check", tgz, "--lang", lang)
		if code != exitUnsure || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d\n%s%s", lang, code, out, errs)
		}
	}
}
