package install

import (
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// torchrun finds the first torchrun on PATH and the interpreter that its first
// line starts.
func (c *collector) torchrun() (interp, bool) {
	file, ok := c.look("torchrun")
	if !ok {
		c.py.Torchrun = fact.None[fact.Torchrun](fact.Evidence{Source: fact.SrcEnv, Path: "PATH"})
		return interp{}, false
	}
	text, err := c.head(file)
	if root, ok := pyenvShim(file, text); err == nil && ok {
		next, shimErr := c.pyenv(root, "torchrun")
		if shimErr != nil { // the shim is left over from a version that is not selected
			c.py.Torchrun = fact.Fail[fact.Torchrun](shimErr.Error(), fact.File(file))
			return interp{}, false
		}
		file = next
		text, err = c.head(file)
	}
	if err != nil {
		c.py.Torchrun = fact.Fail[fact.Torchrun](why("torchrun", err), fact.File(file))
		return interp{}, false
	}
	python, line := scriptPython(text)
	excerpt := ""
	if lines := strings.SplitN(text, "\n", 3); line > 0 && line <= len(lines) {
		excerpt = fact.Clip(mask.Text(strings.TrimSpace(lines[line-1])), 200)
	}
	at := fact.FileLine(file, line, excerpt)
	switch {
	case python == "":
		c.py.Torchrun = fact.Fail[fact.Torchrun]("the interpreter of its first line cannot be told", fact.File(file))
		return interp{}, false
	case strings.HasPrefix(python, "./"): // beside the script
		python = path.Join(path.Dir(c.t.at(file).real), python)
	case !strings.Contains(python, "/"): // env python3
		name := python
		if python, ok = c.look(name); !ok {
			c.py.Torchrun = fact.Fail[fact.Torchrun](name+": no such program on PATH", at)
			return interp{}, false
		}
	}
	it := c.follow(c.abs(python), fact.ByTorchrun, at)
	c.py.Torchrun = fact.Of(fact.Torchrun{Path: file, Python: it.exe}, at)
	return it, true
}

// scriptPython returns the interpreter that a console script starts and the
// line that says so: an absolute path, a bare name to look up on PATH, or
// ./name for a file beside the script. Empty: cannot be told.
//
// Besides "#!/path/python" it knows "#!/usr/bin/env python" and the form that
// pip, conda and uv write when the path is too long or has a blank:
//
//	#!/bin/sh
//	'''exec' "/long path/bin/python" "$0" "$@"
//	' '''
//
// and uv's relocatable form, ”'exec' "$(dirname -- "$(realpath -- "$0")")"/'python' "$0" "$@".
func scriptPython(text string) (python string, line int) {
	first, rest, _ := strings.Cut(text, "\n")
	cmd, ok := strings.CutPrefix(strings.TrimRight(first, "\r"), "#!")
	if !ok {
		return "", 0
	}
	f := strings.Fields(cmd)
	if len(f) == 0 {
		return "", 0
	}
	switch base := path.Base(f[0]); {
	case base == "env":
		for _, a := range f[1:] {
			a = strings.TrimPrefix(a, "-S") // -S python3 and -Spython3
			if a == "" || a[0] == '-' || strings.Contains(a, "=") {
				continue
			}
			if strings.HasPrefix(a, "./") {
				return "", 1
			}
			return a, 1
		}
		return "", 1
	case base == "sh" || base == "bash" || base == "dash":
		second, _, _ := strings.Cut(rest, "\n")
		if p, ok := trampoline(strings.TrimRight(second, "\r")); ok {
			return p, 2
		}
		return "", 2
	case path.IsAbs(f[0]):
		return f[0], 1
	}
	return "", 1
}

// trampoline reads the ”'exec' line.
func trampoline(line string) (string, bool) {
	s, ok := strings.CutPrefix(line, "'''exec'")
	if !ok {
		if s, ok = strings.CutPrefix(line, `"exec"`); !ok {
			return "", false
		}
	}
	s = strings.TrimSpace(s)
	for _, dir := range []string{`"$(dirname -- "$(realpath -- "$0")")"/`, `"$(dirname "$0")"/`} {
		if name, ok := strings.CutPrefix(s, dir); ok {
			name, _, _ = strings.Cut(name, " ")
			if name = strings.Trim(name, `'"`); name != "" && !strings.ContainsAny(name, "$`") {
				return "./" + name, true
			}
			return "", false
		}
	}
	var p string
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		end := strings.IndexByte(s[1:], s[0])
		if end < 0 {
			return "", false
		}
		p = s[1 : end+1]
	} else {
		p, _, _ = strings.Cut(s, " ")
	}
	if !path.IsAbs(p) || strings.ContainsAny(p, "$`") {
		return "", false
	}
	return p, true
}
