package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// oldPython judges a program that its interpreter cannot read: the one that ran
// is the system's Python 2, and no environment was activated.
func (v *view) oldPython() {
	for _, x := range v.exc {
		if !strings.HasSuffix(x.Type, "SyntaxError") {
			continue
		}
		for _, s := range v.facts(kind.Python) {
			if !strings.HasPrefix(s.V, "2.") {
				continue
			}
			c := v.addExc(cand{id: "env-not-activated", cert: diag.Likely, over: []string{"run-exception", "torch-not-installed"}}, x)
			v.said(c, s)
			v.said(c, first(v.facts(kind.Which), 1)...)
			c.needs = append(c.needs, "which python", "python --version")
			return
		}
	}
}
