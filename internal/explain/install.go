package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// replaced reports that an install of something else swapped torch.
func (v *view) replaced() (out, in fact.Said, cmd string, ok bool) {
	for _, o := range v.facts(kind.PipOut) {
		if o.Name != "torch" {
			continue
		}
		for _, n := range v.facts(kind.PipIn) {
			if n.Name != "torch" || n.File != o.File || n.Line < o.Line || sameFlavour(o.V, n.V) && n.V == o.V {
				continue
			}
			return o, n, o.Aux, true
		}
	}
	return
}

func sameFlavour(a, b string) bool { return flavour(a) == flavour(b) }

func flavour(s string) string {
	if i := strings.IndexByte(s, '+'); i >= 0 {
		return s[i+1:]
	}
	return ""
}

// lastInstall reports whether no later line of the file installs the package again.
func (v *view) lastInstall(s fact.Said) bool {
	for _, o := range v.facts(kind.PipIn) {
		if o.Name == s.Name && o.File == s.File && o.Line > s.Line {
			return false
		}
	}
	return true
}

func plainVersion(ss []fact.Said) bool {
	for _, s := range ss {
		if strings.Contains(s.V, "+") {
			return false
		}
	}
	return true
}

// explicitTorch reports whether a pip command asks for torch itself.
func explicitTorch(cmd string) bool {
	for _, w := range strings.Fields(cmd) {
		w = strings.Trim(w, `"'`)
		if w == "torch" || strings.HasPrefix(w, "torch==") || strings.HasPrefix(w, "torch>") || strings.HasPrefix(w, "torch<") || strings.HasPrefix(w, "torch~") || strings.HasPrefix(w, "torch-") {
			return true
		}
	}
	return false
}

// wanted describes the torch that an installation took away: the fix puts it back.
func wanted(o, n fact.Said, cmd string) diag.Args {
	a := diag.Args{"old": o.V, "new": n.V, "command": cmd}
	if tag := flavour(o.V); strings.HasPrefix(tag, "cu") {
		a["public_version"], a["cuda_tag"] = public(o.V), tag
	}
	return a
}
