package e2e

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// fakeEnv makes an environment with a torch of a few small files around the
// given libraries; an empty version text leaves version.py out.
func fakeEnv(t *testing.T, version string, libs map[string][]byte) string {
	t.Helper()
	dir := temp(t)
	write(t, dir+"/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n")
	link(t, "/usr/bin/python3", dir+"/bin/python")
	torch := site(dir) + "/torch"
	write(t, torch+"/__init__.py", "")
	if version != "" {
		write(t, torch+"/version.py", version)
	}
	for name, b := range libs {
		write(t, torch+"/"+name, string(b))
	}
	return dir
}

const cudaVersionPy = "__version__ = '2.6.0+cu124'\ncuda = '12.4'\nhip = None\ngit_version = 'x'\n"

// bounded checks that a bad input is survived: a report, in time, in little memory.
func bounded(t *testing.T, c call, args ...string) report {
	t.Helper()
	const maxTime, maxMemory = 45 * time.Second, 300 << 20
	o := c.run(t, append([]string{"check", "--format", "json"}, args...)...)
	if o.took > maxTime {
		t.Errorf("took %v", o.took)
	}
	if o.rss > maxMemory {
		t.Errorf("used %d MiB", o.rss>>20)
	}
	if o.code == 2 {
		t.Fatalf("no report: %s", o.stderr)
	}
	return parse(t, o.stdout, o.stderr)
}

// refused checks that an input is either reported on or named in one clear error.
func refused(t *testing.T, c call, path string, args ...string) {
	t.Helper()
	o := c.run(t, append([]string{"check", "--format", "json"}, args...)...)
	if o.took > 45*time.Second {
		t.Errorf("took %v", o.took)
	}
	if o.code != 2 {
		r := parse(t, o.stdout, o.stderr)
		if r.Verdict == "ok" {
			t.Errorf("%s is called ok", path)
		}
		return
	}
	if !strings.Contains(o.stderr, path) || strings.Count(o.stderr, "\n") > 3 {
		t.Errorf("the error does not name %s in a line: %q", path, o.stderr)
	}
}

func TestBadPython(t *testing.T) {
	dir := temp(t)
	fifo := dir + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	link(t, dir+"/loop2", dir+"/loop1")
	link(t, dir+"/loop1", dir+"/loop2")
	write(t, dir+"/text", "not a program\n")
	write(t, dir+"/empty", "")
	write(t, dir+"/script", "#!/bin/sh\necho executed >"+dir+"/executed\n")
	link(t, "/nowhere/python", dir+"/dangling")
	for _, p := range []string{"fifo", "loop1", "text", "empty", "script", "dangling", "absent", "."} {
		t.Run(p, func(t *testing.T) { refused(t, call{}, dir+"/"+p, "--python", dir+"/"+p) })
	}
	t.Run("device", func(t *testing.T) { refused(t, call{}, "/dev/zero", "--python", "/dev/zero") })
	t.Run("PATH", func(t *testing.T) {
		if err := os.Rename(fifo, dir+"/python3"); err != nil {
			t.Fatal(err)
		}
		bounded(t, call{env: []string{"PATH=" + dir}})
	})
	if _, err := os.Stat(dir + "/executed"); err == nil {
		t.Error("what is inspected was executed")
	}
}

func TestBadTarget(t *testing.T) {
	dir := temp(t)
	if err := syscall.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/other.json", `{"schema":"something.else/v9"}`)
	write(t, dir+"/newer.json", `{"schema":"ncclinic.facts/v1","python":{"exe":{"v":3}}}`)
	write(t, dir+"/cut.json", `{"schema":"ncclinic.facts/v1","tor`)
	write(t, dir+"/empty.json", "")
	for _, p := range []string{"fifo", "other.json", "newer.json", "cut.json", "empty.json", "absent.json"} {
		t.Run(p, func(t *testing.T) {
			o := call{}.run(t, "check", "--format", "json", dir+"/"+p)
			if o.code != 2 || !strings.Contains(o.stderr, p) {
				t.Errorf("status %d, want 2 and an error that names the file: %q", o.code, o.stderr)
			}
		})
	}
}

