package install

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// pyenvShim recognises a script of pyenv's shims folder and returns its root.
func pyenvShim(exe, text string) (root string, ok bool) {
	if !strings.Contains(text, "pyenv\" exec ") {
		return "", false
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "export PYENV_ROOT="); ok {
			if v = strings.Trim(v, `"'`); path.IsAbs(v) {
				return path.Clean(v), true
			}
		}
	}
	return path.Dir(path.Dir(exe)), true
}

// pyenv returns the program that a shim would run: that of the first selected
// version that has it, as pyenv-which does.
func (c *collector) pyenv(root, name string) (string, error) {
	selected, from := c.pyenvVersions(root)
	for _, v := range selected {
		if v == "system" {
			for _, dir := range c.searchDirs() {
				if p := path.Join(dir, name); dir != path.Join(root, "shims") && c.t.isExec(p) {
					return p, nil
				}
			}
			continue
		}
		if strings.Contains(v, "..") || strings.HasPrefix(v, "/") {
			return "", fmt.Errorf("pyenv: strange version %q in %s", v, from)
		}
		for _, v := range []string{v, strings.TrimPrefix(v, "python-")} {
			if p := path.Join(root, "versions", c.pyenvLatest(root, v), "bin", name); c.t.isExec(p) {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("pyenv: version %s (from %s) is not installed or has no %s", strings.Join(selected, ":"), from, name)
}

// pyenvVersions returns the selected versions and what selects them.
func (c *collector) pyenvVersions(root string) (versions []string, from string) {
	if v := c.m.Env["PYENV_VERSION"]; v != "" {
		return strings.Split(v, ":"), "PYENV_VERSION"
	}
	start := c.cwd
	if d := c.m.Env["PYENV_DIR"]; path.IsAbs(d) {
		start = path.Clean(d)
	}
	var files []string
	for dir := start; ; dir = path.Dir(dir) {
		files = append(files, path.Join(dir, ".python-version"))
		if dir == "/" {
			break
		}
	}
	files = append(files, path.Join(root, "version"))
	for _, f := range files {
		data, _, err := c.t.read(f, 4<<10)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				versions = append(versions, line)
			}
		}
		if len(versions) > 0 {
			return versions, f
		}
	}
	return []string{"system"}, path.Join(root, "version")
}

// pyenvLatest resolves a prefix such as 3.11 to the newest installed release of it.
func (c *collector) pyenvLatest(root, v string) string {
	if c.t.isDir(path.Join(root, "versions", v)) {
		return v
	}
	best, bestMicro := v, -1
	for name := range c.t.list(path.Join(root, "versions")).names {
		if rest, ok := strings.CutPrefix(name, v+"."); ok {
			// 3.11 → 3.11.7; 3 → 3.12.1 compares minor first.
			if n := versionOrder(rest); n > bestMicro {
				best, bestMicro = name, n
			}
		}
	}
	return best
}

// versionOrder makes "7" and "12.1" comparable; -1 for anything but numbers.
func versionOrder(s string) int {
	n := 0
	parts := strings.Split(s, ".")
	if len(parts) > 2 {
		return -1
	}
	for _, p := range parts {
		i, err := strconv.Atoi(p)
		if err != nil || i < 0 || i > 999 {
			return -1
		}
		n = n*1000 + i
	}
	return n
}
