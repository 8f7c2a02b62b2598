package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("cuda-stub-first", func(b *fact.Bundle, r *diag.Reporter) {
	var where, via, dir string
	var at fact.Evidence
	if l, ok := b.Node.LibCUDA.Get(); ok {
		if !l.Stub {
			return
		}
		where, via, dir, at = l.Path, l.Via, path.Dir(l.Path), b.Node.LibCUDA.At
	} else if l := b.LoadOf("libcuda.so.1"); l != nil && l.Path.IsKnown() && strings.Contains(l.Path.V, "/stubs/") {
		where, via, dir, at = l.Path.V, l.Via, l.ViaDir, l.Path.At
	}
	if where == "" {
		return
	}
	if b.Live.Devices.Or(0) > 0 {
		return
	}
	a := args(b)
	a["path"] = quote(where)
	loaderArgs(b, a, via, dir)
	f := r.Hit("cuda-stub-loaded", diag.Proven, a, at, fact.File(where))
	if !b.Node.Driver.IsKnown() {
		// Here is no driver that it could hide; on a GPU node it would.
		f.Sev(diag.Warning)
		f.Certainty = diag.Likely
	}
})
