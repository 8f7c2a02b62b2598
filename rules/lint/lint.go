// Package lint holds the checks of batch scripts; each stands beside its rule
// file. A check reads a fact.Script and reports places; severity, texts and
// fixes come from the rule file.
package lint

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// Check looks for one thing in a script.
type Check func(c *Ctx)

// checkMap collects checks by rule id.
type checkMap map[string]Check

// Add registers a check beside its rule file; a second one for an id panics at start.
func (m checkMap) Add(id string, f Check) struct{} {
	if _, dup := m[id]; dup {
		panic(fmt.Sprintf("lint: two checks named %q", id))
	}
	m[id] = f
	return struct{}{}
}

// Checks are the checks of the family by rule id.
var Checks = checkMap{}

// Edit replaces the bytes From:To of the script.
type Edit struct {
	From, To int
	New      string
}

// Result is a finding with the edits that mend it; the edits are safe when
// there are any.
type Result struct {
	diag.Finding
	EndCol int
	Edits  []Edit
	Clash  string // option with two values, of which a person has to choose one
}

// Options of Run.
type Options struct {
	Slurm   Version              // of the cluster; zero: not known
	Enable  func(id string) bool // opt-in rules that are wanted; nil: none
	Disable func(id string) bool // rules that are not wanted; nil: none
	Site    map[string]bool      // options of sbatch that plugins of the site add
	Cluster *Cluster             // what sinfo and scontrol said; nil: not asked
	IsDir   func(string) bool    // whether a path, relative to where a job would be submitted, is a folder now; nil: not known
	Hide    func(string) string  // what Hider returned for the script; nil: Run makes its own
}

// Cluster is what a cluster offers.
type Cluster struct {
	Partitions map[string]Partition `yaml:"partitions"`
	Gres       map[string]bool      `yaml:"gres"` // names
}

// Partition is one partition and its biggest node.
type Partition struct {
	Nodes      int             `yaml:"nodes"`
	CPUs       int             `yaml:"cpus"`    // of a node
	MemMiB     int64           `yaml:"mem"`     // of a node
	GPUs       int             `yaml:"gpus"`    // of a node
	MaxSeconds int64           `yaml:"seconds"` // -1: no limit; 0: not known
	GPUTypes   map[string]bool `yaml:"types"`
}

// Ctx is what a check sees.
type Ctx struct {
	S    *fact.Script
	O    Options
	rule *diag.Rule
	out  []Result

	shared *shared
}

// shared is computed once for all checks.
type shared struct {
	text  string // the script without comment lines
	lower string
	grams grams // of lower

	scratch []byte // for lower

	ranks  []rankUse
	names  map[string]bool // of commands
	sets   map[string]bool // variables that are assigned
	ranked bool
	cpu    int                 // 0: nobody asked; 1: no; 2: meant to run without a GPU
	hide   func(string) string // nil: nobody asked
}

var spare = sync.Pool{New: func() any { return &shared{names: make(map[string]bool, 32), sets: make(map[string]bool, 32)} }}

// free gives the memory of what is made anew for each script to the next one.
func (s *shared) free() {
	if len(s.names) > 1000 || len(s.sets) > 1000 || cap(s.scratch) > 1<<16 {
		return
	}
	clear(s.names)
	clear(s.sets)
	*s = shared{names: s.names, sets: s.sets, scratch: s.scratch[:0]}
	spare.Put(s)
}

// Run runs the lint rules of a set over a script, in order of place.
func Run(set *diag.Set, s *fact.Script, o Options) []Result {
	c := &Ctx{S: s, O: o, shared: spare.Get().(*shared)}
	defer c.shared.free()
	for i := range s.Commands {
		c.shared.names[s.Commands[i].Name] = true
	}
	for i := range s.Assigns {
		if !s.Assigns[i].Unset {
			c.shared.sets[s.Assigns[i].Name] = true
		}
	}
	var out []Result
	for _, r := range set.Rules {
		f := Checks[r.ID]
		if r.Family != "lint" || f == nil || o.Disable != nil && o.Disable(r.ID) {
			continue
		}
		wanted := o.Enable != nil && o.Enable(r.ID)
		if r.OptIn && !wanted {
			continue
		}
		if r.Slurm != "" && !wanted && !(o.Slurm.Known() && o.Slurm.In(r.Slurm)) {
			continue
		}
		c.rule, c.out = r, nil
		f(c)
		out = append(out, c.out...)
	}
	out = consequences(s, template(s, out))
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i].Where[0], out[j].Where[0]
		return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col
	})
	return out
}

