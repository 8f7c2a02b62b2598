// Package rules is the knowledge base: one txtar file per rule with a YAML
// header, its text in every language, and the samples that prove it. When the
// check is code it stands beside the file under the same base name.
package rules

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/rules/install"
	"github.com/ncclinic/ncclinic/rules/node"
	"github.com/ncclinic/ncclinic/rules/nodes"
)

//go:embed cause install node nodes lint
var embedded embed.FS

// Embedded is the knowledge base inside the binary.
func Embedded() fs.FS { return embedded }

// Families whose rules judge an environment, in the order in which they run.
var Environment = []string{"cause", "install", "node"}

// Allocation are the families whose rules judge the nodes of a job together.
var Allocation = []string{"cause", "install", "node", "nodes"}

// All families, in the order in which pages and lists show them.
var All = []string{"cause", "install", "node", "nodes", "lint"}

// Languages that every rule has.
var Languages = []string{"en", "zh"}

var checks = map[string]diag.Checks{"install": install.Checks, "node": node.Checks, "nodes": nodes.Checks}

// File is one rule file.
type File struct {
	Name   string // cause/torch-cpu-build.txtar
	Header Header
	fsys   fs.FS

	once  sync.Once
	ar    *txtar.Archive // see archive
	mu    sync.Mutex
	texts map[string]diag.Text // guarded by mu
}

// Header is the YAML at the top of a rule file.
type Header struct {
	ID       string         `yaml:"id" json:"id,omitempty"`
	Since    string         `yaml:"since" json:"since,omitempty"` // ncclinic version that first had it
	Severity string         `yaml:"severity" json:"severity,omitempty"`
	Role     string         `yaml:"role" json:"role,omitempty"`
	Actor    string         `yaml:"actor" json:"actor,omitempty"`
	Stage    int            `yaml:"stage" json:"stage,omitempty"`
	Needs    []string       `yaml:"needs" json:"needs,omitempty"`
	Proves   []string       `yaml:"proves" json:"proves,omitempty"`
	Explains []string       `yaml:"explains" json:"explains,omitempty"`
	Args     []string       `yaml:"args" json:"args,omitempty"`
	Fixes    []diag.FixTmpl `yaml:"fixes" json:"fixes,omitempty"`
	Cause    string         `yaml:"cause" json:"cause,omitempty"`   // lint: the cause that it leads to
	OptIn    bool           `yaml:"opt_in" json:"opt_in,omitempty"` // lint: runs only when asked for
	Slurm    string         `yaml:"slurm" json:"slurm,omitempty"`   // lint: releases in which it holds, ">=22.05,<23.11"
	Refs     []Ref          `yaml:"refs" json:"refs,omitempty"`
}

// Ref is the source of a fact, with the date on which it was read.
type Ref struct {
	What string `yaml:"what" json:"what,omitempty"`
	Date string `yaml:"date" json:"date,omitempty"`
}

// Base is a loaded knowledge base.
type Base struct {
	Files map[string]*File
	set   *diag.Set
}

// Load reads the named families of a knowledge base.
func Load(fsys fs.FS, version string, families ...string) (*Base, error) {
	b := &Base{Files: map[string]*File{}}
	var rs []*diag.Rule
	for _, fam := range families {
		ents, err := fs.ReadDir(fsys, fam)
		if err != nil {
			return nil, err
		}
		idx := readIndex[Header](fsys, fam)
		for _, e := range ents {
			if !strings.HasSuffix(e.Name(), ".txtar") {
				continue
			}
			f, err := readFile(fsys, path.Join(fam, e.Name()), idx)
			if err != nil {
				return nil, err
			}
			if b.Files[f.Header.ID] != nil {
				return nil, fmt.Errorf("%s: id %s is taken by %s", f.Name, f.Header.ID, b.Files[f.Header.ID].Name)
			}
			b.Files[f.Header.ID] = f
			rs = append(rs, f.rule(fam))
		}
	}
	b.set = diag.NewSet(version, rs)
	return b, nil
}

