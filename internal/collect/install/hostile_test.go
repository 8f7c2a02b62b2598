package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/testenv"
)

// run collects from any file system and fails when it takes long.
func run(t *testing.T, fsys fs.FS, env map[string]string, o Options) *fact.Bundle {
	t.Helper()
	if env["PATH"] == "" {
		env["PATH"] = "/opt/py/bin"
	}
	var b fact.Bundle
	start := time.Now()
	err := Collect(context.Background(), &source.Machine{FS: fsys, Env: env, Home: "/home/u"}, o, &b)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	if err != nil {
		t.Logf("error: %v", err)
	}
	return &b
}

func TestVersionPyHostile(t *testing.T) {
	version := source.Rel(site + "/torch/version.py")
	for name, change := range map[string]func(fstest.MapFS){
		"named pipe":     func(m fstest.MapFS) { m[version] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o644} },
		"device":         func(m fstest.MapFS) { m[version] = &fstest.MapFile{Mode: fs.ModeDevice | 0o644} },
		"folder":         func(m fstest.MapFS) { delete(m, version); m[version+"/x"] = &fstest.MapFile{} },
		"link to itself": func(m fstest.MapFS) { m[version] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("version.py")} },
		"long":           func(m fstest.MapFS) { m[version] = &fstest.MapFile{Data: make([]byte, maxVersionPy+1)} },
		"missing":        func(m fstest.MapFS) { delete(m, version) },
		"empty":          func(m fstest.MapFS) { m[version] = &fstest.MapFile{} },
		"binary":         func(m fstest.MapFS) { m[version] = &fstest.MapFile{Data: []byte("\x00\xff\xfe\n\x00=\x00")} },
	} {
		t.Run(name, func(t *testing.T) {
			m := files(addAll(basePython(), torchAt(site, "2.5.1", "'12.4'", "2.5.1")))
			change(m)
			b := run(t, m, map[string]string{}, Options{})
			if len(b.Torch) != 1 {
				t.Fatalf("torch %v", b.Torch)
			}
			w := b.Torch[0]
			if w.Version.State != fact.Failed || w.CUDA.State != fact.Failed || w.Version.Why == "" || !w.Dist.IsKnown() {
				t.Errorf("version %+v, cuda %+v, dist %+v", w.Version, w.CUDA, w.Dist)
			}
		})
	}
}

// TestVersionPyHuge reads a sparse file of 1 GB on a real file system, whose
// absolute links point out of the tree and must not be followed there.
func TestVersionPyHuge(t *testing.T) {
	root := t.TempDir()
	for p, text := range addAll(basePython(), torchAt(site, "2.5.1", "None", "2.5.1")) {
		p = filepath.Join(root, p)
		switch target, link := strings.CutPrefix(text, "->"); {
		case strings.HasSuffix(text, "/"):
		case link:
			os.MkdirAll(filepath.Dir(p), 0o755)
			if err := os.Symlink(target, p); err != nil {
				t.Fatal(err)
			}
		default:
			write(t, p, text)
			os.Chmod(p, 0o755)
		}
	}
	if err := os.Truncate(filepath.Join(root, site, "torch/version.py"), 1<<30); err != nil {
		t.Fatal(err)
	}
	os.MkdirAll(filepath.Join(root, "env/bin"), 0o755)
	os.Symlink("/opt/py/bin/python3", filepath.Join(root, "env/bin/python"))
	b := run(t, os.DirFS(root), map[string]string{"PATH": "/env/bin"}, Options{})
	if b.Python.Real.V != "/opt/py/bin/python3.11" || len(b.Torch) != 1 || b.Torch[0].Version.State != fact.Failed {
		t.Errorf("real %+v, torch %+v", b.Python.Real, b.Torch)
	}
}

