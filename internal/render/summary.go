package render

import (
	"fmt"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Summary says in a few lines what was looked at: the interpreter, the torch
// that wins, the node and the Slurm context.
func Summary(b *fact.Bundle, lang string) []string {
	zh := lang == "zh"
	pick := func(en, cn string) string {
		if zh {
			return cn
		}
		return en
	}
	comma := pick(", ", "，")
	var out []string
	add := func(name, text string) {
		out = append(out, name+strings.Repeat(" ", max(1, 8-displaywidth.String(name)))+text)
	}

	targetLines(b, pick, comma, add)
	if (b.Python.Exe.Looked() || len(b.Python.Path) > 0) && (b.Target.Kind == "" || !b.Python.Exe.IsAbsent() || b.Target.IsImage()) {
		py := pick("no interpreter found", "没有找到解释器")
		if exe, ok := b.Python.Exe.Get(); ok {
			py = exe
			if v, ok := b.Python.Version.Get(); ok {
				py += " " + v
			}
			if by := b.Python.By; by != "" {
				if by == fact.ByFlag {
					by = "--python"
				}
				py += fmt.Sprintf(pick(" (from %s)", "（来自 %s）"), by)
			}
		}
		add("Python", py)
	}
	switch t := b.Winner(); {
	case t != nil:
		s := t.Version.Or("?")
		switch t.Accel() {
		case fact.AccelCPU:
			s += pick(", CPU only", "，纯 CPU 版")
		case fact.AccelCUDA:
			s += comma + "CUDA " + t.CUDA.V
		case fact.AccelROCm:
			s += comma + "ROCm " + t.HIP.V
		case fact.AccelXPU:
			s += comma + "XPU"
		}
		if v, ok := t.NCCL.Get(); ok {
			s += map[bool]string{true: pick(", NCCL compiled in", "，编入了 NCCL"), false: pick(", without NCCL", "，未编入 NCCL")}[v]
		}
		s += pick(", in ", "，位于 ") + t.Dir
		if o, ok := t.Origin.Get(); ok && o.Kind != "" {
			s += " (" + strings.TrimSpace(o.Kind+" "+o.Package+" "+o.Build) + ")"
		}
		if n := len(b.Torch) - 1; n > 0 {
			s += fmt.Sprintf(pick("; %d more on the search path", "；搜索路径上另有 %d 个"), n)
		}
		add("torch", s)
	case len(b.Python.Path) > 0:
		add("torch", pick("none on the search path", "搜索路径上没有 torch"))
	}
	for i := range b.Loads {
		if l := &b.Loads[i]; l.Soname == "libnccl.so.2" {
			s := pick("not found by the loader", "加载器找不到")
			if l.Path.State == fact.Failed || l.Path.State == fact.NotLooked {
				s = pick("which one the loader takes is not known", "加载器会选中哪个尚不清楚")
			}
			if p, ok := l.Path.Get(); ok {
				s = p
				if v, ok := l.Version.Get(); ok {
					s = v + pick(", from ", "，来自 ") + p
				}
				if l.Via != "" {
					s += " (" + l.Via + ")"
				}
			}
			add("NCCL", s)
		}
	}
	if b.Node.Driver.Looked() && b.Target.Node != "flags" {
		var s string
		switch d := b.Node.Driver; {
		case d.IsKnown():
			s = pick("NVIDIA driver ", "NVIDIA 驱动 ") + d.V.Version
		case d.IsAbsent() && otherGPUs(b) != "":
			s = otherGPUs(b)
		case d.IsAbsent():
			s = pick("no NVIDIA driver", "没有 NVIDIA 驱动")
		default:
			s = pick("NVIDIA driver unknown", "NVIDIA 驱动状态未知")
		}
		if g, ok := b.Node.GPUs.Get(); ok {
			s += comma + gpuList(g)
		}
		if c, ok := b.Container.Kind.Get(); ok && b.Target.Kind == "" {
			s += pick(", inside ", "，在容器中：") + c
		}
		add(pick("node", "节点"), s)
	}
	if b.Slurm.Job.Looked() {
		s := pick("not inside a job", "不在作业中")
		if j, ok := b.Slurm.Job.Get(); ok {
			s = pick("job ", "作业 ") + j
			if b.Slurm.Where != "" {
				s += comma + b.Slurm.Where
			}
			if n, ok := b.Slurm.GPUsGranted.Get(); ok {
				form := ", %d GPUs granted here"
				if n == 1 {
					form = ", %d GPU granted here"
				}
				s += fmt.Sprintf(pick(form, "，本节点分到 %d 个 GPU"), n)
			} else if b.Slurm.GPUsGranted.IsAbsent() {
				s += pick(", no GPU granted", "，没有分到 GPU")
			}
		}
		add("Slurm", s)
	}
	return out
}

// otherGPUs counts AMD's GPUs, "" when there is none with a driver.
func otherGPUs(b *fact.Bundle) string {
	n := 0
	for _, g := range b.Node.PCIGPUs.Or(nil) {
		if g.Vendor == "amd" && g.Driver == "amdgpu" {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d × AMD GPU (amdgpu)", n)
}

// gpuList folds equal GPUs: "8 × NVIDIA H100 80GB HBM3".
func gpuList(gs []fact.GPU) string {
	if len(gs) == 0 {
		return "0 GPU"
	}
	var order []string
	n := map[string]int{}
	for _, g := range gs {
		name := g.Name
		if name == "" {
			name = "GPU"
		}
		if n[name] == 0 {
			order = append(order, name)
		}
		n[name]++
	}
	var parts []string
	for _, name := range order {
		parts = append(parts, fmt.Sprintf("%d × %s", n[name], name))
	}
	return strings.Join(parts, ", ")
}
