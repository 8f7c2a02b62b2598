package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/rules/lint"
)

// ConfigName is the file that is looked for beside scripts and above them.
const ConfigName = ".ncclinic.yaml"

// Config is a .ncclinic.yaml.
type Config struct {
	// Slurm is the release of the cluster: "23.11".
	Slurm string `yaml:"slurm"`
	// Rules maps a rule to error, warning, note, off or on.
	Rules map[string]string `yaml:"rules"`
	// Ignore leaves out rules for files that a pattern names.
	Ignore []struct {
		Files string   `yaml:"files"`
		Rules []string `yaml:"rules"`
	} `yaml:"ignore"`
	// SiteOptions are options of sbatch that plugins of the site add.
	SiteOptions []string `yaml:"site-options"`

	dir string // of the file; patterns are relative to it
}

// ReadConfig reads a configuration; known says which rule ids exist.
func ReadConfig(raw []byte, name string, known func(id string) bool) (*Config, error) {
	c := &Config{dir: filepath.Dir(name)}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", name, plainYAML(err))
	}
	var ids []string
	for id := range c.Rules {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		if !known(id) {
			return nil, fmt.Errorf("%s: rules: no such rule: %q", name, id)
		}
		switch c.Rules[id] {
		case "error", "warning", "note", "off", "on":
		default:
			return nil, fmt.Errorf("%s: rules: %s: %q is not error, warning, note, on or off", name, id, c.Rules[id])
		}
	}
	for _, i := range c.Ignore {
		if _, err := path.Match(i.Files, "x"); err != nil {
			return nil, fmt.Errorf("%s: ignore: %q: %w", name, i.Files, err)
		}
		for _, id := range i.Rules {
			if !known(id) && id != "all" {
				return nil, fmt.Errorf("%s: ignore: no such rule: %q", name, id)
			}
		}
	}
	if c.Slurm != "" {
		if _, ok := lint.ParseVersion(c.Slurm); !ok {
			return nil, fmt.Errorf("%s: slurm: %q is no version such as 23.11", name, c.Slurm)
		}
	}
	return c, nil
}

// plainYAML says what is wrong in a configuration without the words of the
// library and of the types that it is read into.
func plainYAML(err error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	var out []string
	for _, e := range wrong.Errors {
		line, what, _ := strings.Cut(e, ": ")
		switch {
		case strings.Contains(what, " not found in type "):
			name, _, _ := strings.Cut(strings.TrimPrefix(what, "field "), " not found in type ")
			what = fmt.Sprintf("%q is no key of it", name)
		case strings.HasPrefix(what, "cannot unmarshal "):
			what = "not the kind of value that belongs here"
		case strings.HasPrefix(what, "mapping key "):
			what, _, _ = strings.Cut(what, " at line")
			what = strings.Replace(what, "already defined", "is there twice", 1)
		}
		out = append(out, line+": "+what)
	}
	return strings.Join(out, "; ")
}

func (c *Config) severity(id string) (diag.Severity, bool) {
	switch s := c.Rules[id]; s {
	case "error", "warning", "note":
		return diag.Severity(s), true
	}
	return "", false
}

func (c *Config) enabled(id string) bool { s := c.Rules[id]; return s != "" && s != "off" }

func (c *Config) disabled(id string) bool { return c.Rules[id] == "off" }

func (c *Config) siteOptions() map[string]bool {
	m := map[string]bool{}
	for _, o := range c.SiteOptions {
		m[strings.TrimLeft(o, "-")] = true
	}
	return m
}

// ignores reports whether a rule is left out for a file.
func (c *Config) ignores(name, id string) bool {
	for _, i := range c.Ignore {
		rel := name
		if r, err := filepath.Rel(c.dir, name); err == nil {
			rel = filepath.ToSlash(r)
		}
		ok := false
		for _, n := range []string{rel, path.Base(rel)} {
			m, _ := path.Match(i.Files, n)
			ok = ok || m
		}
		if d, cut := strings.CutSuffix(i.Files, "/**"); cut && strings.HasPrefix(rel, d+"/") {
			ok = true
		}
		if !ok {
			continue
		}
		for _, x := range i.Rules {
			if x == id || x == "all" {
				return true
			}
		}
	}
	return false
}

func itoa(n int) string { return strconv.Itoa(n) }
