// Package target reads the facts of an artefact that was opened: a wheel, a
// conda package, an image, an archive of an environment. Nothing of it is run.
package target

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/collect/env"
	"github.com/ncclinic/ncclinic/internal/collect/install"
	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/archive"
)

// Options say what to look at in an image.
type Options struct {
	Python string // interpreter, as install.Options.Python; empty: the one that the image would start
	// Home is a home directory that is bound in, and HomeFS what it holds; empty: none.
	Home   string
	HomeFS fs.FS
	Also   []string // libraries of which the loader's search is told in any case
}

// NotTorch means that a package is one of something else.
type NotTorch struct{ What string }

func (e NotTorch) Error() string { return e.What + ", without torch in it" }

// Collect fills b from an artefact and returns the machine that it would be,
// for collectors that look at more of it.
func Collect(ctx context.Context, t *source.Target, o Options, b *fact.Bundle) (*source.Machine, error) {
	b.Schema = fact.BundleSchema
	b.Subject = fact.Subject{Kind: "target", Name: t.Path}
	b.Target = fact.Target{Kind: t.Kind, Path: t.Path, Size: t.Size}
	b.Problems = append(b.Problems, t.Problems...)
	m := &source.Machine{FS: t.FS, Env: map[string]string{}, Home: "/root"}
	var err error
	switch {
	case t.IsImage():
		err = image(ctx, t, m, o, b)
	case t.Kind == source.KindEnv:
		err = environment(ctx, t, m, o, b)
	default:
		err = packages(ctx, t, m, o, b)
	}
	b.Target.Read = t.BytesRead()
	return m, err
}

// image looks at a root file system as at a machine.
func image(ctx context.Context, t *source.Target, m *source.Machine, o Options, b *fact.Bundle) error {
	im := t.Image
	b.Target.EnvAt, b.Target.Entrypoint, b.Target.Platforms = im.EnvAt, im.Entrypoint, im.Platforms
	for k, v := range im.Env {
		m.Env[k] = v
	}
	kind := map[string]string{source.KindSIF: "apptainer", source.KindSquash: "enroot", source.KindOCI: "oci", source.KindDocker: "oci"}[t.Kind]
	if kind == "" {
		kind = "rootfs"
		if st, err := fs.Stat(t.FS, ".singularity.d"); err == nil && st.IsDir() {
			kind = "apptainer"
		}
	}
	b.Container.Kind = fact.Of(kind, fact.File(t.Path))
	b.Container.Image = fact.Of(t.Path, fact.File(t.Path))
	if kind == "apptainer" { // its shell appends this folder, in which --nv puts the driver's libraries
		m.Env["LD_LIBRARY_PATH"] = strings.TrimPrefix(m.Env["LD_LIBRARY_PATH"]+":/.singularity.d/libs", ":")
	}
	if o.HomeFS != nil && path.IsAbs(o.Home) {
		m.FS = source.Bind(t.FS, source.Rel(o.Home), o.HomeFS)
		m.Home, m.Env["HOME"] = o.Home, o.Home
	}
	cwd := im.WorkDir
	opt := install.Options{Python: o.Python, Cwd: cwd, Streamed: t.Streamed, Also: o.Also}
	if opt.Cwd == "" {
		opt.Cwd = "/"
	}
	if opt.Python == "" {
		if p := im.Python(); p != "" {
			opt.Python, opt.By = p, fact.ByEntrypoint
		}
	}
	if im.OS != "" {
		b.Host.OS = fact.Of(im.OS, fact.File(t.Path))
	}
	envfacts.Collect(m, b)
	err := install.Collect(ctx, m, opt, b)
	if exe, ok := b.Python.Real.Get(); ok && im.Arch == "" {
		if f, c, err := elfx.OpenFS(m.FS, source.Rel(exe), nil); err == nil {
			im.Arch = elfx.MachineName(f.Machine)
			c.Close()
		}
	}
	if im.Arch != "" {
		b.Host.Arch = fact.Of(im.Arch, fact.File(t.Path))
		b.Target.Platform = im.OS + "/" + im.Arch
	}
	b.Target.Compat = compatIn(t.FS)
	b.Python.LocalTorch = nil // the working directory of a job is not that of the image
	if b.Node.LibCUDA.IsAbsent() {
		// The driver's libraries never are in an image: they are bound in when it starts.
		b.Node.LibCUDA = fact.Val[fact.LibCUDA]{}
	}
	dropAbsent(b, "libcuda.so.1")
	dropAbsent(b, "libnvidia-ml.so.1")
	return err
}