func TestBadTree(t *testing.T) {
	t.Run("1 GB version.py", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		if err := os.Truncate(site(dir)+"/torch/version.py", 1<<30); err != nil {
			t.Fatal(err)
		}
		bounded(t, call{}, "--python", dir+"/bin/python")
	})
	t.Run("version.py is a FIFO", func(t *testing.T) {
		dir := fakeEnv(t, "", nil)
		if err := syscall.Mkfifo(site(dir)+"/torch/version.py", 0o666); err != nil {
			t.Fatal(err)
		}
		bounded(t, call{}, "--python", dir+"/bin/python")
	})
	t.Run("libraries are a FIFO, a loop, a folder, a device", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		lib := site(dir) + "/torch/lib"
		link(t, "libtorch_cuda.so", lib+"/libtorch_cuda.so")
		if err := errors.Join(syscall.Mkfifo(lib+"/libtorch_python.so", 0o666), os.Mkdir(lib+"/libtorch_cpu.so", 0o755)); err != nil {
			t.Fatal(err)
		}
		link(t, "/dev/zero", lib+"/libc10.so")
		link(t, "/dev/zero", lib+"/libtorch.so")
		bounded(t, call{}, "--python", dir+"/bin/python")
	})
	t.Run("site-packages is a loop", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		if err := os.RemoveAll(site(dir)); err != nil {
			t.Fatal(err)
		}
		link(t, "site-packages", site(dir))
		bounded(t, call{}, "--python", dir+"/bin/python")
	})
	t.Run("folders link to their parents", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		link(t, "..", site(dir)+"/torch/lib")
		link(t, "..", site(dir)+"/nvidia")
		link(t, ".", site(dir)+"/torch-2.6.0.dist-info")
		write(t, site(dir)+"/again.pth", strings.Repeat(site(dir)+"\n.\n..\n../site-packages\n", 1000))
		bounded(t, call{}, "--python", dir+"/bin/python")
	})
	t.Run("hostile .pth, pyvenv.cfg and metadata", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		write(t, site(dir)+"/a.pth", "import os; os.system('touch "+dir+"/executed')\n\x00\xff\n"+strings.Repeat("x", 1<<20)+"\n/dev/fd\n/proc/self\n")
		write(t, site(dir)+"/torch-2.6.0.dist-info/METADATA", strings.Repeat("Requires-Dist: a\n", 200000))
		write(t, site(dir)+"/torch-2.6.0.dist-info/RECORD", strings.Repeat("../../../../etc/passwd,,\n", 100000))
		write(t, dir+"/pyvenv.cfg", "home = "+dir+"/bin\ninclude-system-site-packages = true\nhome = \x00\n")
		bounded(t, call{}, "--python", dir+"/bin/python")
		if _, err := os.Stat(dir + "/executed"); err == nil {
			t.Error("a .pth file was executed")
		}
	})
}

func TestBadELF(t *testing.T) {
	real, err := os.ReadFile(filepath.Join(filepath.Dir(debian(t)), "true"))
	if err != nil {
		t.Fatal(err)
	}
	cut := func(n int) []byte { return real[:n] }
	// A header that promises a program header table of 65535 entries at the
	// end of the file, and one whose section sizes are the largest numbers.
	lying := append([]byte(nil), real...)
	binary.LittleEndian.PutUint16(lying[56:], 0xffff)
	huge := append([]byte(nil), real...)
	phoff := binary.LittleEndian.Uint64(huge[32:])
	for i := range uint64(binary.LittleEndian.Uint16(huge[56:])) {
		ph := huge[phoff+i*56:]
		binary.LittleEndian.PutUint64(ph[8:], 1<<63-1)
		binary.LittleEndian.PutUint64(ph[32:], 1<<62)
		binary.LittleEndian.PutUint64(ph[40:], 1<<62)
	}
	for name, b := range map[string][]byte{
		"empty": {}, "4 bytes": cut(4), "header": cut(64), "page": cut(4096),
		"text": []byte("GROUP ( libtorch.so )\n"), "lying": lying, "huge": huge,
	} {
		t.Run(name, func(t *testing.T) {
			libs := map[string][]byte{}
			for _, l := range []string{"libtorch_python.so", "libtorch_cuda.so", "libtorch_cpu.so", "libtorch.so", "libc10.so"} {
				libs["lib/"+l] = b
			}
			libs["_C.cpython-311-x86_64-linux-gnu.so"] = b
			dir := fakeEnv(t, cudaVersionPy, libs)
			r := bounded(t, call{}, "--python", dir+"/bin/python")
			// What could not be read must not be called missing.
			if r.has("torch-built-without-nccl") || r.has("torch-cpu-build") {
				t.Errorf("an unreadable library is taken for one without NCCL: %v", r.ids())
			}
		})
	}
}

