package rules

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

//go:embed log
var embeddedLog embed.FS

// EmbeddedLog is the knowledge of log signatures inside the binary.
func EmbeddedLog() fs.FS { return embeddedLog }

// LogHeader is the YAML at the top of a file of the log family.
type LogHeader struct {
	ID            string   `yaml:"id" json:"id,omitempty"`
	Sig           string   `yaml:"sig" json:"sig,omitempty"` // stable short name, S001
	Since         string   `yaml:"since" json:"since,omitempty"`
	Role          string   `yaml:"role" json:"role,omitempty"`           // cause, consequence, either, context, noise
	Certainty     string   `yaml:"certainty" json:"certainty,omitempty"` // low: the wording was not found in a source
	Literals      []string `yaml:"literals" json:"literals,omitempty"`
	Regex         []string `yaml:"regex" json:"regex,omitempty"`
	RegexRequired bool     `yaml:"regex_required" json:"regex_required,omitempty"` // a line that only has the literal is no hit
	Proves        []string `yaml:"proves" json:"proves,omitempty"`
	Suggests      []string `yaml:"suggests" json:"suggests,omitempty"`
	Versions      string   `yaml:"versions" json:"versions,omitempty"`
	Source        string   `yaml:"source" json:"source,omitempty"`
	Refs          []Ref    `yaml:"refs" json:"refs,omitempty"`
}

// LogRule is one signature of the knowledge base.
type LogRule struct {
	LogHeader
	Res  []*lazyre.Regexp // of Regex, compiled at first use; foreign rules are compiled when they are read
	Name string           // file name
}

// LogBase is the signatures, and their texts on demand.
type LogBase struct {
	Rules []LogRule
	fsys  fs.FS
	byID  map[string]int

	mu    sync.Mutex
	texts map[string]*File // guarded by mu
}

// LoadLog reads the log family of a knowledge base.
func LoadLog(fsys fs.FS) (*LogBase, error) {
	ents, err := fs.ReadDir(fsys, "log")
	if err != nil {
		return nil, err
	}
	idx := readIndex[LogHeader](fsys, "log")
	b := &LogBase{fsys: fsys, byID: map[string]int{}, texts: map[string]*File{}}
	for _, e := range ents {
		if !strings.HasSuffix(e.Name(), ".txtar") {
			continue
		}
		name := path.Join("log", e.Name())
		y, err := readHeader(fsys, name)
		if err != nil {
			return nil, err
		}
		r := LogRule{Name: name}
		if r.LogHeader, err = header(name, y, idx); err != nil {
			return nil, err
		}
		if want := strings.TrimSuffix(e.Name(), ".txtar"); r.ID != want {
			return nil, fmt.Errorf("%s: id is %q, the file name says %q", name, r.ID, want)
		}
		if len(r.Literals) == 0 {
			return nil, fmt.Errorf("%s: no literal: nothing would lead to it", name)
		}
		for _, x := range r.Regex {
			re := lazyre.New(x)
			if idx == nil { // not the embedded base, whose expressions a test has compiled
				if err := re.Check(); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
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

// Text implements diag.Texts for log rules. It is safe for use by several
// goroutines.
func (b *LogBase) Text(id, lang string) (diag.Text, bool) {
	r := b.ByID(id)
	if r == nil {
		return diag.Text{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.texts[id]
	if f == nil {
		f = &File{Name: r.Name, fsys: b.fsys}
		b.texts[id] = f
	}
	return f.Text(lang)
}
