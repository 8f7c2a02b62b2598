package ruletest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"sort"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/rules"
)

// Sample is one sample of a rule file: facts as they stand, or a recorded machine
// that the real collectors read.
type Sample struct {
	Rule string
	Kind string // hit or miss
	Name string
	Want Want

	facts []byte
	tree  map[string][]byte // a record as package recorded takes it: tree/…, links, env, cmd/…, os.json
}

// Want is what NAME.want.yaml (or NAME/want.yaml of a tree) expects. Cause is
// the top cause of the whole knowledge base, "none" for no cause; a recorded
// machine whose other faults are not the point leaves it out. The others are about the finding of the rule under test: Finds is its id (default: the
// same cause). Status is the rule's own status, for samples that must be skipped.
type Want struct {
	Cause     string            `yaml:"cause"`
	Finds     string            `yaml:"finds"`
	Certainty string            `yaml:"certainty"`
	Severity  string            `yaml:"severity"`
	Role      string            `yaml:"role"`
	Verdict   string            `yaml:"verdict"`
	Status    string            `yaml:"status"`
	Args      map[string]string `yaml:"args"`
	Fixes     []string          `yaml:"fixes"`    // ids of the fixes, in order
	Commands  []string          `yaml:"commands"` // each must be one of the commands of the fixes
}

// Samples reads the samples of a rule file.
func Samples(f *rules.File) ([]Sample, error) {
	at := map[string]*Sample{}
	get := func(kind, name string) *Sample {
		k := kind + "/" + name
		if at[k] == nil {
			at[k] = &Sample{Rule: f.Header.ID, Kind: kind, Name: name}
		}
		return at[k]
	}
	for _, kind := range []string{"hit", "miss"} {
		for path, data := range f.Sections(kind + "/") {
			var err error
			name, rest, tree := strings.Cut(path, "/")
			switch {
			case tree && rest == "want.yaml":
				err = strictYAML(data, &get(kind, name).Want)
			case tree && recordPart(rest):
				s := get(kind, name)
				if s.tree == nil {
					s.tree = map[string][]byte{}
				}
				s.tree[rest] = data
			case !tree && strings.HasSuffix(name, ".facts.yaml"):
				get(kind, strings.TrimSuffix(name, ".facts.yaml")).facts = data
			case !tree && strings.HasSuffix(name, ".want.yaml"):
				err = strictYAML(data, &get(kind, strings.TrimSuffix(name, ".want.yaml")).Want)
			default:
				err = fmt.Errorf("not a sample")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s/%s: %w", f.Name, kind, path, err)
			}
		}
	}
	var out []Sample
	for _, k := range keys(at) {
		s := *at[k]
		switch {
		case s.facts == nil && s.tree == nil:
			return nil, fmt.Errorf("%s: %s has neither facts nor a tree", f.Name, k)
		case s.facts != nil && s.tree != nil:
			return nil, fmt.Errorf("%s: %s has both facts and a tree", f.Name, k)
		case s.Kind == "hit" && s.Want.Cause == "" && s.Want.Finds == "":
			return nil, fmt.Errorf("%s: %s does not say what it wants: cause or finds", f.Name, k)
		}
		out = append(out, s)
	}
	return out, nil
}

// recordPart reports whether a file belongs to a recorded machine.
func recordPart(name string) bool {
	switch name {
	case "env", "links", "os.json":
		return true
	}
	return strings.HasPrefix(name, "tree/") || strings.HasPrefix(name, "cmd/")
}

// Bundle returns the facts of the sample.
func (s Sample) Bundle() (*fact.Bundle, error) {
	if s.tree != nil {
		return collectTree(s)
	}
	return Facts(s.facts)
}

