package render

import (
	"fmt"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// targetName names the kind of an artefact.
var targetName = map[string][2]string{
	"wheel": {"wheel", "wheel"}, "conda": {"conda package", "conda 包"}, "environment": {"environment archive", "环境归档"},
	"site-packages": {"packages", "软件包目录"}, "rootfs": {"root file system", "根文件系统"}, "oci": {"OCI image", "OCI 镜像"},
	"docker": {"docker image", "docker 镜像"}, "sif": {"Apptainer image", "Apptainer 镜像"}, "squashfs": {"squashfs image", "squashfs 镜像"},
	"library": {"shared library", "动态库"},
}

// targetLines says what an artefact is: one line of what it is, and of a package one
// line of where it can work.
func targetLines(b *fact.Bundle, pick func(en, zh string) string, comma string, add func(name, text string)) {
	t := &b.Target
	if t.Kind == "" {
		return
	}
	n := targetName[t.Kind]
	s := path.Base(t.Path) + pick(" ("+n[0]+")", "（"+n[1]+"）")
	if t.Platform != "" {
		s += comma + t.Platform
	}
	if len(t.Platforms) > 1 {
		s += pick(" of ", "，共有 ") + strings.Join(t.Platforms, ", ")
	}
	add(pick("target", "对象"), s)
	if t.IsImage() {
		if len(t.Entrypoint) > 0 {
			add(pick("starts", "入口"), fact.Clip(strings.Join(t.Entrypoint, " "), 120))
		}
		return
	}
	w := b.Winner()
	if w == nil {
		return
	}
	var fits []string
	if t.Requires != "" {
		fits = append(fits, "Python "+t.Requires)
	}
	if len(t.Tags) > 0 {
		fits = append(fits, t.Tags[0])
	}
	if t.MinDriver != "" {
		fits = append(fits, pick("driver ≥ ", "驱动 ≥ ")+t.MinDriver)
	}
	if v, ok := w.NCCLVersion.Get(); ok {
		fits = append(fits, "NCCL "+v)
	}
	if len(fits) > 0 {
		add(pick("needs", "需要"), strings.Join(fits, comma))
	}
	if a, ok := w.Archs.Get(); ok {
		add(pick("kernels", "架构"), strings.Join(a, " "))
	}
	if t.Node == "flags" {
		var where []string
		if d, ok := b.Node.Driver.Get(); ok {
			where = append(where, pick("driver ", "驱动 ")+d.Version)
		}
		if g, ok := b.Node.GPUs.Get(); ok {
			for _, x := range g {
				where = append(where, fmt.Sprintf("%s (%s)", x.Name, x.Cap))
			}
		}
		for _, x := range b.Node.PCIGPUs.Or(nil) {
			if b.Node.PCIGPUs.At.Source == fact.SrcFlag {
				where = append(where, x.Device) // AMD's
			}
		}
		add(pick("for", "针对"), strings.Join(where, comma))
	}
}