func TestLoops(t *testing.T) {
	m := basePython()
	m["/loop/a"] = "->b"
	m["/loop/b"] = "->a"
	m["/deep/bin/python"] = "->/loop/a"
	m[site+"/torch"] = "->torch"
	m[site+"/x.pth"] = "/loop/a\n" + strings.Repeat("../", 2000) + "etc\n"
	b := run(t, files(m), map[string]string{"PYTHONPATH": "/loop/a:\xff\xfe:" + strings.Repeat("/x", 5000), "PATH": "/deep/bin:/opt/py/bin", "VIRTUAL_ENV": "/loop/a"}, Options{})
	if b.Python.Exe.V != "/opt/py/bin/python" || len(b.Torch) != 0 {
		t.Errorf("exe %+v, torch %v", b.Python.Exe, b.Torch)
	}
}

func TestManyPth(t *testing.T) {
	m := basePython()
	for i := range 1000 {
		m[fmt.Sprintf("%s/p%04d.pth", site, i)] = strings.Repeat("/nowhere/x\n", 1000) + fmt.Sprintf("import site; site.addsitedir('/d%d')\n", i)
		m[fmt.Sprintf("/d%d/n.pth", i)] = fmt.Sprintf("import site; site.addsitedir('/d%d')\n", i+1)
	}
	b := run(t, files(m), map[string]string{}, Options{})
	if len(b.Problems) < 2 || len(b.Python.Path) > maxEntries {
		t.Errorf("problems %v", b.Problems)
	}
}

// denied refuses everything under a folder.
type denied struct {
	fstest.MapFS
	dir string
}

func (d denied) refuse(op, name string) error {
	if under("/"+name, d.dir) && "/"+name != d.dir {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	}
	return nil
}

func (d denied) Open(name string) (fs.File, error) {
	if "/"+name == d.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	if err := d.refuse("open", name); err != nil {
		return nil, err
	}
	return d.MapFS.Open(name)
}

func (d denied) Lstat(name string) (fs.FileInfo, error) {
	if err := d.refuse("lstat", name); err != nil {
		return nil, err
	}
	return d.MapFS.Lstat(name)
}

func (d denied) Stat(name string) (fs.FileInfo, error) {
	if err := d.refuse("stat", name); err != nil {
		return nil, err
	}
	return d.MapFS.Stat(name)
}

func TestDenied(t *testing.T) {
	m := files(addAll(addAll(basePython(), torchAt(site, "2.5.1", "None", "")), torchAt("/home/u/.local/lib/python3.11/site-packages", "2.4", "None", "")))
	b := run(t, denied{m, "/home/u"}, map[string]string{"HOME": "/home/u"}, Options{})
	if len(b.Torch) != 1 || b.Torch[0].Entry != 3 || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Why, "permission denied") {
		t.Errorf("torch %v, problems %v", b.Torch, b.Problems)
	}
	env := map[string]string{"PYTHONNOUSERSITE": "1"}
	b = run(t, denied{m, site}, env, Options{})
	if len(b.Torch) != 0 || len(b.Problems) == 0 {
		t.Errorf("torch %v, problems %v", b.Torch, b.Problems)
	}
	b = run(t, denied{m, site + "/torch"}, env, Options{})
	if len(b.Torch) != 1 || b.Torch[0].Form != fact.FormNamespace || len(b.Problems) != 1 {
		t.Errorf("torch %+v, problems %v", b.Torch, b.Problems)
	}
	b = run(t, denied{m, "/opt/py/lib"}, env, Options{})
	if !b.Python.Version.IsKnown() || b.Python.Base.State != fact.Failed || b.Python.Base.Why != "/opt/py/lib/python3.11/os.py: permission denied" {
		t.Errorf("%+v", b.Python)
	}
	b = run(t, denied{m, "/opt/py/bin"}, env, Options{})
	if !b.Python.Exe.IsAbsent() || len(b.Problems) != 1 || b.Problems[0].What != "/opt/py/bin" {
		t.Errorf("a folder of PATH: %+v, problems %v", b.Python.Exe, b.Problems)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var b fact.Bundle
	m := &source.Machine{FS: files(basePython()), Env: map[string]string{"PATH": "/opt/py/bin"}}
	if err := Collect(ctx, m, Options{}, &b); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// counting counts what a look at an installation opens and reads.
type counting struct {
	fsys  fs.FS
	opens int
	lists int
	bytes int
	names map[string]int
}

func (c *counting) Open(name string) (fs.File, error) {
	c.opens++
	c.names[name]++
	f, err := c.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if d, ok := f.(fs.ReadDirFile); ok {
		if info, err := f.Stat(); err == nil && info.IsDir() {
			c.lists++
			return d, nil
		}
	}
	return countingFile{f, c}, nil
}

func (c *counting) Stat(name string) (fs.FileInfo, error)  { return fs.Stat(c.fsys, name) }
func (c *counting) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(c.fsys, name) }
func (c *counting) ReadLink(name string) (string, error)   { return fs.ReadLink(c.fsys, name) }