// dropAbsent forgets that a library was not found, where that is no fault.
func dropAbsent(b *fact.Bundle, soname string) {
	keep := b.Loads[:0]
	for _, l := range b.Loads {
		if l.Soname != soname || l.Path.IsKnown() {
			keep = append(keep, l)
		}
	}
	b.Loads = keep
}

// environment looks at the archive of an environment: the system's own
// libraries and, of a virtual environment, the interpreter are not in it.
func environment(ctx context.Context, t *source.Target, m *source.Machine, o Options, b *fact.Bundle) error {
	py := t.Prefix
	if o.Python != "" {
		py = o.Python
	}
	m.Env["PATH"] = path.Join(t.Prefix, "bin")
	err := install.Collect(ctx, m, install.Options{Python: py, Cwd: "/", Streamed: t.Streamed, Also: o.Also}, b)
	if b.Python.Exe.State == fact.Failed || b.Python.Version.State == fact.Failed && len(b.Torch) == 0 {
		// The interpreter of a virtual environment is a link to the system's. Its packages are here.
		if site := siteOf(t.FS, t.Prefix); site != "" {
			fresh := fact.Bundle{Schema: b.Schema, Subject: b.Subject, Target: b.Target}
			*b = fresh
			t.Site = site
			return packages(ctx, t, m, o, b)
		}
	}
	b.Python.LocalTorch, b.Python.Others = nil, nil
	keep := b.Loads[:0]
	for _, l := range b.Loads {
		if l.Path.IsKnown() || install.FromCUDA(l.Soname) && l.Soname != "libcuda.so.1" && l.Soname != "libnvidia-ml.so.1" {
			keep = append(keep, l)
		}
	}
	b.Loads = keep
	b.Node.LibCUDA = fact.Val[fact.LibCUDA]{}
	guessArch(b)
	return err
}

// fileTag takes the tag out of a wheel's name: NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl.
func fileTag(name string) string {
	f := strings.Split(strings.TrimSuffix(name, ".whl"), "-")
	if n := len(f); n == 5 || n == 6 {
		return strings.Join(f[n-3:], "-")
	}
	return ""
}

func siteOf(f fs.FS, prefix string) string {
	lib := path.Join(source.Rel(prefix), "lib")
	list, _ := fs.ReadDir(f, lib)
	for _, e := range list {
		s := path.Join(lib, e.Name(), "site-packages")
		if st, err := fs.Stat(f, path.Join(s, "torch")); strings.HasPrefix(e.Name(), "python3") && err == nil && st.IsDir() {
			return "/" + s
		}
	}
	return ""
}

// packages looks at packages alone. What the loader would find among them is told
// only when somebody asks for a library: the system's are missing by design.
func packages(ctx context.Context, t *source.Target, m *source.Machine, o Options, b *fact.Bundle) error {
	if st, err := fs.Stat(t.FS, source.Rel(path.Join(t.Site, "torch"))); err != nil || !st.IsDir() {
		return NotTorch{what(t)}
	}
	err := install.Collect(ctx, m, install.Options{Python: t.Site, Cwd: "/", NoLoads: len(o.Also) == 0, Also: o.Also, Streamed: t.Streamed}, b)
	if err != nil {
		return err
	}
	b.Python.By = ""
	w := b.Winner()
	if w == nil {
		return NotTorch{what(t)}
	}
	if t.Kind == source.KindConda {
		condaOrigin(t, w)
	}
	b.Target.Tags = w.Dist.V.Tags
	if tag := fileTag(path.Base(t.Path)); t.Kind == source.KindWheel && tag != "" {
		b.Target.Tags = []string{tag} // what pip goes by; WHEEL inside says linux_x86_64 where that was repaired
	}
	os, at := platformOf(t, w)
	if os != "" {
		b.Host.OS = fact.Of(os, at)
	}
	if os == "linux" && w.NCCL.State == fact.Failed && w.NCCL.Why == install.NoLibrary { // import torch wants torch._C of every build
		w.Damage = append(w.Damage, fact.Damage{Kind: fact.DamageMissingFile, What: path.Join(w.Dir, "_C.*.so"), At: w.NCCL.At})
	}
	requires(t, w, b)
	guessArch(b)
	return nil
}

