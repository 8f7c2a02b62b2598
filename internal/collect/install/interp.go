package install

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/source"
)

// interp is an interpreter that was chosen or that something names.
type interp struct {
	exe  string // as found, links not resolved; shims and wrappers followed
	real string
	by   string
	at   fact.Evidence
	err  error // there is no such program
}

// envAt is evidence for a variable, masked.
func envAt(name, value string) fact.Evidence {
	return fact.EnvVarAt(name, mask.Value(name, value))
}

// defaultPath is what a shell without PATH uses.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// searchDirs splits PATH as a shell does: an empty entry is the working directory.
func (c *collector) searchDirs() []string {
	value, ok := c.m.Env["PATH"]
	if !ok {
		value = defaultPath
	}
	seen := map[string]bool{}
	var out []string
	for _, dir := range strings.Split(value, ":") {
		dir = c.abs(dir)
		if !seen[dir] && len(out) < 1000 {
			seen[dir] = true
			out = append(out, dir)
		}
	}
	return out
}

// abs makes a path absolute against the working directory.
func (c *collector) abs(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = c.home() + p[1:]
	}
	if !path.IsAbs(p) {
		p = path.Join(c.cwd, p)
	}
	return path.Clean(p)
}

func (c *collector) home() string {
	if h := c.m.Env["HOME"]; h != "" {
		return h
	}
	return c.m.Home
}

// look finds a program on PATH.
func (c *collector) look(name string) (string, bool) {
	for _, dir := range c.searchDirs() {
		if p := path.Join(dir, name); c.t.isExec(p) {
			return p, true
		}
	}
	return "", false
}

// firstPython returns what "python" would run, or "python3" where the folder
// of PATH that has one of them first has only that. A python that is Python 2
// gives way to python3.
func (c *collector) firstPython() (string, bool) {
	for _, dir := range c.searchDirs() {
		py, py3 := path.Join(dir, "python"), path.Join(dir, "python3")
		if c.t.isExec(py) {
			if v, ok := pyverOfName(path.Base(c.t.at(py).real)); !ok || v.major != 2 {
				return py, true
			}
		}
		if c.t.isExec(py3) {
			return py3, true
		}
	}
	return "", false
}

// choose fills Python.Exe, Real, By, Others and Torchrun. An error says that
// the interpreter that the caller asked for does not exist.
func (c *collector) choose() (interp, error) {
	var all []interp
	if c.o.Python != "" {
		it := c.asked(c.o.Python)
		if it.err != nil && it.exe == "" {
			c.py.Exe = fact.Fail[string](it.err.Error(), it.at)
			c.py.By = it.by
			return it, it.err
		}
		all = append(all, it)
	}
	if exe, ok := c.firstPython(); ok {
		all = append(all, c.follow(exe, fact.ByPath, fact.Evidence{Source: fact.SrcEnv, Path: "PATH", Excerpt: path.Dir(exe)}))
	}
	for _, v := range []string{fact.ByVirtualEnv, fact.ByCondaPrefix} {
		if prefix := c.m.Env[v]; prefix != "" {
			it := c.inPrefix(c.abs(prefix), envAt(v, prefix))
			it.by = v
			all = append(all, it)
		}
	}
	if it, ok := c.torchrun(); ok {
		all = append(all, it)
	}

	chosen := interp{err: errors.New("no python on PATH")}
	for i, it := range all {
		if it.err == nil || i == 0 && c.o.Python != "" {
			chosen = it
			break
		}
	}
	seen := map[string]bool{c.identity(chosen): true}
	for _, it := range all {
		if id := c.identity(it); it.exe != "" && !seen[id] {
			seen[id] = true
			c.py.Others = append(c.py.Others, fact.PythonRef{Exe: it.exe, By: it.by, At: it.at, Missing: it.err != nil})
		}
	}
	c.py.By = chosen.by
	switch {
	case chosen.exe == "":
		c.py.Exe = fact.None[string](envAt("PATH", c.m.Env["PATH"]))
		c.barredPath()
	case chosen.err != nil:
		c.py.Exe = fact.Fail[string](chosen.err.Error(), fact.File(chosen.exe))
	default:
		c.py.Exe = fact.Of(chosen.exe, chosen.at)
		c.py.Real = fact.Of(chosen.real, fact.File(chosen.exe))
	}
	return chosen, nil
}

// barredPath names the folders of PATH in which no program could be looked for: a
// shell of this user passes over them, and one of the image's own user does not.
func (c *collector) barredPath() {
	for _, dir := range c.searchDirs() {
		if n := c.t.at(path.Join(dir, "python3")); n.err != nil && !gone(n.err) && !errors.Is(n.err, errLoop) {
			c.b.AddProblem(dir, short(n.err).Error())
		}
	}
}