type countingFile struct {
	fs.File
	c *counting
}

func (f countingFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.c.bytes += n
	return n, err
}

func (f countingFile) ReadAt(p []byte, off int64) (int, error) {
	r, ok := f.File.(io.ReaderAt)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	n, err := r.ReadAt(p, off)
	f.c.bytes += n
	return n, err
}

// Limits on the whole check of one torch.
const budgetOpens, budgetBytes = 150, 8 << 20

func (c *counting) check(t *testing.T) {
	t.Helper()
	t.Logf("%d opens (%d folders), %d bytes read", c.opens, c.lists, c.bytes)
	if c.opens > budgetOpens || c.bytes > budgetBytes {
		t.Errorf("over the budget of %d opens and %d bytes: %v", budgetOpens, budgetBytes, c.names)
	}
	for name, n := range c.names {
		if n > 2 {
			t.Errorf("%s was opened %d times", name, n)
		}
	}
}

func TestBudget(t *testing.T) {
	m := addAll(basePython(), torchAt(site, "2.5.1+cu121", "'12.1'", "2.5.1"))
	m[site+"/torch-2.5.1.dist-info/RECORD"] = strings.Repeat("torch/include/ATen/ops/some_operator_or_other_native.h,sha256=LPCP9vHFXJ9H_mrLPCP9vHFXJ9H_mrLPCP9vHFXJ9H_m,1028\n", 12000) + "torch/version.py,sha256=x,1\n"
	for i := range 400 {
		m[fmt.Sprintf("%s/pkg%d-1.0.dist-info/METADATA", site, i)] = "Name: x\n"
	}
	for _, n := range strings.Fields("nccl cublas cudnn cufft curand cusolver cusparse nvjitlink cuda_runtime cuda_nvrtc cuda_cupti nvtx") {
		m[site+"/nvidia_"+n+"_cu12-12.1.dist-info/INSTALLER"] = "pip"
	}
	c := &counting{fsys: files(m), names: map[string]int{}}
	b := run(t, c, map[string]string{"VIRTUAL_ENV": "/envs/x", "CONDA_PREFIX": "/opt/py"}, Options{})
	if len(b.Torch) != 1 || len(b.Torch[0].Damage) == 0 || len(b.Dists) != 13 {
		t.Errorf("torch %+v, %d dists", b.Torch, len(b.Dists))
	}
	c.check(t)
}

func TestBudgetReal(t *testing.T) {
	if _, err := os.Stat("/usr/lib/python3/dist-packages/torch/version.py"); err != nil {
		testenv.Need(t, "Debian's python3-torch", "lab/deps.sh installs it")
	}
	c := &counting{fsys: os.DirFS("/"), names: map[string]int{}}
	start := time.Now()
	b := run(t, c, map[string]string{"PATH": "/usr/bin:/bin", "HOME": t.TempDir()}, Options{Python: "/usr/bin/python3"})
	t.Logf("%v", time.Since(start))
	if len(b.Torch) != 1 || b.Torch[0].Origin.V.Kind != fact.OriginDebian {
		t.Errorf("torch %+v", b.Torch)
	}
	c.check(t)
}

// TestDeadline: a search that was cut short must not look like one that found nothing.
func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := files(addAll(basePython(), torchAt(site, "2.5.1", "'12.4'", "2.5.1")))
	var b fact.Bundle
	err := Collect(ctx, &source.Machine{FS: m, Env: map[string]string{"PATH": "/opt/py/bin"}}, Options{}, &b)
	if !errors.Is(err, context.Canceled) || b.Python.Exe.State != fact.Failed {
		t.Errorf("error %v, exe %+v", err, b.Python.Exe)
	}
}
