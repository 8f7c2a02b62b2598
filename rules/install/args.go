package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// args returns what every finding about the installation can say: the standard
// arguments of the knowledge base, as far as they are known. What is not known
// is left out, so that the fixes that need it are not shown.
func args(b *fact.Bundle) diag.Args {
	a := diag.Args{"python": quote(b.Python.Exe.Or("python")), "env_kind": envKind(b)}
	t := b.Winner()
	if t != nil {
		a["torch_dir"] = quote(t.Dir)
		if b.Target.Kind == "" {
			a["site_dir"] = quote(path.Dir(t.Dir))
		} else { // its paths are not those of this machine: nothing of them is removed
			a["artefact"] = b.Target.Kind
		}
		a["version"] = t.Version.Or("?")
		a["public_version"] = tables.Public(t.Version.Or(""))
		a["torch_cuda"] = t.CUDA.Or("")
		a["installer"] = installer(t)
		a["build"] = build(t)
		if o, ok := t.Origin.Get(); ok {
			a["origin"] = o.Kind
		}
	}
	if !b.Python.Pip.Or(true) && b.Python.Venv.Or(false) {
		a[diag.NoPip] = "ensurepip"
		if b.Python.UV.IsKnown() {
			a[diag.NoPip] = "uv"
		}
	}
	if p, ok := b.Python.Conda.Get(); ok && (t == nil || a["installer"] == "conda") {
		a["conda_prefix"] = quote(p)
	}
	if d, ok := b.Node.Driver.Get(); ok {
		a["driver"] = d.Version
		a["conda_cuda"] = tables.DriverCUDA(d.Version)
	}
	if gs := b.Node.GPUs.Or(nil); len(gs) > 0 {
		a["gpu"], a["cap"] = gs[0].Name, gs[0].Cap
	}
	a["board"] = b.Host.Board.Or("")
	a["image"] = image(b)
	a["cuda_tag"] = tag(b, t, a)
	for k, v := range a {
		if v == "" {
			delete(a, k)
		}
	}
	return a
}

// tag chooses the CUDA build for the fix: of the same torch release when it is
// one, of the newest when nothing is there to keep.
func tag(b *fact.Bundle, t *fact.Torch, a diag.Args) string {
	var caps []string
	for _, g := range b.Node.GPUs.Or(nil) {
		if g.Cap == "" {
			return ""
		}
		caps = append(caps, g.Cap)
	}
	if t == nil || a["installer"] == "debian" {
		return tables.ChooseNewest(a["driver"], b.Host.Arch.Or(""), caps)
	}
	return tables.Choose(a["public_version"], a["driver"], b.Host.Arch.Or(""), caps)
}

// sameBuild makes the fix put back the build that is there, for faults that are
// not about which build it is: its own local tag names the index.
func sameBuild(b *fact.Bundle, a diag.Args) {
	t := b.Winner()
	if t == nil || a["public_version"] == "" {
		return
	}
	delete(a, "cuda_tag")
	if _, local, _ := strings.Cut(t.Version.Or(""), "+"); tables.TagCUDA(local) != "" {
		a["cuda_tag"] = local
	}
}

func envKind(b *fact.Bundle) string {
	switch {
	case b.Python.Conda.IsKnown():
		return "conda"
	case b.Python.Venv.Or(false):
		return "venv"
	}
	return "system"
}

// inEnv reports whether the interpreter belongs to an environment that
// somebody made, as against the system's.
func inEnv(b *fact.Bundle) bool { return envKind(b) != "system" }

// installer says who put the torch there; pip where nothing says otherwise.
func installer(t *fact.Torch) string {
	if d, ok := t.Dist.Get(); ok && d.Installer != "" {
		switch d.Installer {
		case "pip", "uv", "conda", "debian":
			return d.Installer
		}
	}
	switch t.Origin.V.Kind {
	case fact.OriginConda:
		return "conda"
	case fact.OriginDebian:
		return "debian"
	}
	return "pip"
}

// image names the container image when the torch is part of it and the job
// cannot write there: user site and mounted home directories are not part of
// it, and what runs under docker or podman can be changed from inside.
func image(b *fact.Bundle) string {
	kind, ok := b.Container.Kind.Get()
	if !ok || kind == "docker" || kind == "podman" {
		return ""
	}
	where := b.Python.Prefix.Or(b.Python.Exe.Or(""))
	if t := b.Winner(); t != nil {
		where = t.Dir
	}
	for _, p := range []string{"/usr/", "/opt/", "/venv/", "/app/"} {
		if strings.HasPrefix(where, p) {
			return b.Container.Image.Or(kind)
		}
	}
	return ""
}

// build names a build in a few words that are the same in every language.
func build(t *fact.Torch) string {
	v := t.Version.Or("?")
	switch t.Accel() {
	case fact.AccelCPU:
		return v + " (CPU)"
	case fact.AccelCUDA:
		return v + " (CUDA " + t.CUDA.V + ")"
	case fact.AccelROCm:
		return v + " (ROCm " + t.HIP.V + ")"
	case fact.AccelXPU:
		return v + " (XPU)"
	}
	return v
}

// poor says why a torch cannot run NCCL: "cpu", "nccl", "distributed"; "" when
// it can or when that is not known.
func poor(t *fact.Torch) string {
	switch {
	case t.Accel() == fact.AccelCPU:
		return "cpu"
	case t.Distributed.IsKnown() && !t.Distributed.V:
		return "distributed"
	case t.NCCL.IsKnown() && !t.NCCL.V:
		return "nccl"
	}
	return ""
}

// trains reports whether everything that is known of the winning torch says
// that NCCL can run with it.
func trains(b *fact.Bundle) bool {
	t := b.Winner()
	return t != nil && (t.Accel() == fact.AccelCUDA || t.Accel() == fact.AccelROCm) && poor(t) == ""
}

// imports reports whether the job's own interpreter imported torch.
func imports(b *fact.Bundle) bool { return b.Live.State.Or("") == "ok" }

var plain = lazyre.New(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// quote makes a path safe to paste into a shell; ordinary ones stay as they are.
func quote(s string) string {
	if s == "" || plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var pin = lazyre.New(`^(nvidia-nccl-cu1[0-9])\s*\(?==\s*([0-9][0-9.]*)\)?`)

// ncclPin returns the NCCL package and version that a torch asks for, "" when it does not say.
func ncclPin(t *fact.Torch) (name, version string) {
	for _, r := range t.Dist.V.Requires {
		if m := pin.FindStringSubmatch(r); m != nil {
			return m[1], m[2]
		}
	}
	return "", ""
}

// without returns a list variable such as LD_LIBRARY_PATH without one folder,
// quoted for a shell.
func without(value, dir string) string {
	var keep []string
	for _, d := range strings.Split(value, ":") {
		if d != "" && path.Clean(d) != path.Clean(dir) {
			keep = append(keep, d)
		}
	}
	return quote(strings.Join(keep, ":"))
}

// loaderArgs adds the variable that decided which file is loaded, and its value
// without the folder that did.
func loaderArgs(b *fact.Bundle, a diag.Args, via, dir string) {
	switch via {
	case "LD_LIBRARY_PATH":
		a["var"] = via
		if v, ok := b.Lookup(via); ok {
			if rest := without(v, dir); rest != "" {
				a["path_fixed"] = rest
			}
		}
	case "preload", "LD_PRELOAD":
		a["var"] = "LD_PRELOAD"
	}
}

// within reports whether a path lies in a folder.
func within(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return dir != "." && (p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/"))
}

// first returns the first elements of a list for people, with … when there are more.
func first(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:n], ", ") + ", …"
}
