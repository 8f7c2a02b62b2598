package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var cpTag = lazyre.New(`^cpython-3([0-9]{1,2})`)

var _ = Checks.Add("torch-python-tag", func(b *fact.Bundle, r *diag.Reporter) {
	t := b.Winner()
	v, ok := b.Python.Version.Get()
	m := cpTag.FindStringSubmatch(t.PyTag.Or(""))
	if !ok || m == nil || imports(b) {
		return
	}
	f := strings.SplitN(v, ".", 3)
	if len(f) < 2 || f[0] != "3" || f[1] == m[1] {
		return
	}
	a := args(b)
	a["python_version"], a["built_for"] = f[0]+"."+f[1], "3."+m[1]
	cause := "torch-install-damaged"
	delete(a, "site_dir")
	if t.Kind == fact.PathPythonPath {
		cause = "env-pythonpath-shadows"
		if t.Names != "" {
			a["module"] = quote(t.Names)
		}
	}
	r.Hit(cause, diag.Proven, a, t.PyTag.At, b.Python.Version.At)
})
