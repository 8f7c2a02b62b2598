package plan

import (
	"slices"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/tables"
)

// makers lists who made the GPUs, sorted; "" stands for names that do not tell.
func (in *Input) makers() []string {
	var out []string
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			m := g.Maker
			if g.Cap != "" || m == "" && tables.Maker(g.Name) == tables.NVIDIA {
				m = tables.NVIDIA
			}
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	sort.Strings(out)
	return out
}

// otherMaker says when no wheel of the PyTorch index is for these accelerators.
func (in *Input) otherMaker() (Reason, bool) {
	ms := in.makers()
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			switch g.Maker {
			case "", tables.AMD:
			default:
				return why("maker-"+g.Maker, "gpu", g.Name), true
			}
		}
	}
	if len(ms) > 1 && slices.Contains(ms, tables.AMD) {
		var names []string
		for _, n := range in.Nodes {
			for _, g := range n.GPUs {
				names = append(names, g.Label())
			}
		}
		return why("makers-mixed", "gpus", strings.Join(names, ", ")), true
	}
	if in.amd && in.Machine != "x86_64" {
		return why("rocm-machine", "machine", in.Machine), true
	}
	return Reason{}, false
}

// otherKind says when the wish names a build of the other kind of GPU.
func (in *Input) otherKind(w *wish) (Reason, bool) {
	switch {
	case in.amd && cudaTag(w.tag):
		return why("amd-cuda", "tag", w.tag, "gpu", in.gpuNames()[0]), true
	case !in.amd && tables.TagROCm(w.tag) != "" && slices.Contains(in.makers(), tables.NVIDIA):
		return why("nvidia-rocm", "tag", w.tag, "gpu", in.Nodes[0].GPUs[0].Label()), true
	}
	return Reason{}, false
}

// judgeROCm tries a ROCm build. The driver is not in the tables: AMD's user space
// and kernel driver may be some releases apart.
func (in *Input) judgeROCm(f fit, no func(soft bool, id string, kv ...string) fit) fit {
	f.how = Unsaid
	rocm := tables.TagROCm(f.tag)
	if rocm == "" {
		return no(true, "no-rocm", "end", tables.NewestRelease(), "read", tables.Read)
	}
	if r, soft, ok := in.wheel(&f, tables.ROCmTags(f.torch)); !ok {
		return no(soft, r.ID, pairs(r.Args)...)
	}
	archs := tables.ROCmArchs(rocm)
	if len(archs) == 0 {
		return no(true, "archs-unknown", "machine", in.Machine)
	}
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			switch {
			case g.GFX == "":
				f.needs = append(f.needs, why("need-cap", "gpu", g.Label(), "archs", strings.Join(archs, " ")))
			case tables.ROCmRuns(rocm, g.GFX) == tables.No:
				return no(false, "arch", "gpu", g.Label(), "archs", strings.Join(archs, " "))
			}
		}
	}
	f.needs = append(f.needs, why("need-amdgpu", "rocm", rocm))
	return f
}

// bestROCm takes the newest ROCm that a release has and that does, or what is
// there already.
func bestROCm(fits []fit, installed string) *fit {
	var out *fit
	for i := range fits {
		f := &fits[i]
		if f.ok() && f.tag == installed {
			return f
		}
		if f.ok() && (out == nil || tables.Compare(tables.TagROCm(f.tag), tables.TagROCm(out.tag)) > 0) {
			out = f
		}
	}
	return out
}

// tool leaves a tool that has no ROCm builds of torch for pip.
func (in *Input) tool(p *Plan) {
	if !in.amd || len(p.Options) == 0 {
		return
	}
	switch t := in.Env.Tool; t {
	case Conda, Mamba, Micromamba, Pixi, Module:
		p.Notes = append(p.Notes, why("rocm-tool", "tool", t))
		in.Env.Tool = Pip
	}
}

// supported lists the nodes with a driver that knows their GPUs: where the one
// that was given is newer than the last branch for a GPU, the first of that branch.
func (in *Input) supported() []Node {
	out := slices.Clone(in.Nodes)
	for i := range out {
		for _, g := range out[i].GPUs {
			if tables.DriverDropped(out[i].Driver, g.Cap) == tables.Yes {
				_, first := tables.LastBranch(g.Cap)
				out[i].Driver, out[i].Compat = first, ""
			}
		}
	}
	return out
}

// dropped says which drivers no longer know a GPU of their node.
func (in *Input) dropped() []Reason {
	var out []Reason
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			if tables.DriverDropped(n.Driver, g.Cap) == tables.Yes {
				b, _ := tables.LastBranch(g.Cap)
				out = append(out, why("driver-dropped-gpu", "driver", n.Driver, "gpu", g.Label(), "branch", b, "node", n.Name))
			}
		}
	}
	return out
}

// early says which drivers are older than the first CUDA that knows a GPU.
func (in *Input) early() []Reason {
	var out []Reason
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			first, _ := tables.CapCUDA(g.Cap)
			if d := tables.FirstDriver(g.Cap); tables.BeforeBranch(n.Driver, d) == tables.Yes {
				out = append(out, why("need-newer-driver", "gpu", g.Label(), "driver", n.Driver, "cuda", first, "need", d))
			}
		}
	}
	return out
}

// contradicted is what must be otherwise than it was given for any build to run.
func (in *Input) contradicted() []Reason {
	out := in.early()
	for _, r := range in.dropped() {
		out = append(out, why("need-branch", "branch", r.Args["branch"], "gpu", r.Args["gpu"]))
	}
	return out
}

// NotPlanned says why no build of the PyTorch index is for accelerators of these
// names: another maker's, or those of several makers together.
func NotPlanned(names []string) (Reason, bool) {
	in := Input{Machine: "x86_64", Nodes: []Node{{}}}
	for _, n := range names {
		in.Nodes[0].GPUs = append(in.Nodes[0].GPUs, GPU{Name: n})
	}
	in.fill()
	return in.otherMaker()
}
