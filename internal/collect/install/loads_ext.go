package install

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/elfx"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/ldso"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Limits of the look at extensions.
const (
	extFiles   = 8
	extBytes   = 3 << 20
	extSmall   = 400 // symbols looked up in libc10, which is small
	extLarge   = 60  // symbols looked up in the large libraries of torch
	extMissing = 16
)

// knownExtensions are compiled packages beside torch that break when torch is
// another one than they were built for: a folder and a pattern of file names.
var knownExtensions = []struct{ name, dir, glob string }{
	{"torchvision", "torchvision", "_C*.so"},
	{"torchaudio", "torchaudio/lib", "libtorchaudio.so"},
	{"flash-attn", ".", "flash_attn_2_cuda*.so"},
	{"apex", ".", "amp_C*.so"},
	{"xformers", "xformers", "_C*.so"},
	{"transformer-engine", ".", "transformer_engine_torch*.so"},
	{"vllm", "vllm", "_C*.so"},
	{"deepspeed", "deepspeed/ops/adam", "*.so"},
	{"mamba-ssm", ".", "selective_scan_cuda*.so"},
	{"causal-conv1d", ".", "causal_conv1d_cuda*.so"},
}

// ofTorch tells C++ names of torch's namespaces.
var ofTorch = lazyre.New(`^_Z(?:T[IVS])?NK?(?:3c10|2at|5torch|6caffe2)`)

// extensions checks the symbols that known extensions need of torch.
func (s *loads) extensions(p *ldso.Process) {
	site := path.Dir(s.t.Dir)
	if !s.tr.isDir(site) {
		return
	}
	meter := &elfx.Meter{MaxFiles: extFiles, MaxBytes: extBytes}
	// Small libraries first: most of the base symbols are in libc10.
	var libs []*ldso.Object
	for _, o := range p.Objects {
		if n := path.Base(o.Path); strings.HasPrefix(n, "libc10") || strings.HasPrefix(n, "libtorch") && !strings.HasPrefix(n, "libtorch_global") {
			libs = append(libs, o)
		}
	}
	slices.SortStableFunc(libs, func(a, b *ldso.Object) int { return cmp.Compare(weight(a), weight(b)) })
	if len(libs) == 0 || weight(libs[0]) != 0 {
		return
	}
	for _, k := range knownExtensions {
		if s.ctx.Err() != nil || meter.Files >= extFiles {
			return
		}
		dir := path.Join(site, k.dir)
		if k.dir != "." && !s.tr.isDir(dir) {
			continue
		}
		names := s.tr.list(dir).sorted(func(n string) bool { ok, _ := path.Match(k.glob, n); return ok })
		if len(names) == 0 {
			continue
		}
		if e, ok := s.extension(path.Join(dir, names[0]), k.name, libs, meter); ok {
			s.b.Extensions = append(s.b.Extensions, e)
		}
	}
}

func weight(o *ldso.Object) int {
	switch n := path.Base(o.Path); {
	case strings.HasPrefix(n, "libc10.so"):
		return 0
	case strings.HasPrefix(n, "libc10"):
		return 1
	case strings.HasPrefix(n, "libtorch_cpu"):
		return 2
	}
	return 3
}

func (s *loads) extension(file, name string, libs []*ldso.Object, meter *elfx.Meter) (fact.Extension, bool) {
	e := fact.Extension{Name: name, Path: file, At: fact.File(file)}
	n := s.tr.at(file)
	if n.err != nil || !n.info.Mode().IsRegular() {
		return e, false
	}
	f, c, err := elfx.OpenFS(s.m.FS, source.Rel(n.real), meter)
	if err != nil {
		s.b.AddProblem(file, err.Error())
		return e, false
	}
	defer c.Close()
	if f.Machine != libs[0].File.Machine || f.Class64 != libs[0].File.Class64 {
		return e, false
	}
	for _, d := range s.b.Dists {
		if d.Name == name && path.Dir(d.Dir) == path.Dir(s.t.Dir) {
			e.Version = d.Version
		}
	}
	e.CUDART = fact.None[string](e.At)
	for _, n := range f.Needed {
		if strings.HasPrefix(n, "libcudart") {
			e.CUDART = fact.Of(n, fact.FileExcerpt(file, "NEEDED "+n))
		}
	}
	if sec, ok, err := f.Section(".nv_fatbin"); err == nil && ok {
		if archs, err := f.FatArchs(sec, maxFatBins); err == nil && len(archs) > 0 {
			e.Archs = fact.Of(archs, fact.FileExcerpt(file, ".nv_fatbin"))
		}
	} else if err == nil && !ok {
		if _, text, err := f.Section(".text"); err == nil && text { // it has section headers
			e.Archs = fact.None[[]string](e.At)
		}
	}
	// A library of torch that this torch does not have says it all.
	for _, n := range f.Needed {
		if !torchLib(n) || strings.HasPrefix(n, "libpython") || slices.ContainsFunc(libs, func(o *ldso.Object) bool { return path.Base(o.Path) == n || o.File.Soname == n }) {
			continue
		}
		if !lookLib(s.tr, path.Join(s.t.Dir, "lib", n)) {
			e.Missing = append(e.Missing, n)
		}
		// Else the simulation did not come as far: nothing can be said about symbols.
		return e, true
	}
	var names []string
	if err := f.Undefined(func(y elfx.Symbol) bool {
		if !y.Weak && ofTorch.MatchString(y.Name) {
			names = append(names, y.Name)
		}
		return len(names) < 4000
	}); err != nil {
		s.b.AddProblem(file, "its symbols: "+err.Error())
		return e, true
	}
	e.Missing = missingOf(names, libs)
	return e, true
}

// missingOf returns symbols that none of torch's libraries exports. c10's are
// all looked up, since the library is small and its interface tells builds and
// the two C++ ABIs apart; of the others a sample.
func missingOf(names []string, libs []*ldso.Object) []string {
	var rest, out []string
	for i, n := range names {
		if strings.Contains(n, "3c10") && i < extSmall {
			if _, ok, err := libs[0].File.Lookup(n); err != nil {
				return nil
			} else if ok {
				continue
			}
		}
		rest = append(rest, n)
	}
	step := max(1, len(rest)/extLarge)
	for i := 0; i < len(rest) && len(out) < extMissing; i += step {
		found := false
		for _, o := range libs {
			_, ok, err := o.File.Lookup(rest[i])
			if err != nil {
				return nil // cannot tell
			}
			if ok {
				found = true
				break
			}
		}
		if !found {
			out = append(out, rest[i])
		}
	}
	return out
}