// template drops what follows from a script that is not filled in yet.
func template(s *fact.Script, in []Result) []Result {
	if len(s.Placeholders) == 0 {
		return in
	}
	lines := map[int]bool{}
	body := false
	for _, p := range s.Placeholders {
		lines[p.Line] = true
		body = body || !p.Live
	}
	var out []Result
	for _, r := range in {
		if r.ID != "template-placeholder" {
			if lines[r.Where[0].Line] && r.Severity == diag.Error {
				continue
			}
			if body && (r.ID == "syntax-error" || r.ID == "undefined-var") {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// consequences drops what only follows from another finding: a command that a
// note after its continuation cuts off has lost the options below.
func consequences(s *fact.Script, in []Result) []Result {
	cut := map[int]bool{}
	for i := range in {
		if in[i].ID == "comment-after-continuation" {
			for n := in[i].Where[0].Line; n > 0; n-- { // up to the first line of the command
				cut[n] = true
				if !strings.HasSuffix(strings.TrimRight(s.Line(n-1), " \t"), "\\") {
					break
				}
			}
		}
	}
	if len(cut) == 0 {
		return in
	}
	var out []Result
	for _, r := range in {
		switch r.ID {
		case "missing-rdzv", "torchrun-nproc-missing", "gpu-count-mismatch", "multinode-launcher-without-srun", "torchrun-per-gpu-task":
			if cut[r.Where[0].Line] {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// Hit reports a place. kv are pairs of argument name and value; what is secret
// in them is masked, so that no form of the report shows it.
func (c *Ctx) Hit(p fact.Pos, kv ...string) *Result {
	a := diag.Args{}
	for i := 0; i+1 < len(kv); i += 2 {
		a[kv[i]] = c.hide(kv[i+1])
	}
	for _, name := range []string{"name", "option"} {
		if v := a["value"]; v != "" && a[name] != "" {
			a["value"] = mask.Value(a[name], v)
		}
	}
	line := c.S.Line(p.Line)
	col := 1
	if p.Col > 1 {
		col = len([]rune(line[:min(p.Col-1, len(line))])) + 1
	}
	r := Result{Finding: diag.Finding{ID: c.rule.ID, Rule: c.rule.ID, Cause: c.rule.Cause, Role: diag.Cause, Severity: c.rule.Severity,
		Certainty: diag.Proven, Actor: "user", Args: a, Count: 1,
		Where: []diag.Where{{File: c.S.Name, Line: p.Line, Col: col}}, Explains: []string{}, Needs: []string{}}}
	ex := c.hide(strings.TrimSpace(line))
	r.Evidence = []fact.Evidence{{Source: fact.SrcScript, Path: c.S.Name, Line: p.Line, Col: col, Excerpt: fact.Clip(strings.ToValidUTF8(ex, "\uFFFD"), 200)}}
	r.Fixes = diag.Fixes(c.rule, a)
	c.out = append(c.out, r)
	return &c.out[len(c.out)-1]
}

// hide masks secrets in a word of the script.
func (c *Ctx) hide(v string) string {
	if c.shared.hide == nil {
		if c.shared.hide = c.O.Hide; c.shared.hide == nil {
			c.shared.hide = Hider(c.S.Src)
		}
	}
	return c.shared.hide(v)
}

// Hider returns what masks secrets in quotes of a script, also those that only
// their place in the script gives away. The script is searched at the first
// call: most have nothing to quote. It is not for use by several goroutines.
func Hider(src []byte) func(string) string {
	var r *strings.Replacer
	return func(v string) string {
		if r == nil {
			r = strings.NewReplacer(secretPairs(src)...)
		}
		return mask.Text(r.Replace(v))
	}
}

// secretPairs lists the secrets of a script, each followed by what stands in for it.
func secretPairs(src []byte) []string {
	var pairs []string
	seen := map[string]bool{}
	for _, x := range mask.Secrets(string(src)) {
		// What is short may be any word, and a variable is no secret.
		if len(x) >= 6 && x[0] != '$' && !seen[x] && len(seen) < 1000 {
			seen[x] = true
			pairs = append(pairs, x, mask.Hidden)
		}
	}
	return pairs
}

// clip shortens what a message quotes, after its secrets are masked: half a
// secret is not recognised.
func clip(s string, n int) string { return fact.Clip(mask.Text(s), n) }

// Sev changes the severity of one finding.
func (r *Result) Sev(s diag.Severity) *Result { r.Severity = s; return r }

// Edit adds an edit of bytes.
func (r *Result) Edit(from, to int, s string) *Result {
	r.Edits = append(r.Edits, Edit{from, to, s})
	return r
}

// Apply makes edits of a source. Overlapping ones are left out, so that a
// second run may be needed.
func Apply(src []byte, edits []Edit) []byte {
	es := append([]Edit{}, edits...)
	sort.SliceStable(es, func(i, j int) bool { return es[i].From < es[j].From || es[i].From == es[j].From && es[i].To < es[j].To })
	var out []byte
	at := 0
	for i, e := range es {
		if e.From < at || e.To < e.From || e.To > len(src) || i > 0 && e == es[i-1] {
			continue
		}
		out = append(append(out, src[at:e.From]...), e.New...)
		at = e.To
	}
	return append(out, src[at:]...)
}
