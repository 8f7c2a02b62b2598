package plan

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var tomlRequirement = lazyre.New(`(["'])(torchvision|torchaudio|torch)(\[[^\]"']*\])?\s*[^"';]*(;[^"']*)?(["'])`)

// editPyproject changes a pyproject.toml so that uv takes torch and its
// companions from one index: the requirements in the dependency lists, one
// [[tool.uv.index]] and the lines in [tool.uv.sources]. Doing it twice changes
// nothing more; all other lines stay as they are.
func editPyproject(text, name, url string, reqs map[string]string) string {
	nl := "\n"
	if strings.Contains(text, "\r\n") {
		nl = "\r\n"
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	var out []string
	section := ""
	inDeps := false
	hasIndex, hasSources := false, false
	done := map[string]bool{}
	for _, l := range lines {
		t := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(t, "[") && strings.HasSuffix(strings.TrimSpace(strings.SplitN(t, "#", 2)[0]), "]") && !inDeps:
			section = strings.Trim(strings.TrimSpace(strings.SplitN(t, "#", 2)[0]), "[] ")
			out = append(out, l)
			if section == "tool.uv.sources" {
				hasSources = true
				for _, c := range sortedKeys(reqs) {
					out = append(out, fmt.Sprintf("%s = { index = %q }", c, name))
				}
			}
			continue
		case section == "tool.uv.index" && strings.HasPrefix(t, "name"):
			if strings.Contains(t, `"`+name+`"`) {
				hasIndex = true
			}
		case section == "tool.uv.sources":
			key := strings.Trim(strings.TrimSpace(strings.SplitN(t, "=", 2)[0]), `"'`)
			if _, ok := reqs[key]; ok {
				if depth(t) > 0 { // a list over several lines
					done["skip"] = true
				}
				continue
			}
			if done["skip"] {
				if strings.HasPrefix(t, "]") {
					done["skip"] = false
				}
				continue
			}
		}
		deps := strings.HasPrefix(t, "dependencies") && strings.Contains(t, "=") || section == "project.optional-dependencies" && strings.Contains(t, "[") || section == "dependency-groups" && strings.Contains(t, "[")
		if deps || inDeps {
			l = tomlRequirement.ReplaceAllStringFunc(l, func(q string) string {
				m := tomlRequirement.FindStringSubmatch(q)
				v, ok := reqs[m[2]]
				if !ok || m[1] != m[5] || strings.HasPrefix(strings.TrimPrefix(q[1+len(m[2]+m[3]):], " "), "-") || isOther(q[1+len(m[2]):]) {
					return q
				}
				marker := ""
				if m[4] != "" {
					marker = " " + m[4]
				}
				return m[1] + m[2] + m[3] + "==" + v + marker + m[1]
			})
			d := depth(t)
			if deps {
				inDeps = d > 0
			} else if d < 0 {
				inDeps = false
			}
		}
		out = append(out, l)
	}
	for len(out) > 0 && strings.TrimSpace(out[len(out)-1]) == "" {
		out = out[:len(out)-1]
	}
	if !hasIndex {
		out = append(out, "", "[[tool.uv.index]]", fmt.Sprintf("name = %q", name), fmt.Sprintf("url = %q", url), "explicit = true")
	}
	if !hasSources {
		out = append(out, "", "[tool.uv.sources]")
		for _, c := range sortedKeys(reqs) {
			out = append(out, fmt.Sprintf("%s = { index = %q }", c, name))
		}
	}
	return strings.Join(out, nl) + nl
}

// isOther tells torch-geometric and torch_scatter from torch.
func isOther(rest string) bool {
	return rest != "" && (rest[0] == '-' || rest[0] == '_' || rest[0] == '.' || rest[0] >= 'a' && rest[0] <= 'z')
}

// depth is how many brackets a line leaves open, without those inside of strings.
func depth(s string) int {
	n := 0
	var q byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case q != 0:
			if c == q {
				q = 0
			}
		case c == '"' || c == '\'':
			q = c
		case c == '#':
			return n
		case c == '[':
			n++
		case c == ']':
			n--
		}
	}
	return n
}
