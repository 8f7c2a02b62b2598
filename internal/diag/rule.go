package diag

import (
	"fmt"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Rule is one rule of the knowledge base without its prose.
type Rule struct {
	ID       string
	Family   string // cause, install, node, log, lint
	Since    string
	Role     Role // of what it finds; empty: cause
	Severity Severity
	Actor    string // user, admin, hardware, upstream
	// Stage orders causes by when they bite in a job's life: 10 submission, 20
	// shell and modules, 30 interpreter, 40 import torch, 50 libraries, 60 GPU
	// and driver, 70 rendezvous, 80 network, 90 training. The first failure wins.
	Stage    int
	Needs    []string // facts without which the rule is skipped; see needs.go
	Proves   []string // causes that a check can name
	Explains []string // ids that this one makes a consequence
	Fixes    []FixTmpl
	Args     []string // placeholders that its texts may use
	Cause    string   // of a lint rule: the cause that it leads to
	OptIn    bool     // of a lint rule: it runs only when asked for
	Slurm    string   // of a lint rule: releases in which it holds, ">=22.05,<23.11"
	Check    Check    // nil for rules that are data alone
}

// FixTmpl is a fix as the rule file has it; Commands hold {placeholders}.
type FixTmpl struct {
	ID       string   `yaml:"id" json:"id,omitempty"`
	Kind     string   `yaml:"kind" json:"kind,omitempty"`
	When     string   `yaml:"when" json:"when,omitempty"` // argument that must be non-empty; "a=b": must equal; "!a": must be empty; comma: all of them
	Safe     bool     `yaml:"safe" json:"safe,omitempty"`
	Commands []string `yaml:"commands" json:"commands,omitempty"`
}

// Check is the code of a rule. It reads facts and reports; it must not keep state.
type Check func(b *fact.Bundle, r *Reporter)

// Checks collects the checks of one family by rule id.
type Checks map[string]Check

// Add registers a check; it is meant for package variables beside the rule
// file: var _ = Checks.Add("id", func…). A second one for an id panics at start.
func (c Checks) Add(id string, f Check) struct{} {
	if _, dup := c[id]; dup {
		panic(fmt.Sprintf("diag: two checks named %q", id))
	}
	c[id] = f
	return struct{}{}
}

// Reporter is what a Check talks to.
type Reporter struct {
	rule   *Rule
	set    *Set
	out    []Finding
	skip   string
	denied error
}

// Hit reports that the rule found the named cause. The returned finding may be
// filled in further until the check returns.
func (r *Reporter) Hit(cause string, c Certainty, a Args, ev ...fact.Evidence) *Finding {
	if a == nil {
		a = Args{}
	}
	f := Finding{ID: cause, Rule: r.rule.ID, Role: Cause, Severity: r.rule.Severity, Certainty: c,
		Actor: r.rule.Actor, Args: a, Count: 1, stage: r.rule.Stage}
	if r.rule.Role != "" {
		f.Role = r.rule.Role
	}
	if cr := r.set.ByID(cause); cr != nil {
		if f.Severity == "" {
			f.Severity = cr.Severity
		}
		if f.Actor == "" {
			f.Actor = cr.Actor
		}
		if f.stage == 0 {
			f.stage = cr.Stage
		}
		f.Fixes = expandFixes(cr.Fixes, a)
	} else {
		r.denied = fmt.Errorf("names the cause %q, which has no file", cause)
	}
	if own := expandFixes(r.rule.Fixes, a); len(own) > 0 {
		f.Fixes = append(own, f.Fixes...)
	}
	for _, e := range ev {
		if !e.IsZero() {
			f.Evidence = append(f.Evidence, e)
		}
	}
	r.out = append(r.out, f)
	return &r.out[len(r.out)-1]
}

// Skip says that the rule could not decide because something was not observed.
func (r *Reporter) Skip(reason string) { r.skip = reason }

// Need adds a command that would decide.
func (f *Finding) Need(cmd string) *Finding { f.Needs = append(f.Needs, cmd); return f }

// As changes the role.
func (f *Finding) As(role Role) *Finding { f.Role = role; return f }

// Sev changes the severity.
func (f *Finding) Sev(s Severity) *Finding { f.Severity = s; return f }

// At adds a place.
func (f *Finding) At(w Where) *Finding { f.Where = append(f.Where, w); return f }
