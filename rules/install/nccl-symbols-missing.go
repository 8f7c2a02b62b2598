package install

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

const ncclSoname = "libnccl.so.2"

var _ = Checks.Add("nccl-symbols-missing", func(b *fact.Bundle, r *diag.Reporter) {
	l := b.LoadOf(ncclSoname)
	if l == nil || !l.Path.IsKnown() || len(l.Missing) == 0 || imports(b) {
		return // an import that worked refutes the simulation
	}
	since := l.MissingSince
	if since == "" {
		since = tables.NCCLSince(l.Missing)
	}
	a := args(b)
	a["path"], a["symbols"], a["loaded"] = quote(l.Path.V), first(l.Missing, 3), l.Version.Or("?")
	a["variant"] = "plain"
	c := diag.Proven
	if since != "" {
		a["since"], a["variant"] = since, "since"
		if v, ok := l.Version.Get(); ok && tables.Compare(v, since) >= 0 {
			c = diag.Likely // the version says that it should have them
			a["variant"] = "plain"
		}
	}
	loaderArgs(b, a, l.Via, l.ViaDir)
	if a["var"] == "" {
		if name, v := ncclPin(b.Winner()); name != "" {
			a["wheel"], a["wheel_version"] = name, v
		}
	}
	r.Hit("nccl-library-too-old", c, a, l.Path.At, l.Version.At,
		fact.FileExcerpt(l.Path.V, "does not export "+first(l.Missing, 5)))
})
