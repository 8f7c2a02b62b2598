package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// otherListing finds a torch with CUDA that a listing shows in one environment
// while the program ran a torch of another one: the listing says nothing about it.
func (v *view) otherListing(b build) (listed, ran fact.Said, ok bool) {
	dir, at := v.torchDir()
	if dir == "" || strings.Contains(dir, "/.local/") || v.activates() {
		return fact.Said{}, fact.Said{}, false
	}
	for _, s := range b.cuda {
		switch here, known := v.liesIn(dir, s.Place); {
		case known && here:
			return fact.Said{}, fact.Said{}, false
		case known && !ok:
			listed, ran, ok = s, fact.Said{Place: at, Kind: kind.TorchPath, V: dir + "/torch", Text: dir + "/torch"}, true
		}
	}
	return listed, ran, ok
}

// liesIn reports whether the environment of a listing's line is the one that holds
// the folder dir; known is false when the line's environment is not told.
func (v *view) liesIn(dir string, p fact.Place) (here, known bool) {
	if prefix := v.prefixAt(p); prefix != "" {
		return strings.HasPrefix(dir+"/", strings.TrimRight(prefix, "/")+"/lib"), true
	}
	for _, s := range v.facts(kind.TorchPath) {
		if s.File == p.File && s.Line-p.Line <= 2 && p.Line-s.Line <= 2 {
			return s.V == dir+"/torch" || strings.HasPrefix(s.V, dir+"/torch/"), true
		}
	}
	if name := v.promptEnv(p); name != "" && name != "base" {
		return strings.Contains(dir+"/", "/"+name+"/"), true
	}
	return false, false
}

// prefixAt is the environment that a listing names: conda in its head, pip show a
// few lines below the version.
func (v *view) prefixAt(p fact.Place) string {
	prefix := ""
	for _, s := range v.facts(kind.PkgEnv) {
		if s.File != p.File || !strings.HasPrefix(s.V, "/") {
			continue
		}
		if s.Line <= p.Line {
			prefix = s.V
		} else if prefix == "" && s.Line-p.Line <= 12 {
			return s.V
		}
	}
	return prefix
}

// promptEnv is the environment that the prompt of the command before a line names.
func (v *view) promptEnv(p fact.Place) string {
	name := ""
	for _, c := range v.l.Commands {
		if c.File == p.File && c.Line <= p.Line && c.Via == "prompt" {
			name = strings.Trim(c.Env, "()")
		}
	}
	return name
}
