package rules

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/ncclinic/ncclinic/internal/diag"
)

//go:embed log
var embeddedLog embed.FS

// EmbeddedLog is the knowledge of log signatures inside the binary.
func EmbeddedLog() fs.FS { return embeddedLog }

// LogHeader is the YAML at the top of a file of the log family.
type LogHeader struct {
	ID            string   `yaml:"id"`
	Sig           string   `yaml:"sig"` // stable short name, S001
	Since         string   `yaml:"since"`
	Role          string   `yaml:"role"`      // cause, consequence, either, context, noise
	Certainty     string   `yaml:"certainty"` // low: the wording was not found in a source
	Literals      []string `yaml:"literals"`
	Regex         []string `yaml:"regex"`
	RegexRequired bool     `yaml:"regex_required"` // a line that only has the literal is no hit
	Proves        []string `yaml:"proves"`
	Suggests      []string `yaml:"suggests"`
	Versions      string   `yaml:"versions"`
	Source        string   `yaml:"source"`
	Refs          []Ref    `yaml:"refs"`
}

// LogRule is one signature of the knowledge base.
type LogRule struct {
	LogHeader
	Res  []*regexp.Regexp
	Name string // file name
}

// LogBase is the signatures, and their texts on demand.
type LogBase struct {
	Rules []LogRule
	fsys  fs.FS
	byID  map[string]int
	texts map[string]*File
}

// LoadLog reads the log family of a knowledge base.
func LoadLog(fsys fs.FS) (*LogBase, error) {
	ents, err := fs.ReadDir(fsys, "log")
	if err != nil {
		return nil, err
	}
	b := &LogBase{fsys: fsys, byID: map[string]int{}, texts: map[string]*File{}}
	for _, e := range ents {
		if !strings.HasSuffix(e.Name(), ".txtar") {
			continue
		}
		name := path.Join("log", e.Name())
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		head := raw
		if i := bytes.Index(raw, []byte("\n-- ")); i >= 0 {
			head = raw[:i+1]
		}
		r := LogRule{Name: name}
		d := yaml.NewDecoder(bytes.NewReader(head))
		d.KnownFields(true)
		if err := d.Decode(&r.LogHeader); err != nil {
			return nil, fmt.Errorf("%s: header: %w", name, err)
		}
		if want := strings.TrimSuffix(e.Name(), ".txtar"); r.ID != want {
			return nil, fmt.Errorf("%s: id is %q, the file name says %q", name, r.ID, want)
		}
		if len(r.Literals) == 0 {
			return nil, fmt.Errorf("%s: no literal: nothing would lead to it", name)
		}
		for _, x := range r.Regex {
			re, err := regexp.Compile(x)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			r.Res = append(r.Res, re)
		}
		if _, dup := b.byID[r.ID]; dup {
			return nil, fmt.Errorf("%s: id %s is taken", name, r.ID)
		}
		b.byID[r.ID] = len(b.Rules)
		b.Rules = append(b.Rules, r)
	}
	return b, nil
}

// ByID returns a signature, or nil.
func (b *LogBase) ByID(id string) *LogRule {
	if i, ok := b.byID[id]; ok {
		return &b.Rules[i]
	}
	return nil
}

// Text implements diag.Texts for log rules.
func (b *LogBase) Text(id, lang string) (diag.Text, bool) {
	r := b.ByID(id)
	if r == nil {
		return diag.Text{}, false
	}
	f := b.texts[id]
	if f == nil {
		raw, err := fs.ReadFile(b.fsys, r.Name)
		if err != nil {
			return diag.Text{}, false
		}
		f = &File{Name: r.Name, ar: txtar.Parse(raw)}
		b.texts[id] = f
	}
	return f.Text(lang)
}
