package nodes

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Differences that are normal in many clusters and explain nothing by themselves.
var details = []string{"kernel", "distro", "glibc", "container", "shm", "nofile", "torch.dir", "torch.mount", "nccl.path", "python.exe", "iface.nccl", "iface.gloo",
	"net.nccl", "net.gloo", "env.PATH", "env.LOADEDMODULES", "env.CONDA_PREFIX", "env.VIRTUAL_ENV"}

var _ = Checks.Add("nodes-details", func(b *fact.Bundle, r *diag.Reporter) {
	ds := all(b, details...)
	if len(all(b, "torch.version", "nccl.version")) > 0 { // then paths are evidence of that
		ds = slices.DeleteFunc(ds, func(d diff) bool {
			return strings.HasPrefix(d.name, "torch.") || strings.HasPrefix(d.name, "nccl.") || d.name == "python.exe"
		})
	}
	if len(ds) == 0 {
		return
	}
	var names []string
	for _, d := range ds {
		names = append(names, label(d.name))
	}
	f := report(r, "nodes-details", diag.Possible, "details", ds...).As(diag.Context).Sev(diag.Note)
	f.Args["list"] = strings.Join(names, ", ")
})
