package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// maxVersionPy bounds what is read of a version.py; real ones have some 300 bytes.
const maxVersionPy = 64 << 10

// versionFacts are the values that torch/version.py assigns.
type versionFacts struct {
	version, cuda, git, hip, xpu fact.Val[string]
}

// failVersion returns facts that all failed for one reason.
func failVersion(reason string, at fact.Evidence) versionFacts {
	f := fact.Fail[string](reason, at)
	return versionFacts{version: f, cuda: f, git: f, hip: f, xpu: f}
}

// parseVersionPy reads the assignments of torch/version.py. All releases write
// one literal per line, from 1.x (cuda = '10.2') to 2.x (cuda: Optional[str] =
// '13.0', cuda: str | None = None). Anything else, such as a computed value,
// is a failure of that value and no guess.
func parseVersionPy(file string, data []byte) versionFacts {
	whole := fact.File(file)
	f := versionFacts{
		version: fact.Fail[string]("no __version__ in version.py", whole),
		cuda:    fact.Fail[string]("no cuda line in version.py", whole),
		git:     fact.None[string](whole),
		hip:     fact.None[string](whole), // releases before 1.5 have no hip
		xpu:     fact.None[string](whole), // releases before 2.6 have no xpu
	}
	vars := map[string]*fact.Val[string]{
		"__version__": &f.version, "cuda": &f.cuda, "git_version": &f.git, "hip": &f.hip, "xpu": &f.xpu,
	}
	quote := "" // the closing quotes of a string that spans lines
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if quote != "" {
			if i := strings.Index(line, quote); i >= 0 {
				quote = openTriple(line[i+3:])
			}
			continue
		}
		if q := openTriple(line); q != "" {
			quote = q
			continue
		}
		code := strings.TrimLeft(line, " \t")
		name := code[:identLen(code)]
		v := vars[name]
		if v == nil {
			continue
		}
		value, ok := assigned(code[len(name):])
		if !ok {
			continue
		}
		at := fact.FileLine(file, n, fact.Clip(mask.Text(strings.TrimSpace(line)), 200))
		switch {
		case len(code) != len(line):
			*v = fact.Fail[string](name+" is assigned inside of a block", at)
		default:
			*v = literal(name, value, at)
		}
	}
	return f
}

// assigned splits what follows a name into an optional annotation, "=" and the
// value, and returns the value.
func assigned(s string) (string, bool) {
	s = strings.TrimLeft(s, " \t")
	if rest, ok := strings.CutPrefix(s, ":"); ok {
		i := strings.IndexByte(rest, '=')
		if i < 0 {
			return "", false
		}
		s = rest[i:]
	}
	value, ok := strings.CutPrefix(s, "=")
	if !ok || strings.HasPrefix(value, "=") {
		return "", false
	}
	return strings.TrimSpace(value), true
}

// literal reads None or a string with an optional comment behind it.
func literal(name, s string, at fact.Evidence) fact.Val[string] {
	if rest, ok := strings.CutPrefix(s, "None"); ok && commentOnly(rest) {
		return fact.None[string](at)
	}
	if len(s) > 1 && (s[0] == '\'' || s[0] == '"') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 && commentOnly(s[end+2:]) && strings.IndexByte(s[1:end+1], '\\') < 0 {
			if end == 0 { // cuda = '': what a build writes that found none
				return fact.None[string](at)
			}
			return fact.Of(fact.Clip(s[1:end+1], 200), at)
		}
	}
	return fact.Fail[string](name+" is not a plain string or None", at)
}

func commentOnly(s string) bool {
	s = strings.TrimLeft(s, " \t;")
	return s == "" || s[0] == '#'
}

// openTriple returns the quotes of a triple-quoted string that s opens and does not close.
func openTriple(s string) string {
	for {
		i := strings.Index(s, `"""`)
		j := strings.Index(s, "'''")
		if i < 0 && j < 0 {
			return ""
		}
		q := `"""`
		if i < 0 || j >= 0 && j < i {
			i, q = j, "'''"
		}
		s = s[i+3:]
		end := strings.Index(s, q)
		if end < 0 {
			return q
		}
		s = s[end+3:]
	}
}

func identLen(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= '0' && s[n] <= '9') {
		n++
	}
	return n
}
