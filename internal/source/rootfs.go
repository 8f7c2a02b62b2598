package source

import (
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// rootImage reads what a root file system says about how a process in it is
// started: Apptainer's /.singularity.d, enroot's /etc/environment and /etc/rc.
func (t *Target) rootImage() {
	if t.Image == nil {
		t.Image = &Image{Env: map[string]string{}}
	}
	if t.Image.OS == "" {
		t.Image.OS = "linux"
	}
	if n := len(t.Image.Env); n > 0 {
		return
	}
	if list, err := fs.ReadDir(t.FS, ".singularity.d/env"); err == nil {
		t.Image.EnvAt = "/.singularity.d/env"
		var names []string
		for _, e := range list {
			if strings.HasSuffix(e.Name(), ".sh") {
				names = append(names, e.Name())
			}
		}
		sort.Strings(names) // in this order they are sourced
		for _, n := range names {
			t.Image.shell(t.text(".singularity.d/env/" + n))
		}
		return
	}
	if text := t.text("etc/environment"); text != "" {
		t.Image.EnvAt = "/etc/environment"
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && isName(k) {
				t.Image.Env[k] = unquote(v)
			}
		}
	}
	t.Image.Entrypoint = rcCommand(t.text("etc/rc"))
}

// text returns a short file of the target, "" when there is none.
func (t *Target) text(name string) string {
	st, err := fs.Stat(t.FS, name)
	if err != nil || !st.Mode().IsRegular() {
		return ""
	}
	f, err := t.FS.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256<<10))
	if err != nil {
		return ""
	}
	return string(b)
}

// shell takes the plain assignments of a shell fragment: export NAME=value,
// with ${NAME}, $NAME and ${NAME:-default} in it. Anything else, such as a
// command, is not followed.
func (m *Image) shell(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		k, v, ok := strings.Cut(line, "=")
		if !ok || !isName(k) || len(v) > 64<<10 || strings.Contains(v, "$(") || strings.Contains(v, "`") {
			continue
		}
		if i := strings.Index(v, "; export"); i >= 0 {
			v = v[:i]
		}
		// Apptainer writes NAME="${NAME:-"value"}" for what the image sets.
		m.Env[k] = m.expand(unquote(v))
	}
}

// expand replaces variables in a value.
func (m *Image) expand(s string) string {
	var b strings.Builder
	for len(s) > 0 && b.Len() < 64<<10 {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if s[0] != '{' {
			n := 0
			for n < len(s) && nameByte(s[n], n) {
				n++
			}
			b.WriteString(m.Env[s[:n]])
			s = s[n:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if end < 0 {
			break
		}
		name, def, _ := strings.Cut(s[1:end], ":-")
		name = strings.TrimSuffix(name, "-")
		s = s[end+1:]
		if v := m.Env[name]; v != "" {
			b.WriteString(v)
		} else {
			b.WriteString(unquote(def))
		}
	}
	return b.String()
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i], i) {
			return false
		}
	}
	return s != ""
}

func nameByte(c byte, i int) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9'
}

// unquote takes one pair of quotes away.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return s
}

// rcCommand finds the command that enroot's /etc/rc starts: the last exec line
// with a path or name before "$@".
func rcCommand(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "exec" {
			continue
		}
		out = nil
		for _, w := range f[1:] {
			if w = unquote(w); w != "$@" && !strings.HasPrefix(w, "$") {
				out = append(out, w)
			}
		}
	}
	return out
}

// Python returns the interpreter that the image's entry point names itself, ""
// when it names none.
func (m *Image) Python() string {
	for i, w := range m.Entrypoint {
		b := path.Base(w)
		if strings.HasPrefix(b, "python") && path.IsAbs(w) {
			return w
		}
		if i == 0 && b != "tini" && b != "dumb-init" && b != "env" && b != "nvidia_entrypoint.sh" {
			return ""
		}
	}
	return ""
}
