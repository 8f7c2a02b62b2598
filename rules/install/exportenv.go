package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// dropsEnv reports whether SLURM_EXPORT_ENV keeps PATH and the rest from steps:
// NONE, or a list of names without ALL.
func dropsEnv(b *fact.Bundle) (value string, drops bool) {
	v, ok := b.Slurm.ExportEnv.Get()
	if !ok || v == "" {
		return "", false
	}
	for _, x := range strings.Split(v, ",") {
		if strings.EqualFold(strings.TrimSpace(x), "ALL") {
			return v, false
		}
	}
	return v, true
}

// activated reports whether an environment is active in these variables.
func activated(b *fact.Bundle) (name, prefix string, ok bool) {
	for _, n := range []string{fact.ByVirtualEnv, fact.ByCondaPrefix} {
		if v, has := b.Lookup(n); has && v != "" {
			return n, v, true
		}
	}
	return "", "", false
}