// ReadFile reads one rule file.
func ReadFile(fsys fs.FS, name string) (*File, error) { return readFile(fsys, name, nil) }

func readFile(fsys fs.FS, name string, idx map[string]indexed[Header]) (*File, error) {
	y, err := readHeader(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, fsys: fsys}
	if f.Header, err = header(name, y, idx); err != nil {
		return nil, err
	}
	if want := strings.TrimSuffix(path.Base(name), ".txtar"); f.Header.ID != want {
		return nil, fmt.Errorf("%s: id is %q, the file name says %q", name, f.Header.ID, want)
	}
	return f, nil
}

// archive splits the file when somebody wants a section of it.
func (f *File) archive() *txtar.Archive {
	f.once.Do(func() {
		f.ar = new(txtar.Archive)
		if raw, err := fs.ReadFile(f.fsys, f.Name); err == nil { // it was there a moment ago
			f.ar = txtar.Parse(raw)
		}
	})
	return f.ar
}

func (f *File) rule(family string) *diag.Rule {
	h := f.Header
	r := &diag.Rule{ID: h.ID, Family: family, Since: h.Since, Role: diag.Role(h.Role), Severity: diag.Severity(h.Severity),
		Actor: h.Actor, Stage: h.Stage, Needs: h.Needs, Proves: h.Proves, Explains: h.Explains, Args: h.Args, Fixes: h.Fixes,
		Cause: h.Cause, OptIn: h.OptIn, Slurm: h.Slurm}
	r.Check = checks[family][h.ID]
	return r
}

// Family returns the folder of the file: cause, install, node, log or lint.
func (f *File) Family() string { return path.Dir(f.Name) }

// CheckIDs returns the ids of the checks that are registered for a family.
func CheckIDs(family string) []string {
	var ids []string
	for id := range checks[family] {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// Set returns the rules for diag.Run.
func (b *Base) Set() *diag.Set { return b.set }

// IDs returns all rule ids in order.
func (b *Base) IDs() []string {
	var ids []string
	for id := range b.Files {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// Text implements diag.Texts. Prose is parsed when somebody reads it.
func (b *Base) Text(id, lang string) (diag.Text, bool) {
	f := b.Files[id]
	if f == nil {
		return diag.Text{}, false
	}
	return f.Text(lang)
}

// Text returns the prose of one language. It is safe for use by several
// goroutines.
func (f *File) Text(lang string) (diag.Text, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t, ok := f.texts[lang]; ok {
		return t, true
	}
	raw, ok := f.Section(lang + ".md")
	if !ok {
		return diag.Text{}, false
	}
	if f.texts == nil {
		f.texts = map[string]diag.Text{}
	}
	t := ParseText(string(raw))
	f.texts[lang] = t
	return t, true
}

// Section returns one file of the archive.
func (f *File) Section(name string) ([]byte, bool) {
	for _, x := range f.archive().Files {
		if x.Name == name {
			return x.Data, true
		}
	}
	return nil, false
}

// Sections lists the files of the archive whose names start with a prefix, without it.
func (f *File) Sections(prefix string) map[string][]byte {
	out := map[string][]byte{}
	for _, x := range f.archive().Files {
		if rest, ok := strings.CutPrefix(x.Name, prefix); ok {
			out[rest] = x.Data
		}
	}
	return out
}

// ParseText reads the prose of a rule: "# title", the message, then "## key" sections.
func ParseText(md string) diag.Text {
	t := diag.Text{Sections: map[string]string{}}
	var key string
	var body []string
	flush := func() {
		text := strings.TrimSpace(strings.Join(body, "\n"))
		if key == "" {
			t.Message = text
		} else {
			t.Sections[key] = text
		}
		body = nil
	}
	for _, line := range strings.Split(md, "\n") {
		switch {
		case strings.HasPrefix(line, "# ") && t.Title == "" && key == "":
			t.Title = strings.TrimSpace(line[2:])
		case strings.HasPrefix(line, "## "):
			flush()
			key = strings.TrimSpace(line[3:])
		default:
			body = append(body, line)
		}
	}
	flush()
	return t
}
