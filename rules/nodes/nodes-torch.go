package nodes

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Ranks of different releases or builds of torch speak different protocols in
// c10d and NCCL; another folder with the same build is fine.
var _ = Checks.Add("nodes-torch", func(b *fact.Bundle, r *diag.Reporter) {
	ds := all(b, "torch.version", "torch.cuda", "torch.git", "torch.nccl")
	if len(ds) > 0 {
		if ds[0].name != "torch.version" && ds[0].name != "torch.cuda" && ds[0].name != "torch.nccl" {
			report(r, "env-differs-between-nodes", diag.Likely, "torch", append(ds, all(b, "torch.dir", "python.exe", "torch.mount")...)...).Sev(diag.Warning)
			return
		}
		report(r, "env-differs-between-nodes", diag.Proven, "torch", append(ds, all(b, "torch.dir", "python.exe", "torch.mount")...)...)
		return
	}
	if d, ok := differs(b, "python.version"); ok && minors(d) {
		report(r, "env-differs-between-nodes", diag.Likely, "python", append([]diff{d}, all(b, "python.exe")...)...).Sev(diag.Warning)
	}
})

// minors reports whether versions differ in more than their last part.
func minors(d diff) bool {
	first := ""
	for i, v := range d.all {
		p := strings.SplitN(v.Value, ".", 3)
		m := strings.Join(p[:min(2, len(p))], ".")
		if i == 0 {
			first = m
		} else if m != first {
			return true
		}
	}
	return false
}