// identity tells environments apart: python, python3 and python3.11 of one
// folder are the same when they are the same program.
func (c *collector) identity(it interp) string {
	if it.exe == "" {
		return ""
	}
	if it.err != nil {
		return it.exe
	}
	return c.t.at(path.Dir(it.exe)).real + "\x00" + it.real
}

// asked resolves --python: a program, a name on PATH, an environment's folder.
func (c *collector) asked(arg string) interp {
	by := c.o.By
	if by == "" {
		by = fact.ByFlag
	}
	at := fact.Evidence{Source: fact.SrcFlag, Path: "--python", Excerpt: fact.Clip(mask.Text(arg), 200)}
	if !strings.Contains(arg, "/") && arg != "." && arg != ".." {
		if exe, ok := c.look(arg); ok {
			return c.follow(exe, by, at)
		}
		if !c.t.isDir(c.abs(arg)) {
			return interp{by: by, at: at, err: fmt.Errorf("%s: no such program on PATH", arg)}
		}
	}
	p := c.abs(arg)
	n := c.t.at(p)
	switch {
	case n.err != nil:
		return interp{by: by, at: at, err: c.missing(p)}
	case n.info.IsDir():
		it := c.inPrefix(p, at)
		it.by = by
		if it.err != nil {
			// Named as it was typed: that is what the reader looks for.
			it.err = fmt.Errorf("%s: not an environment: %w", arg, it.err)
		}
		return it
	case !n.info.Mode().IsRegular():
		return interp{by: by, at: at, err: fmt.Errorf("%s: not a program", p)}
	}
	return c.follow(p, by, at)
}

// inPrefix finds the interpreter of an environment's folder.
func (c *collector) inPrefix(prefix string, at fact.Evidence) interp {
	for _, p := range []string{"bin/python", "bin/python3", "python", "python3"} {
		if exe := path.Join(prefix, p); c.t.isExec(exe) {
			return c.follow(exe, "", at)
		}
	}
	exe := path.Join(prefix, "bin/python")
	return interp{exe: exe, real: exe, at: at, err: c.missing(exe)}
}

// missing says why there is no program at p. A link to nowhere is there for
// whoever lists the folder, so its end is named.
func (c *collector) missing(p string) error {
	n := c.t.at(p)
	switch {
	case n.err == nil:
		return fmt.Errorf("%s: not a program", p)
	case gone(n.err) && n.real != "" && c.isLink(p):
		return fmt.Errorf("%s: is a link that ends at %s, and there is no such file", p, n.real)
	}
	return errors.New(why(p, short(n.err)))
}

func (c *collector) isLink(p string) bool {
	dir := c.t.at(path.Dir(p))
	if dir.err != nil {
		return false
	}
	info, err := fs.Lstat(c.m.FS, source.Rel(path.Join(dir.real, path.Base(p))))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// follow resolves shims and plain wrapper scripts until a program is reached.
func (c *collector) follow(exe, by string, at fact.Evidence) interp {
	it := interp{exe: exe, by: by, at: at}
	for range 4 {
		n := c.t.at(it.exe)
		if n.err != nil {
			it.real, it.err = it.exe, c.missing(it.exe)
			return it
		}
		it.real = n.real
		head, err := c.head(n.real)
		if err != nil || !strings.HasPrefix(head, "#!") {
			return it // a program, or one that may be run and not be read
		}
		next, err := c.wrapped(it.exe, head)
		if err != nil {
			c.b.AddProblem(it.exe, err.Error())
			return it
		}
		it.exe = next
	}
	c.b.AddProblem(exe, "too many wrapper scripts")
	return it
}

// head returns the first part of a script; of a program it is a few bytes that
// nobody looks at. Several names lead to one interpreter, so it is remembered.
func (c *collector) head(p string) (string, error) {
	real := c.t.at(p).real
	if s, ok := c.heads[real]; ok {
		return s, nil
	}
	data, _, err := c.t.read(real, 4<<10)
	if err != nil {
		return "", err
	}
	c.heads[real] = string(data)
	return string(data), nil
}

// wrapped returns what a script in the place of an interpreter runs.
func (c *collector) wrapped(exe, text string) (string, error) {
	if root, ok := pyenvShim(exe, text); ok {
		return c.pyenv(root, path.Base(exe))
	}
	if next, ok := execLine(text); ok && strings.HasPrefix(path.Base(next), "python") && c.t.isExec(next) {
		return next, nil
	}
	return "", errors.New("is a script, not an interpreter; what it runs cannot be told without running it (name the interpreter with --python)")
}

// execLine finds the only "exec /abs/program … "$@"" of a wrapper script.
func execLine(text string) (string, bool) {
	found := ""
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "exec" {
			continue
		}
		prog := strings.Trim(f[1], `"'`)
		if found != "" || !path.IsAbs(prog) || strings.ContainsAny(prog, "$`*?\\") || f[len(f)-1] != `"$@"` {
			return "", false
		}
		found = path.Clean(prog)
	}
	return found, found != ""
}
