package install

import (
	"path"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("env-python-gone", func(b *fact.Bundle, r *diag.Reporter) {
	if hostEnv(b) {
		r.Skip("inside a container variables of the host's environment mean nothing")
		return
	}
	if b.Python.By != fact.ByPath && b.Python.By != fact.ByVirtualEnv && b.Python.By != fact.ByCondaPrefix || trains(b) {
		return // another interpreter was named, or one that can train is perhaps the one that was meant
	}
	for _, o := range b.Python.Others {
		if !o.Missing || o.By != fact.ByVirtualEnv && o.By != fact.ByCondaPrefix {
			continue
		}
		prefix, _ := b.Lookup(o.By)
		if prefix == "" {
			prefix = path.Dir(path.Dir(o.Exe))
		}
		a := args(b)
		a["prefix"], a["var"], a["gone"] = quote(prefix), o.By, quote(o.Exe)
		a["variant"] = "other"
		if !b.Python.Exe.IsKnown() {
			a["variant"] = "none"
		}
		// A variable that a parent shell left behind looks the same.
		r.Hit("env-not-activated", diag.Likely, a, o.At, fact.FileExcerpt(o.Exe, "no such file, or a link to one"), b.Python.Exe.At).
			Need("ls -lL " + quote(o.Exe))
		return
	}
})
