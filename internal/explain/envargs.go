package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// envArgs completes the arguments of causes that are mended in the job's
// environment: its interpreter, the tool that installed torch, and the build
// that fits the driver and the GPUs, so that the fixes name them.
func (v *view) envArgs(c *cand) {
	switch {
	case strings.HasPrefix(c.id, "torch-"), strings.HasPrefix(c.id, "nccl-wheels"), strings.HasPrefix(c.id, "nccl-library"), strings.HasPrefix(c.id, "cuda-library"):
	case c.id == "gpu-not-in-container":
		if t := v.containerTool(); t != "" {
			c.args = mergeArgs(c.args, diag.Args{"kind": t, "known": "1"})
		}
		return
	default:
		return
	}
	if c.args == nil {
		c.args = diag.Args{}
	}
	a := c.args
	fill := func(k, val string) {
		if a[k] == "" && val != "" {
			a[k] = val
		}
	}
	if c.id != "torch-not-installed" {
		for k, x := range v.torchArgs(v.build()) {
			fill(k, x)
		}
	}
	fill("image", v.imageOfJob())
	fill("python", v.interpreter())
	if a["image"] == "" && a["installer"] == "" {
		fill("installer", v.pipOrUV())
	}
	caps := v.capabilities()
	if len(caps) > 0 {
		fill("cap", caps[len(caps)-1].V)
	}
	if ds := v.facts(kind.Driver); len(ds) > 0 {
		fill("conda_cuda", tables.DriverCUDA(ds[0].V))
		if a["public_version"] != "" && a["cuda_tag"] == "" && c.id != "torch-not-installed" {
			var cs []string
			for _, s := range caps {
				if !slices.Contains(cs, s.V) {
					cs = append(cs, s.V)
				}
			}
			machine := "x86_64"
			if len(v.facts(kind.Machine)) > 0 {
				machine = "aarch64"
			}
			fill("cuda_tag", tables.Choose(a["public_version"], ds[0].V, machine, cs))
		}
	}
	if strings.HasPrefix(c.id, "nccl-") {
		v.ncclWheel(fill, a["torch_cuda"])
	}
}

// interpreter returns the python of the environment that holds the torch which
// ran, as paths of frames and launchers name it, or "".
func (v *view) interpreter() string {
	for _, x := range v.l.Exits {
		if strings.HasPrefix(x.Binary, "/") && plainPath.MatchString(x.Binary) {
			return x.Binary
		}
	}
	dir, _ := v.torchDir()
	prefix, _, ok := strings.Cut(dir, "/lib/python")
	if ok && plainPath.MatchString(prefix) && prefix != "/usr" && !strings.HasSuffix(prefix, "/.local") && !modulePrefix.MatchString(prefix) {
		return prefix + "/bin/python"
	}
	for _, w := range v.facts(kind.Which) {
		if strings.HasPrefix(w.Name, "python") && plainPath.MatchString(w.V) {
			return w.V
		}
	}
	return ""
}

// modulePrefix matches prefixes of packages that have no interpreter of their own.
var modulePrefix = lazyre.New(`(?i)/(?:py)?torch(?:-bundle)?[/-][\w.-]+$`)

// pipOrUV tells the tool by what only its builds carry: the local tags of the
// wheels of PyTorch's own index.
func (v *view) pipOrUV() string {
	wheel := false
	for _, k := range []string{kind.TorchVer, kind.Pkg} {
		for _, s := range v.facts(k) {
			if k == kind.Pkg && s.Name != "torch" {
				continue
			}
			wheel = wheel || strings.Contains(s.V, "+cpu") || strings.Contains(s.V, "+cu1")
		}
	}
	if !wheel {
		return ""
	}
	for _, c := range v.l.Commands {
		if strings.HasPrefix(c.Text, "uv ") {
			return "uv"
		}
	}
	return "pip"
}

// imageOfJob returns the container image in which the script starts the job, or "".
func (v *view) imageOfJob() string {
	for _, s := range v.batch() {
		for i := range s.f.Commands {
			if b := s.f.Commands[i].Container; b != nil && b.Image != "" && !s.f.Commands[i].Dead {
				return b.Image
			}
		}
	}
	return ""
}

// containerTool returns what starts the job's containers, or "".
func (v *view) containerTool() string {
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			if b := s.f.Commands[i].Container; b != nil && b.Tool != "" {
				return b.Tool
			}
		}
	}
	for _, c := range v.l.Commands {
		for _, t := range []string{"apptainer", "singularity", "docker", "podman"} {
			if strings.HasPrefix(c.Text, t+" ") || strings.Contains(c.Text, " "+t+" ") {
				return t
			}
		}
	}
	return ""
}

// ncclWheel names the wheel of NCCL that this torch needs, and the others that
// write the same file.
func (v *view) ncclWheel(fill func(k, val string), cuda string) {
	by := map[string]fact.Said{}
	for _, s := range v.facts(kind.Pkg) {
		if strings.HasPrefix(s.Name, "nvidia-nccl-cu") {
			by[s.Name] = s
		}
	}
	major, _, _ := strings.Cut(cuda, ".")
	want := "nvidia-nccl-cu" + major
	s, ok := by[want]
	if !ok || major == "" {
		return
	}
	fill("wheel", want)
	fill("wheel_version", s.V)
	var rest []string
	for n := range by {
		if n != want {
			rest = append(rest, n)
		}
	}
	slices.Sort(rest)
	fill("others", strings.Join(rest, " "))
}
