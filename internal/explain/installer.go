package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// installer notes which tool put torch where it is, so that the fix speaks of
// that tool: conda's own package in a listing, or a lock file of uv.
func (v *view) installer(a diag.Args) {
	for _, s := range v.facts(kind.Pkg) {
		switch {
		case s.Name == "pytorch" || s.Name == "pytorch-mutex" || s.Name == "cpuonly":
			a["installer"], a["env_kind"] = "conda", "conda"
		case s.Name == "torch" && strings.HasPrefix(s.Aux, "lock") && a["installer"] == "" && strings.HasSuffix(v.path(s.File), "uv.lock"):
			a["installer"] = "uv"
		}
	}
	if a["installer"] != "conda" {
		return
	}
	for _, s := range v.facts(kind.PkgEnv) {
		if strings.HasPrefix(s.V, "/") {
			a["conda_prefix"] = s.V
			return
		}
	}
	if p, _, ok := v.env("CONDA_PREFIX"); ok && strings.HasPrefix(p, "/") {
		a["conda_prefix"] = p
		return
	}
	if dir, _ := v.torchDir(); dir != "" && !strings.Contains(dir, "/.local/") {
		if p, _, ok := strings.Cut(dir, "/lib/python"); ok && strings.HasPrefix(p, "/") {
			a["conda_prefix"] = p
		}
	}
}