// guessArch says for which architecture an artefact without a system is.
func guessArch(b *fact.Bundle) {
	w := b.Winner()
	if w == nil {
		return
	}
	if a, ok := w.Machine.Get(); ok && b.Host.OS.Or("linux") == "linux" {
		b.Target.Platform = "linux/" + a
	} else if len(b.Target.Tags) > 0 {
		tag := b.Target.Tags[0]
		b.Target.Platform = tag[strings.LastIndexByte(tag, '-')+1:]
	}
}

// what names a package that is not torch.
func what(t *source.Target) string {
	if t.Kind == source.KindConda {
		if x, err := archive.ReadCondaIndex(t.FS); err == nil {
			return fmt.Sprintf("a conda package of %s %s (%s)", fact.Clip(x.Name, 100), fact.Clip(x.Version, 50), fact.Clip(x.Build, 100))
		}
	}
	list, _ := fs.ReadDir(t.FS, source.Rel(t.Site))
	for _, e := range list {
		if n, ok := strings.CutSuffix(e.Name(), ".dist-info"); ok {
			return "a package of " + fact.Clip(strings.Replace(n, "-", " ", 1), 150)
		}
	}
	return "a folder of packages"
}

// condaOrigin takes the build string out of the package itself.
func condaOrigin(t *source.Target, w *fact.Torch) {
	x, err := archive.ReadCondaIndex(t.FS)
	if err != nil {
		return
	}
	clip := func(s string) string { return fact.Clip(s, 200) }
	w.Origin = fact.Of(fact.Origin{Kind: fact.OriginConda, Package: clip(x.Name), Version: clip(x.Version), Build: clip(x.Build)}, fact.FileExcerpt("/info/index.json", clip(x.Build)))
	if d, ok := w.Dist.Get(); ok {
		d.Installer, d.Build = "conda", clip(x.Build)
		w.Dist.V = d
	}
}

// platformOf tells the operating system that a package is for, by its tags or libraries.
func platformOf(t *source.Target, w *fact.Torch) (string, fact.Evidence) {
	for _, tag := range w.Dist.V.Tags {
		if os := fact.TagOS(tag); os != "" {
			return os, fact.FileExcerpt(path.Join(w.Dist.V.Dir, "WHEEL"), "Tag: "+tag)
		}
	}
	for _, l := range []struct{ file, os string }{{"libtorch_cpu.so", "linux"}, {"libtorch_cpu.dylib", "darwin"}, {"torch_cpu.dll", "windows"}} {
		p := path.Join(w.Dir, "lib", l.file)
		if _, err := fs.Lstat(t.FS, source.Rel(p)); err == nil {
			return l.os, fact.File(p)
		}
	}
	return "", fact.Evidence{}
}

// maxWants bounds the requirements that are kept.
const maxWants = 40

// requirement takes marker, spaces and the older form's parentheses from a requirement: nvidia-nccl-cu12==2.21.5.
func requirement(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return fact.Clip(strings.NewReplacer(" ", "", "\t", "", "(", "", ")", "").Replace(s), 200)
}

// requires reads what METADATA says of Python, NCCL and NVIDIA's other packages.
func requires(t *source.Target, w *fact.Torch, b *fact.Bundle) {
	file := path.Join(w.Dist.V.Dir, "METADATA")
	f, err := t.FS.Open(source.Rel(file))
	if err != nil {
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		b.AddProblem(file, err.Error())
		return
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			return
		}
		if v, ok := strings.CutPrefix(line, "Requires-Python:"); ok {
			b.Target.Requires = fact.Clip(strings.TrimSpace(v), 100)
		}
		if v, ok := strings.CutPrefix(line, "Requires-Dist:"); ok && w.Accel() == fact.AccelCUDA && len(b.Target.Wants) < maxWants {
			if r := requirement(v); strings.HasPrefix(r, "nvidia-") || strings.HasPrefix(r, "cuda-toolkit") {
				b.Target.Wants = append(b.Target.Wants, r)
			}
		}
		// A CPU build for another platform may name it too, behind a marker.
		if v, ok := strings.CutPrefix(line, "Requires-Dist: nvidia-nccl-"); ok && w.Accel() == fact.AccelCUDA {
			if _, ver, ok := strings.Cut(v, "=="); ok {
				end := 0
				for end < len(ver) && (ver[end] == '.' || ver[end] >= '0' && ver[end] <= '9') {
					end++
				}
				if end > 0 {
					w.NCCLVersion = fact.Of(ver[:end], fact.FileLine(file, n, fact.Clip(line, 200)))
				}
			}
		}
	}
}
