package plan

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// FromBundle reads what a plan needs out of the facts of one node.
func FromBundle(b *fact.Bundle) Input {
	in := Input{Python: b.Python.Version.Or(""), OS: b.Host.OS.Or(""), Machine: b.Host.Arch.Or(""), Glibc: b.Host.Glibc.Or(""), Board: b.Host.Board.Or("")}
	if n, ok := NodeOf(b); ok {
		in.Nodes = []Node{n}
	}
	in.Env = envOf(b)
	t := keptTorch(b)
	if t == nil {
		return in
	}
	if strings.HasSuffix(t.PyTag.Or(""), "t") && in.Python != "" && !strings.HasSuffix(in.Python, "t") {
		in.Python = tables.PythonMinor(in.Python) + "t"
	}
	in.Have = Have{Version: t.Version.Or(""), CUDA: t.CUDA.Or(""), Accel: t.Accel(), Archs: t.Archs.Or(nil), NoNCCL: t.NCCL.IsKnown() && !t.NCCL.V}
	if l := b.LoadOf("libnccl.so.2"); l != nil {
		in.Have.NCCL = l.Version.Or("")
	}
	for _, d := range t.Damage {
		in.Have.Broken = in.Have.Broken || d.Kind != fact.DamageLeftover
	}
	return in
}

// NodeOf reads driver and GPUs of a bundle's node; false when it shows no
// NVIDIA driver and no GPU, as on a login node.
func NodeOf(b *fact.Bundle) (Node, bool) {
	n := Node{Name: b.Host.Name.Or(""), GPUs: []GPU{}}
	if d, ok := b.Node.Driver.Get(); ok {
		n.Driver = d.Version
	}
	if l, ok := b.Node.LibCUDA.Get(); ok && l.Compat && l.Version != "" {
		n.Compat = l.Version
	}
	seen := map[GPU]bool{}
	for _, g := range b.Node.GPUs.Or(nil) {
		x := GPU{Name: g.Name, Cap: g.Cap}
		if !seen[x] {
			seen[x] = true
			n.GPUs = append(n.GPUs, x)
		}
	}
	return n, n.Driver != "" || len(n.GPUs) > 0
}

// keptTorch is the environment's own torch where a copy of the user's is in front
// of it, else the one that is imported.
func keptTorch(b *fact.Bundle) *fact.Torch {
	if t := b.Winner(); t == nil || t.Kind != fact.PathUserSite || len(b.Torch) == 1 {
		return t
	}
	for i := range b.Torch {
		if b.Torch[i].Kind == fact.PathSite {
			return &b.Torch[i]
		}
	}
	return b.Winner()
}

// ownPython tells an interpreter that pyenv, asdf or mise built for one user: it
// is no environment, but it is the user's own.
func ownPython(path string) bool {
	for _, s := range []string{"/.pyenv/versions/", "/pyenv/versions/", "/.asdf/installs/python/", "/mise/installs/python/"} {
		if strings.Contains(path+"/", s) {
			return true
		}
	}
	return false
}

func envOf(b *fact.Bundle) Env {
	e := Env{Python: b.Python.Exe.Or(""), Prefix: b.Python.Prefix.Or(""), Kind: "system", Companions: map[string]string{}, Login: !b.Node.Driver.IsKnown()}
	if base, ok := b.Python.Base.Get(); ok && base != "" {
		e.Base = path.Join(base, "bin", "python3")
	}
	switch {
	case !b.Python.Exe.IsKnown():
		e.Kind = ""
	case b.Python.Venv.Or(false): // one that was made by conda's Python is still a venv
		e.Kind = "venv"
	case b.Python.Conda.IsKnown():
		e.Kind, e.Prefix = "conda", b.Python.Conda.V
	case ownPython(e.Python), ownPython(e.Prefix):
		e.Kind = "pyenv"
	}
	t := b.Winner()
	e.Tool = Pip
	if e.Kind == "venv" && !b.Python.Pip.Or(true) {
		e.NoPip = true
		if b.Python.UV.IsKnown() {
			e.Tool = UV
		}
	}
	if k := keptTorch(b); k != nil {
		switch d := k.Dist.V.Installer; {
		case d == "uv" && e.Kind != "system":
			e.Tool = UV
		case e.Kind == "conda" && (d == "conda" || k.Origin.V.Kind == fact.OriginConda):
			e.Tool = Conda
		}
	}
	if t != nil && t.Kind == fact.PathUserSite && (len(b.Torch) > 1 || t.Accel() != fact.AccelCUDA) {
		e.UserSite = path.Dir(t.Dir)
	}
	for _, d := range b.Dists {
		user := d.Entry >= 0 && d.Entry < len(b.Python.Path) && b.Python.Path[d.Entry].Kind == fact.PathUserSite
		switch d.Name {
		case "torchvision", "torchaudio":
			if _, ok := e.Companions[d.Name]; !ok {
				e.Companions[d.Name] = d.Version
			}
			if user && e.UserSite != "" {
				e.UserDists = append(e.UserDists, d.Name)
			}
		}
	}
	if e.UserSite != "" {
		e.UserDists = append([]string{"torch"}, e.UserDists...)
	}
	if kind, ok := b.Container.Kind.Get(); ok && kind != "docker" && kind != "podman" {
		e.Image = b.Container.Image.Or(kind)
	}
	return e
}