func TestBadNvidiaSMI(t *testing.T) {
	for name, script := range map[string]string{
		"hangs":          "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n",
		"hangs in child": "#!/bin/sh\nsleep 600 &\nwait\n",
		"endless output": "#!/bin/sh\nexec cat /dev/zero\n",
		"nonsense":       "#!/bin/sh\nprintf '\\377\\000<xml>%s\\n' ']]>' \"$@\"; exit 0\n",
		"killed":         "#!/bin/sh\nkill -SEGV $$\n",
		"no interpreter": "#!/nowhere/sh\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			dir := temp(t)
			write(t, dir+"/nvidia-smi", script)
			c := call{env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
			r := bounded(t, c)
			if r.Verdict == "ok" {
				t.Error("called ok")
			}
			if strings.HasPrefix(name, "hangs") {
				b := c.facts(t)
				if smi, _ := b.Node.SMI.Get(); !smi.Hung {
					t.Errorf("nvidia-smi: %+v, want hung", b.Node.SMI)
				}
			}
		})
	}
}

// TestUnreadable runs as an ordinary user: root reads everything.
func TestUnreadable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("run by an ordinary user: folders of mode 0 belong to the same user, who cannot read them either")
	}
	closed := func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
	}
	t.Run("home", func(t *testing.T) {
		home := temp(t)
		write(t, home+"/.local/lib/python3.11/site-packages/torch/version.py", cudaVersionPy)
		closed(t, home)
		c := call{user: true, env: []string{"HOME=" + home}}
		bounded(t, c)
		b := c.facts(t)
		for _, w := range b.Torch {
			if strings.HasPrefix(w.Dir, home) {
				t.Errorf("a torch was seen in an unreadable folder: %s", w.Dir)
			}
		}
	})
	t.Run("HOME is not set, is a file, is relative", func(t *testing.T) {
		write(t, workDir+"/plain", "x")
		for _, h := range []string{"", workDir + "/plain", "relative", "/proc/1/root"} {
			bounded(t, call{user: true, env: []string{"HOME=" + h}})
		}
	})
	t.Run("site-packages", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		closed(t, site(dir))
		r := bounded(t, call{user: true}, "--python", dir+"/bin/python")
		if r.has("torch-not-installed") {
			for _, f := range r.Findings {
				if f.ID == "torch-not-installed" && f.Certainty == "proven" {
					t.Error("a folder that cannot be read is proof that torch is not installed")
				}
			}
		}
	})
	t.Run("torch", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, nil)
		closed(t, site(dir)+"/torch")
		bounded(t, call{user: true}, "--python", dir+"/bin/python")
	})
	t.Run("libraries", func(t *testing.T) {
		dir := fakeEnv(t, cudaVersionPy, map[string][]byte{"lib/libtorch_python.so": []byte("x")})
		closed(t, site(dir)+"/torch/lib/libtorch_python.so")
		b := call{user: true}.facts(t, "--python", dir+"/bin/python")
		if w := winner(t, b); w.NCCL.State != fact.Failed {
			t.Errorf("NCCL of an unreadable library: %+v, want failed", w.NCCL)
		}
	})
	t.Run("working folder", func(t *testing.T) {
		dir := temp(t)
		gone := dir + "/gone"
		write(t, dir+"/run.sh", "#!/bin/sh\nmkdir "+gone+" && cd "+gone+" && rmdir "+gone+" && exec "+program+" check --format json\n")
		out := command(t, nil, "/bin/sh", "-c", dir+"/run.sh || true")
		parse(t, []byte(out), "")
	})
}
