package diag

import "strings"

// expandFixes picks the fixes whose condition holds and fills in their commands.
func expandFixes(ts []FixTmpl, a Args) []Fix {
	var out []Fix
	for _, t := range ts {
		if !holds(t.When, a) {
			continue
		}
		f := Fix{ID: t.ID, Kind: t.Kind, Safe: t.Safe, Commands: []string{}}
		for _, c := range t.Commands {
			f.Commands = append(f.Commands, Fill(c, a))
		}
		f.Commands = withoutPip(f.Commands, a)
		out = append(out, f)
	}
	return out
}

// NoPip is the argument of a finding about a virtual environment without pip: uv
// when uv made it, ensurepip for any other.
const NoPip = "no_pip"

// withoutPip makes commands that call the pip of an environment that has none
// work: through uv, or with pip put there first.
func withoutPip(cmds []string, a Args) []string {
	const call = " -m pip "
	out := []string{}
	ready := false
	for _, c := range cmds {
		py, rest, ok := strings.Cut(c, call)
		switch {
		case !ok || py != a["python"] || a[NoPip] == "":
		case a[NoPip] == "uv":
			verb, rest, _ := strings.Cut(rest, " ")
			c = "uv pip " + verb + " --python " + py + " " + strings.TrimPrefix(rest, "-y ")
		case !ready:
			ready = true
			out = append(out, py+" -m ensurepip --upgrade")
		}
		out = append(out, c)
	}
	return out
}

// Fixes returns the fixes of a rule whose conditions the arguments meet.
func Fixes(r *Rule, a Args) []Fix { return expandFixes(r.Fixes, a) }

func holds(when string, a Args) bool {
	if when == "" {
		return true
	}
	for _, cond := range strings.Split(when, ",") {
		cond = strings.TrimSpace(cond)
		name, want, eq := strings.Cut(cond, "=")
		switch {
		case eq && a[name] != want:
			return false
		case !eq && strings.HasPrefix(cond, "!") && a[cond[1:]] != "":
			return false
		case !eq && !strings.HasPrefix(cond, "!") && a[cond] == "":
			return false
		}
	}
	return true
}

// Fill replaces {name} by the argument of that name. What has no argument
// stays as it is; ${NAME} of shell text is never touched.
func Fill(s string, a Args) string {
	if !strings.Contains(s, "{") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '{' && (i == 0 || s[i-1] != '$') {
			if name, n := placeholder(s[i:]); n > 0 {
				if v, ok := a[name]; ok {
					b.WriteString(v)
					i += n
					continue
				}
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// placeholder reads "{name}" at the start of s and returns the name and its length with braces.
func placeholder(s string) (string, int) {
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '}' && i > 1:
			return s[1:i], i + 1
		case c >= 'a' && c <= 'z', c == '_', c >= '0' && c <= '9' && i > 1:
		default:
			return "", 0
		}
	}
	return "", 0
}

// Placeholders lists the {names} of a text in order of appearance, each once.
func Placeholders(s string) []string {
	var out []string
	seen := map[string]bool{}
	for i := 0; i < len(s); i++ {
		if s[i] == '{' && (i == 0 || s[i-1] != '$') {
			if name, n := placeholder(s[i:]); n > 0 && !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}
