package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("live-other-torch", func(b *fact.Bundle, r *diag.Reporter) {
	w := b.Winner()
	file, ok := b.Live.File.Get()
	if !ok || !imports(b) {
		return
	}
	dir := path.Dir(file)
	if dir == w.Dir || path.Clean(dir) == path.Clean(w.Dir) {
		return
	}
	// The same installation under another name, through links.
	if v, ok := b.Live.Version.Get(); ok && v == w.Version.Or("") && path.Base(path.Dir(dir)) == path.Base(path.Dir(w.Dir)) &&
		!strings.Contains(dir, "/.local/") {
		return
	}
	for _, p := range b.Python.LocalTorch {
		if within(file, path.Dir(p)) {
			return // torch-local-module says it
		}
	}
	a := args(b)
	a["live_dir"], a["live_version"] = quote(dir), b.Live.Version.Or("?")
	sev := diag.Warning
	if nccl, ok := b.Live.NCCL.Get(); ok && !nccl && poor(w) == "" {
		sev = diag.Error
	}
	r.Hit("env-pythonpath-shadows", diag.Proven, a, b.Live.File.At, fact.File(w.Dir)).Sev(sev)
})
