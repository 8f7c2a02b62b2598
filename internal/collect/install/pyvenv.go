package install

import "strings"

// venvConfig is what pyvenv.cfg says.
type venvConfig struct {
	home       string
	homeLine   int
	system     bool // include-system-site-packages; true when the key is missing, as site.py has it
	systemLine int  // 0: the key is missing
	version    pyver
	uv         string // version of the uv that made it
}

// parsePyvenv reads pyvenv.cfg as getpath.py and site.py do: every line with a
// "=" is a key and a value, keys in any case; the first home counts and the
// last include-system-site-packages.
func parsePyvenv(data []byte) venvConfig {
	c := venvConfig{system: true, version: pyver{micro: -1}}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "home":
			if c.homeLine == 0 {
				c.home, c.homeLine = value, n
			}
		case "include-system-site-packages":
			c.system, c.systemLine = strings.EqualFold(value, "true"), n
		case "uv":
			c.uv = value
		case "version", "version_info": // venv and uv write the first or both, virtualenv the second
			if v, ok := parsePyver(value); ok && (!c.version.known() || v.micro >= 0) {
				c.version = v
			}
		}
	}
	return c
}
