package plan

import (
	"path"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/pep440"
)

// Pin is a line of a project that says which torch it wants, or from which index.
type Pin struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Spec string `json:"spec,omitempty"`  // PEP 440 specifiers, "" for any
	Tag  string `json:"tag,omitempty"`   // CUDA build that it names
	CPU  bool   `json:"cpu,omitempty"`   // it asks for a CPU build
	From string `json:"index,omitempty"` // tag of the PyTorch index that it names: cpu, cu124
	Text string `json:"text"`            // the line
}

// MaxProject bounds what is read of a project file.
const MaxProject = 1 << 20

var (
	pinRequirement = lazyre.New(`^(?:torch)(?:\[[^\]]*\])?\s*((?:(?:===|==|~=|!=|<=|>=|<|>)[^;#"',]+,?\s*)*)`)
	pinKey         = lazyre.New(`^"?(torch|pytorch)"?\s*=\s*(.*)$`)
	pinCondaLine   = lazyre.New(`^-\s*["']?(?:[a-z0-9-]+::)?(?:pytorch|torch)(?:-gpu)?(\s*[=<>!~][^"'#]*)?["']?\s*(?:#.*)?$`)
	pinConda       = lazyre.New(`^\s*(==?|>=|<=|<|>|!=|~=)?\s*([0-9][^=\s]*)?(?:=(\S+))?`)
	pinQuoted      = lazyre.New(`["'](torch(?:\[[^\]"']*\])?\s*[^"']*)["']`)
	pinVersionKey  = lazyre.New(`version\s*=\s*["']([^"']+)["']`)
	pinPlain       = lazyre.New(`^["']([^"']*)["']`)
	pinIndexURL    = lazyre.New(`download\.pytorch\.org/whl/(?:nightly/|test/)?(cpu|cu[0-9]{3}|rocm[0-9.]+|xpu)\b`)
	pinWord        = lazyre.New(`^torch(?:$|[\s\[=<>!~;@#,])`)
)

// ParsePins finds what a project file says of torch: requirements.txt,
// constraints, pyproject.toml, pixi.toml, environment.yml. The kind is told by
// the file's name; what cannot be understood is left out.
func ParsePins(name string, text string) []Pin {
	var out []Pin
	base := strings.ToLower(path.Base(name))
	toml := strings.HasSuffix(base, ".toml")
	yaml := strings.HasSuffix(base, ".yml") || strings.HasSuffix(base, ".yaml")
	if len(text) > MaxProject {
		text = text[:MaxProject]
	}
	section := ""
	for i, raw := range strings.Split(text, "\n") {
		line := strings.TrimSpace(raw)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		add := func(p Pin) {
			p.File, p.Line, p.Text = name, i+1, clip(line)
			out = append(out, p)
		}
		if m := pinIndexURL.FindStringSubmatch(line); m != nil {
			add(Pin{From: m[1]})
		}
		switch {
		case toml && strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[] ")
		case toml && strings.HasSuffix(section, "sources"):
		case toml:
			if m := pinKey.FindStringSubmatch(line); m != nil && strings.Contains(section, "dependencies") {
				v := ""
				if q := pinPlain.FindStringSubmatch(m[2]); q != nil {
					v = q[1]
				} else if q := pinVersionKey.FindStringSubmatch(m[2]); q != nil {
					v = q[1]
				}
				if p, ok := tomlPin(v); ok {
					add(p)
				}
				continue
			}
			for _, q := range pinQuoted.FindAllStringSubmatch(line, -1) {
				if p, ok := requirementPin(q[1]); ok {
					add(p)
				}
			}
		case yaml:
			if m := pinCondaLine.FindStringSubmatch(line); m != nil {
				if p, ok := condaPin(m[1]); ok {
					add(p)
				}
			}
		default:
			if p, ok := requirementPin(line); ok {
				add(p)
			}
		}
	}
	return out
}

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// requirementPin reads torch>=2.1,<2.5; python_version < "3.13".
func requirementPin(s string) (Pin, bool) {
	if !pinWord.MatchString(s) {
		return Pin{}, false
	}
	m := pinRequirement.FindStringSubmatch(s)
	if m == nil {
		return Pin{}, false
	}
	return specPin(strings.TrimSuffix(strings.TrimSpace(m[1]), ","))
}

// specPin splits a local tag off and checks the rest.
func specPin(spec string) (Pin, bool) {
	var p Pin
	parts := strings.Split(spec, ",")
	for i, s := range parts {
		s = strings.TrimSpace(s)
		if at := strings.IndexByte(s, '+'); at >= 0 {
			switch local := s[at+1:]; {
			case buildTag(local):
				p.Tag = local
			case local == "cpu":
				p.CPU = true
			}
			s = s[:at]
		}
		parts[i] = s
	}
	p.Spec = strings.Join(parts, ",")
	if p.Spec == "" {
		return p, true
	}
	_, err := pep440.ParseSpecifiers(p.Spec)
	return p, err == nil
}

// tomlPin reads the version of Poetry and pixi: ^2.3, ~2.6, 2.6.0.*, >=2.1,<3, *.
func tomlPin(v string) (Pin, bool) {
	v = strings.TrimSpace(v)
	switch {
	case v == "" || v == "*":
		return Pin{}, true
	case v[0] == '^', v[0] == '~' && !strings.HasPrefix(v, "~="):
		lo, err := pep440.Parse(strings.TrimSpace(v[1:]))
		if err != nil {
			return Pin{}, false
		}
		upper := itoa(lo.Release(0) + 1)
		if v[0] == '~' && strings.Contains(v, ".") {
			upper = itoa(lo.Release(0)) + "." + itoa(lo.Release(1)+1)
		}
		return specPin(">=" + lo.String() + ",<" + upper)
	case v[0] >= '0' && v[0] <= '9':
		return specPin("==" + v)
	}
	return specPin(strings.ReplaceAll(v, " ", ""))
}

// condaPin reads what follows the name in an environment.yml: =2.5.1, =2.5.1=*cuda*, >=2.
func condaPin(s string) (Pin, bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return Pin{}, true
	}
	m := pinConda.FindStringSubmatch(s)
	if m == nil {
		return Pin{}, false
	}
	p := Pin{}
	if b := m[3]; strings.HasPrefix(b, "cpu") || strings.HasPrefix(b, "*cpu") {
		p.CPU = true
	}
	v := strings.TrimSuffix(m[2], ".*")
	switch {
	case v == "" || v == "*":
	case m[1] == "=":
		p.Spec = "==" + v + ".*"
	default:
		p.Spec = m[1] + m[2]
		if m[1] == "" {
			p.Spec = "==" + m[2]
		}
	}
	if p.Spec != "" {
		if _, err := pep440.ParseSpecifiers(p.Spec); err != nil {
			return p, false
		}
	}
	return p, true
}

func itoa(n int) string { return strconv.Itoa(n) }

// allows reports whether a pin lets a release in.
func (p *Pin) allows(version string) bool {
	if p.Spec == "" {
		return true
	}
	ss, err := pep440.ParseSpecifiers(p.Spec)
	if err != nil {
		return true
	}
	v, err := pep440.Parse(version)
	return err == nil && ss.Match(v)
}