// Facts reads a fact.Bundle in its JSON form written as YAML. It is strict: an
// unknown key anywhere, or a value of the wrong type (2.10 without quotes), is
// an error, because a typo in a sample would test nothing.
func Facts(y []byte) (*fact.Bundle, error) {
	var tree any
	if err := yaml.Unmarshal(y, &tree); err != nil {
		return nil, err
	}
	if tree == nil {
		return &fact.Bundle{}, nil
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	b := &fact.Bundle{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return nil, err
	}
	// Val decodes what is inside of it leniently: what does not come back was not understood.
	back, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	var again any
	if err := json.Unmarshal(back, &again); err != nil {
		return nil, err
	}
	var first any
	if err := json.Unmarshal(raw, &first); err != nil {
		return nil, err
	}
	if lost := lostKey(first, again, ""); lost != "" {
		return nil, fmt.Errorf("unknown key %s", lost)
	}
	return b, nil
}

// lostKey returns the path of the first key of a that b lacks, unless its value is empty.
func lostKey(a, b any, at string) string {
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		for _, k := range keys(x) {
			if _, ok := y[k]; !ok {
				if !empty(x[k]) && !(k == "state" && x[k] == "known") {
					return at + "." + k
				}
				continue
			}
			if lost := lostKey(x[k], y[k], at+"."+k); lost != "" {
				return lost
			}
		}
	case []any:
		y, _ := b.([]any)
		for i := range x {
			if i < len(y) {
				if lost := lostKey(x[i], y[i], fmt.Sprintf("%s[%d]", at, i)); lost != "" {
					return lost
				}
			}
		}
	}
	return ""
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case float64:
		return x == 0
	case []any:
		return len(x) == 0
	case map[string]any:
		for _, e := range x {
			if !empty(e) {
				return false
			}
		}
		return true
	}
	return false
}

func strictYAML(y []byte, v any) error {
	d := yaml.NewDecoder(bytes.NewReader(y))
	d.KnownFields(true)
	return d.Decode(v)
}

// checkOwn compares the finding of the rule under test, which ran alone.
func (w Want) checkOwn(t *testing.T, rep *diag.Report) {
	t.Helper()
	id := w.Finds
	if id == "" {
		id = w.Cause
	}
	var f *diag.Finding
	var ids []string
	for i := range rep.Findings {
		ids = append(ids, rep.Findings[i].ID)
		if rep.Findings[i].ID == id {
			f = &rep.Findings[i]
		}
	}
	if f == nil {
		if w.Finds == "" && w.Cause == "none" && len(ids) == 1 {
			f = &rep.Findings[0] // a note: it names no cause, its own id is clear
		} else {
			t.Errorf("the rule found %v, want %s", ids, id)
			return
		}
	}
	same := func(what, got, want string) {
		t.Helper()
		if want != "" && got != want {
			t.Errorf("%s: %s is %q, want %q", f.ID, what, got, want)
		}
	}
	same("certainty", string(f.Certainty), w.Certainty)
	same("severity", string(f.Severity), w.Severity)
	same("role", string(f.Role), w.Role)
	for _, k := range keys(w.Args) {
		if f.Args[k] != w.Args[k] {
			t.Errorf("%s: argument %s is %q, want %q", f.ID, k, f.Args[k], w.Args[k])
		}
	}
	var fixes, cmds []string
	for _, x := range f.Fixes {
		fixes = append(fixes, x.ID)
		cmds = append(cmds, x.Commands...)
	}
	if w.Fixes != nil && strings.Join(fixes, " ") != strings.Join(w.Fixes, " ") {
		t.Errorf("%s: fixes are %v, want %v", f.ID, fixes, w.Fixes)
	}
	for _, c := range w.Commands {
		if !contains(cmds, c) {
			sort.Strings(cmds)
			t.Errorf("%s: no fix says %q, they say:\n%s", f.ID, c, strings.Join(cmds, "\n"))
		}
	}
}

// checkTop compares the verdict of the whole knowledge base.
func (w Want) checkTop(t *testing.T, rep *diag.Report) {
	t.Helper()
	if w.Cause != "" {
		got := "none"
		if rep.Cause != nil {
			got = *rep.Cause
		}
		if got != w.Cause {
			var all []string
			for _, f := range rep.Findings {
				all = append(all, fmt.Sprintf("%s(%s,%s,%s by %s)", f.ID, f.Role, f.Severity, f.Certainty, f.Rule))
			}
			t.Errorf("the verdict of all rules is %s, want %s; found %v", got, w.Cause, all)
		}
	}
	if w.Verdict != "" && rep.Verdict != w.Verdict {
		t.Errorf("verdict is %s, want %s", rep.Verdict, w.Verdict)
	}
}

func runFlag() string {
	if f := flag.Lookup("test.run"); f != nil {
		return f.Value.String()
	}
	return ""
}
