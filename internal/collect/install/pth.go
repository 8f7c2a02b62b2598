package install

import (
	"strings"
)

// pthLine is one effective line of a .pth file.
type pthLine struct {
	n    int
	text string // trailing white space removed; as Python does, leading is kept
	code bool   // an import line, which Python executes
}

// parsePth splits a .pth file as site.addpackage does. bom says whether this
// Python skips a byte order mark (3.13 and later); older ones take it as a part
// of the first line.
func parsePth(data []byte, bom bool) []pthLine {
	s := string(data)
	if bom {
		s = strings.TrimPrefix(s, "\ufeff")
	}
	var out []pthLine
	n := 0
	for s != "" {
		n++
		line := s
		if i := strings.IndexAny(s, "\r\n"); i >= 0 {
			line, s = s[:i], strings.TrimPrefix(s[i:], "\r")
			s = strings.TrimPrefix(s, "\n")
		} else {
			s = ""
		}
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		code := strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t")
		out = append(out, pthLine{n: n, text: strings.TrimRight(line, " \t\v\f"), code: code})
	}
	return out
}

// Kinds of import line.
type pthCode int

const (
	codeHarmless  pthCode = iota // does not change where torch is found
	codeUnknown                  // may change it
	codeAddDir                   // site.addsitedir("…") with a literal; arg is the folder
	codeMark                     // first line of an old easy-install.pth
	codeMoveFront                // last line of it: entries since the mark go to the front
	codeFinder                   // import hook of an editable install; arg is its module
)

// classify says what an import line does to the search path. It recognises
// exact forms that tools write; nothing is executed.
func classify(line string) (kind pthCode, arg string) {
	switch {
	case strings.HasPrefix(line, "import sys; sys.__plen = len(sys.path)"):
		return codeMark, ""
	case strings.Contains(line, "sys.__plen") && strings.Contains(line, "__egginsert"):
		return codeMoveFront, ""
	}
	// import __editable___torch_2_7_0_finder; __editable___torch_2_7_0_finder.install()
	if rest, ok := strings.CutPrefix(line, "import __editable__"); ok {
		name, _, ok := strings.Cut(rest, ";")
		if ok && isIdent(strings.TrimSpace(name)) {
			return codeFinder, "__editable__" + strings.TrimSpace(name)
		}
		return codeUnknown, ""
	}
	if dir, ok := addsitedirLiteral(line); ok {
		return codeAddDir, dir
	}
	// Namespace packages of old setuptools: they touch sys.modules only.
	if strings.HasPrefix(line, "import sys, types, os;") && strings.Contains(line, "sitedir") && strings.Contains(line, "types.ModuleType") {
		return codeHarmless, ""
	}
	for _, s := range []string{"sys.path", "addsitedir", "meta_path", "path_hooks", "addpackage", "PYTHONPATH", "torch"} {
		if strings.Contains(line, s) {
			return codeUnknown, ""
		}
	}
	return codeHarmless, ""
}

// addsitedirLiteral recognises import site; site.addsitedir('/literal').
func addsitedirLiteral(line string) (string, bool) {
	head, rest, ok := strings.Cut(line, ";")
	if !ok {
		return "", false
	}
	imports := strings.Split(strings.TrimPrefix(head, "import"), ",")
	hasSite := false
	for _, m := range imports {
		switch strings.TrimSpace(m) {
		case "site":
			hasSite = true
		case "sys", "os":
		default:
			return "", false
		}
	}
	arg, ok := strings.CutPrefix(strings.TrimSpace(rest), "site.addsitedir(")
	if !hasSite || !ok {
		return "", false
	}
	arg, ok = strings.CutSuffix(strings.TrimRight(arg, "; \t"), ")")
	if !ok {
		return "", false
	}
	return pyString(strings.TrimSpace(arg))
}

func isIdent(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return s != "" && len(s) < 256
}

// pyString reads a Python string literal without escapes: '…' or "…", with an
// optional r or u before it.
func pyString(s string) (string, bool) {
	raw := false
	for s != "" && strings.IndexByte("rRuU", s[0]) >= 0 && len(s) > 2 {
		raw = raw || s[0] == 'r' || s[0] == 'R'
		s = s[1:]
	}
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' || s[len(s)-1] != s[0] {
		return "", false
	}
	q, body := s[0], s[1:len(s)-1]
	if strings.IndexByte(body, q) >= 0 || !raw && strings.IndexByte(body, '\\') >= 0 {
		return "", false
	}
	return body, true
}
